"""Fresh weights as the source draws them: what `build(weights=False)` calls.

Where the author leaves the drawing to PyTorch's layers, one function does what these do. Where the author draws in
another way, the layers of that class have a branch of their own, and single layers that differ from others of their
class are named by their paths.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from porter.converters.codegen.body import Variable
from porter.converters.codegen.fresh import Fresh, Plan, Rule, plan
from porter.converters.codegen.module import Module
from porter.converters.codegen.printer import literal
from porter.converters.initial import Draw, Scaled
from porter.converters.numbers import shortest

# Variables that start at one where nothing is said.
SCALES = ("weight", "gamma", "scale")

_CELLS = ("LSTM", "GRU", "SimpleRNN")
_KERNELS = ("Dense", "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
_DEPTHWISE = ("DepthwiseConv1D", "DepthwiseConv2D")


def fresh(source: str, module: Module, qualified: Callable[[str], str]) -> Fresh:
    """How the weights of the layers in the source of the classes are drawn; nothing where Keras does it that way.

    `qualified` gives a class's name as the source has it.
    """
    drawn = set(re.findall(r"\blayers\.(\w+)\(", source))
    cells = tuple(
        f"{cell}Cell" for cell in _CELLS if cell in drawn or f"TwoBias{cell}(" in source or f"{cell}Cell" in drawn
    )
    own = plan(module, _usual, lambda variable: _place(variable, cells), channels_first=False)
    branches = [*_usual_branches(drawn, cells, set(own.rules)), *_own_branches(own, qualified)]
    result = Fresh()
    if branches:
        says = f"PyTorch does: {_kinds(drawn, cells)}" if not own.rules else "the source does"
        result.functions += [
            "\n".join([f'def initialize(layer):\n    """Draw weights as {says}."""', *_chain(branches), *_WITHIN])
        ]
        result.statements += ["initialize(model)"]
    if any(statement.startswith("draw(") for _, body in branches for statement in body):
        result.functions += ["\n".join(_DRAW)]
    for draw, paths in own.exceptions.items():
        text = _initializer(draw)
        if len(paths) == 1:
            result.statements += [f"redraw(find(model, {literal(paths[0])}), {text})"]
        else:
            result.statements += [f"for path in {literal(tuple(paths))}:", f"    redraw(find(model, path), {text})"]
    if any("redraw(" in line for line in [*result.statements, *(each for _, body in branches for each in body)]):
        result.functions += [_REDRAW]
    return result


_WITHIN = [
    '    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]',
    "    for part in keras.tree.flatten(within):",
    "        if isinstance(part, layers.Layer):",
    "            initialize(part)",
]
_DRAW = [
    "def draw(layer, bound):",
    "    for variable in layer.weights:",
    "        variable.assign(keras.random.uniform(variable.shape, -bound, bound))",
]
_REDRAW = "def redraw(variable, initializer):\n    variable.assign(initializer(variable.shape, variable.dtype))"


def _chain(branches: Sequence[tuple[str, list[str]]]) -> list[str]:
    lines = []
    for number, (classes, body) in enumerate(branches):
        lines += [
            f"    {'elif' if number else 'if'} isinstance(layer, {classes}):",
            *(f"        {line}" for line in body),
        ]
    return lines


def classes_of(kinds: tuple[str, ...]) -> str:
    """Layer classes as `isinstance` takes them."""
    names = ", ".join(f"layers.{kind}" for kind in kinds)
    return names if len(kinds) == 1 else f"({names})"


# ---- as PyTorch's layers draw ----


def _usual_branches(drawn: set[str], cells: tuple[str, ...], own: set[str]) -> list[tuple[str, list[str]]]:
    """(classes, statements) of the layers that are drawn as PyTorch's own do it."""
    branches = []
    if "Embedding" in drawn - own:
        branches.append(("layers.Embedding", ["layer.embeddings.assign(keras.random.normal(layer.embeddings.shape))"]))
    bounded = [
        (kinds, bound)
        for kinds, bound in [
            (tuple(kind for kind in cells if kind not in own), "layer.units ** -0.5"),
            (tuple(kind for kind in _DEPTHWISE if kind in drawn - own), _bound("Depthwise")),
            (tuple(kind for kind in _KERNELS if kind in drawn - own), _bound("")),
        ]
        if kinds
    ]
    for kinds, bound in bounded:
        body = (
            [f"draw(layer, {bound})"]
            if len(bounded) > 1
            else [f"bound = {bound}", *(line.removeprefix("    ") for line in _DRAW[1:])]
        )
        branches.append((classes_of(kinds), body))
    return branches


def _bound(cls: str) -> str:
    return f"math.prod(layer.kernel.shape[:{-2 if cls.startswith('Depthwise') else -1}]) ** -0.5"


def _kinds(drawn: set[str], cells: tuple[str, ...]) -> str:
    kinds = [
        *(["kernels and biases within ±1/√fan_in"] if drawn & {*_KERNELS, *_DEPTHWISE} else []),
        *(["recurrent ±1/√units"] if cells else []),
        *(["normal embeddings"] if "Embedding" in drawn else []),
    ]
    return ", ".join(kinds)


def _place(variable: Variable, cells: tuple[str, ...]) -> tuple[str, str]:
    """The layer class that holds a variable, of recurrent layers the cell's, and the attribute there."""
    _, cell, slot = variable.slot.rpartition("cell.")
    if cell:
        return (cells[0] if len(cells) == 1 else ""), slot
    return variable.cls, variable.slot or str(variable.path[-1])


def _usual(cls: str, slot: str, shapes: Mapping[str, tuple[int, ...]]) -> Draw | None:
    """What PyTorch's layer of this kind draws."""
    if cls.endswith("Cell") and "recurrent_kernel" in shapes:
        return _uniform(shapes["recurrent_kernel"][0] ** -0.5)
    if cls == "Embedding":
        return Draw("normal", (0.0, 1.0))
    if cls in (*_KERNELS, *_DEPTHWISE):
        return _uniform(math.prod(shapes["kernel"][: -2 if cls in _DEPTHWISE else -1]) ** -0.5)
    if slot.startswith("moving_"):
        return None
    return Draw("constant", (1.0 if slot in SCALES else 0.0,))


def _uniform(bound: float) -> Draw:
    return Draw("uniform", (-bound, bound))


# ---- as the author draws ----


def _own_branches(own: Plan, qualified: Callable[[str], str]) -> list[tuple[str, list[str]]]:
    branches = []
    for cls, rules in own.rules.items():
        body = [line for rule in rules if not (rule.usual and _by_itself(cls)) for line in _redrawn(cls, rule)]
        if any("bound" in line for line in body):
            body.insert(0, f"bound = {_bound(cls)}")
        if body:
            branches.append((qualified(cls), body))
    return branches


def _by_itself(cls: str) -> bool:
    """Whether Keras draws as PyTorch does: zeros and ones."""
    return not (cls.endswith("Cell") or cls in (*_KERNELS, *_DEPTHWISE, "Embedding"))


def _redrawn(cls: str, rule: Rule) -> list[str]:
    if rule.usual and cls.endswith("Cell"):
        text = "keras.initializers.RandomUniform(-(layer.units**-0.5), layer.units**-0.5)"
    elif rule.usual and rule.slot == "bias":
        text = "keras.initializers.RandomUniform(-bound, bound)"
    else:
        text = _initializer(rule.how)
    lines = [f"redraw(layer.{rule.slot}, {text})"]
    return [f"if layer.{rule.slot} is not None:", f"    {lines[0]}"] if rule.partly else lines


def _initializer(how: Draw | Scaled) -> str:
    """One of `keras.initializers`."""
    if isinstance(how, Scaled):
        return f"keras.initializers.{_scaled(how)}"
    numbers = [_number(value) for value in how.numbers]
    match how.kind:
        case "constant":
            named = {0.0: "Zeros()", 1.0: "Ones()"}.get(how.numbers[0])
            return f"keras.initializers.{named or f'Constant({numbers[0]})'}"
        case "normal":
            mean = "" if how.numbers[0] == 0 else f"mean={numbers[0]}, "
            return f"keras.initializers.RandomNormal({mean}stddev={numbers[1]})"
        case "truncated_normal":
            mean = "" if how.numbers[0] == 0 else f"mean={numbers[0]}, "
            return f"keras.initializers.TruncatedNormal({mean}stddev={numbers[1]})"
        case "uniform":
            return f"keras.initializers.RandomUniform({numbers[0]}, {numbers[1]})"
    return f"keras.initializers.Orthogonal({'' if how.numbers[0] == 1 else numbers[0]})"


_NAMES = {
    ("uniform", "fan_avg", 1.0): "GlorotUniform()", ("uniform", "fan_in", 2.0): "HeUniform()",
    ("uniform", "fan_in", 1.0): "LecunUniform()", ("truncated_normal", "fan_avg", 1.0): "GlorotNormal()",
    ("truncated_normal", "fan_in", 2.0): "HeNormal()", ("truncated_normal", "fan_in", 1.0): "LecunNormal()",
}  # fmt: skip


def _scaled(how: Scaled) -> str:
    scale = float(f"{how.scale:.6g}")
    named = _NAMES.get((how.kind, how.mode, scale))
    kind = "untruncated_normal" if how.kind == "normal" else how.kind
    written = "1 / 3" if math.isclose(how.scale, 1 / 3, rel_tol=1e-5) else literal(scale)
    return named or f'VarianceScaling({written}, "{how.mode}", "{kind}")'


def _number(value: float) -> str:
    return literal(float(f"{shortest(value):.8g}"))
