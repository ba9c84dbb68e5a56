"""Fresh weights as the source draws them: what `build(weights=False)` applies where PyTorch's layers draw otherwise."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from porter.converters.codegen.body import Variable
from porter.converters.codegen.fresh import Fresh, Plan, Rule, plan
from porter.converters.codegen.module import Module
from porter.converters.codegen.printer import literal
from porter.converters.initial import Draw, Scaled
from porter.converters.numbers import shortest

# Variables that start at one where nothing is said.
SCALES = ("weight", "gamma", "scale")

_KERNELS = re.compile(r"nn\.(Linear|Conv(Transpose)?[123]d)")
_RECURRENT = ("nn.LSTM", "nn.GRU", "nn.RNN")
_VARIANCE_SCALING = '''
def variance_scaling_(tensor, scale, mode, distribution):
    """Draw with the variance `scale / fan`, as Keras' VarianceScaling does."""
    window = math.prod(tensor.shape[2:])
    fan_in, fan_out = tensor.shape[1] * window, tensor.shape[0] * window
    variance = scale / {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
    if distribution == "uniform":
        return nn.init.uniform_(tensor, -math.sqrt(3 * variance), math.sqrt(3 * variance))
    if distribution == "normal":
        return nn.init.normal_(tensor, std=math.sqrt(variance))
    std = math.sqrt(variance) / 0.87962566103423978  # of what is cut off at two deviations
    return nn.init.trunc_normal_(tensor, std=std, a=-2 * std, b=2 * std)
'''


def fresh(module: Module) -> Fresh:
    """How weights are drawn; nothing where PyTorch's layers do it that way by themselves."""
    own = plan(module, _usual, _place, channels_first=True)
    result = Fresh()
    branches = _branches(own)
    if branches:
        lines = ["@torch.no_grad()", "def initialize(module):", '    """Draw weights as the source does."""']
        for number, (classes, body) in enumerate(branches):
            test = classes[0] if len(classes) == 1 else f"({', '.join(classes)})"
            lines += [
                f"    {'elif' if number else 'if'} isinstance(module, {test}):",
                *(f"        {line}" for line in body),
            ]
        result.functions.append("\n".join(lines))
        result.statements.append("model.apply(initialize)")
    for draw, paths in own.exceptions.items():
        if len(paths) == 1:
            result.statements += _drawn(draw, f"model.get_parameter({literal(paths[0])})")
        else:
            drawn = _drawn(draw, "model.get_parameter(name)")
            result.statements += [f"for name in {literal(tuple(paths))}:", *(f"    {line}" for line in drawn)]
    if any("variance_scaling_(" in line for line in [*result.functions, *result.statements]):
        result.functions.append(_VARIANCE_SCALING.strip())
    return result


def _place(variable: Variable) -> tuple[str, str]:
    return variable.cls, variable.slot or str(variable.path[-1])


def _usual(cls: str, slot: str, shapes: Mapping[str, tuple[int, ...]]) -> Draw | None:
    """What PyTorch's layer of this kind draws."""
    if cls in _RECURRENT:
        return _uniform(shapes["weight_hh_l0"][1] ** -0.5) if "weight_hh_l0" in shapes else None
    if cls == "nn.Embedding":
        return Draw("normal", (0.0, 1.0))
    if _KERNELS.fullmatch(cls):
        return _uniform(math.prod(shapes["weight"][1:]) ** -0.5) if "weight" in shapes else None
    if cls == "nn.PReLU":
        return Draw("constant", (0.25,))
    if slot.startswith("running_"):
        return None
    return Draw("constant", (1.0 if slot in SCALES else 0.0,))


def _uniform(bound: float) -> Draw:
    return Draw("uniform", (-bound, bound))


def _branches(own: Plan) -> list[tuple[list[str], list[str]]]:
    """(classes, statements about `module`): classes that are drawn alike share them."""
    found: list[tuple[list[str], list[str]]] = []
    for cls, rules in own.rules.items():
        body = [line for rule in rules if not rule.usual for line in _statements(rule)]
        same = next((classes for classes, lines in found if lines == body), None)
        if same is not None:
            same.append(cls)
        else:
            found.append(([cls], body))
    return found


def _statements(rule: Rule) -> list[str]:
    tensor = f"module.{rule.slot}"
    lines = _drawn(rule.how, tensor)
    if not rule.partly:
        return lines
    # A recurrent layer has no attribute for a direction, a level or a bias that it lacks; others hold None.
    test = f"hasattr(module, {literal(rule.slot)})" if "_l" in rule.slot else f"{tensor} is not None"
    return [f"if {test}:", *(f"    {line}" for line in lines)]


_NAMED = {
    ("uniform", "fan_avg", 1.0): "xavier_uniform_({0})",
    ("normal", "fan_avg", 1.0): "xavier_normal_({0})",
    ("uniform", "fan_in", 2.0): 'kaiming_uniform_({0}, nonlinearity="relu")',
    ("normal", "fan_in", 2.0): 'kaiming_normal_({0}, nonlinearity="relu")',
    ("uniform", "fan_out", 2.0): 'kaiming_uniform_({0}, mode="fan_out", nonlinearity="relu")',
    ("normal", "fan_out", 2.0): 'kaiming_normal_({0}, mode="fan_out", nonlinearity="relu")',
    ("uniform", "fan_in", 1.0): 'kaiming_uniform_({0}, nonlinearity="linear")',
    ("normal", "fan_in", 1.0): 'kaiming_normal_({0}, nonlinearity="linear")',
}


def _drawn(how: Draw | Scaled, tensor: str) -> list[str]:
    """The statements that draw a tensor in place."""
    if isinstance(how, Draw) and how.kind == "unit_forget_bias":  # the second of four gates
        return [f"nn.init.zeros_({tensor})", f"nn.init.ones_({tensor}.chunk(4)[1])"]
    return [_drawn_alike(how, tensor)]


def _drawn_alike(how: Draw | Scaled, tensor: str) -> str:
    """The statement that draws every element of a tensor from one distribution."""
    if isinstance(how, Scaled):
        scale = float(f"{how.scale:.6g}")
        named = _NAMED.get((how.kind, how.mode, scale))
        return (
            f"nn.init.{named.format(tensor)}"
            if named
            else f'variance_scaling_({tensor}, {scale}, "{how.mode}", "{how.kind}")'
        )
    numbers = [literal(float(f"{shortest(value):.8g}")) for value in how.numbers]
    match how.kind:
        case "constant":
            named = {0.0: f"zeros_({tensor})", 1.0: f"ones_({tensor})"}.get(how.numbers[0])
            return f"nn.init.{named or f'constant_({tensor}, {numbers[0]})'}"
        case "normal":
            mean = "" if how.numbers[0] == 0 else f"mean={numbers[0]}, "
            return f"nn.init.normal_({tensor}, {mean}std={numbers[1]})"
        case "truncated_normal":
            middle, deviation = how.numbers
            ends = (literal(float(f"{middle + side * deviation:.8g}")) for side in (-2, 2))
            lead = "" if middle == 0 else f"mean={numbers[0]}, "
            return f"nn.init.trunc_normal_({tensor}, {lead}std={numbers[1]}, a={next(ends)}, b={next(ends)})"
        case "uniform":
            return f"nn.init.uniform_({tensor}, {numbers[0]}, {numbers[1]})"
    return f"nn.init.orthogonal_({tensor}{'' if how.numbers[0] == 1 else f', gain={numbers[0]}'})"
