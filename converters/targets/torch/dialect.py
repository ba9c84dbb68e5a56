"""PyTorch as the emitter writes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.codegen.body import Body
from porter.converters.codegen.dialect import Steps
from porter.converters.codegen.helpers import library
from porter.converters.codegen.module import Input, Module
from porter.converters.codegen.nodes import Binary, Call, Expr, Layer, Literal, Verbatim, Weight, call
from porter.converters.codegen.normal import Construct
from porter.converters.codegen.unify import Template
from porter.converters.numbers import shortest
from porter.converters.targets.torch.fresh import SCALES
from porter.converters.targets.torch.module import module_text
from porter.converters.targets.torch.permute import permutation, permuted
from porter.converters.targets.torch.sequential import function_of, layer_of

HELPERS = f"{__package__}.helpers"
_POSITIONAL = {
    "nn.Conv": 3, "nn.Linear": 2, "nn.BatchNorm": 1, "nn.InstanceNorm": 1, "nn.GroupNorm": 2, "nn.LayerNorm": 1,
    "nn.RMSNorm": 1, "nn.Embedding": 2, "nn.Dropout": 1, "nn.AlphaDropout": 1, "nn.MaxPool": 1, "nn.AvgPool": 1,
    "nn.LPPool": 2, "nn.Adaptive": 1, "nn.LSTM": 2, "nn.GRU": 2, "nn.RNN": 2, "nn.MultiheadAttention": 2,
    "nn.ZeroPad": 1, "nn.ConstantPad": 2, "nn.Reflection": 1, "nn.Replication": 1, "nn.Circular": 1,
    "nn.PixelShuffle": 1, "nn.PixelUnshuffle": 1, "nn.LeakyReLU": 1, "nn.ELU": 1, "nn.CELU": 1, "nn.PReLU": 1,
    "nn.Threshold": 2, "nn.Hardtanh": 2, "nn.Softshrink": 1, "nn.Hardshrink": 1, "nn.Flatten": 1, "nn.Unflatten": 2,
    "nn.Parameter": 1, "self.register_buffer": 2, "Gated": 2, "Plain": 2, "Padded": 2, "Masked": 2, "Gaussian": 1,
}  # fmt: skip
_LOCALS = frozenset(
    {"torch", "nn", "F", "self", "math", "load_file", "Path", "build", "initialize", "variance_scaling_"}
)
_CREATING = {"dtype": None, "device": None}
# Functions that do not say what they take.
_KNOWN: dict[str, dict[str, Any]] = {
    **{f"torch.{name}": _CREATING for name in ("zeros", "ones", "full", "arange", "eye", "tensor")},
    **{f".{name}": _CREATING for name in ("new_zeros", "new_ones", "new_full")},
    **{f".{name}": {"keepdim": False} for name in ("sum", "mean", "amax", "amin", "prod", "any", "all", "logsumexp")},
    **{f".{name}": {"keepdim": False} for name in ("argmax", "argmin", "norm")},
    "nn.Parameter": {"requires_grad": True},
}  # fmt: skip
# Constants up to this many elements stand in the source.
_WRITTEN = 32


@cache
def _frozen() -> dict[str, Any]:
    return json.loads(files(__package__).joinpath("frozen.json").read_text())


class TorchDialect:
    """Names and habits of PyTorch code."""

    name = "torch"
    sequential = "nn.Sequential"
    identity = "nn.Identity"
    appends = "append"
    added: frozenset[str] = frozenset()
    chains_freeze = True
    chains_loops = True
    calls_without_inputs = True
    stores_reshaped = False
    statistics = frozenset({"running_mean", "running_var"})
    functions_as_layers: tuple[bool, ...] = (True,)
    collapsible = frozenset({"kernel_size", "stride", "padding", "dilation", "output_padding", "output_size"})

    def __init__(self) -> None:
        self.helpers = frozenset(library(HELPERS))

    @property
    def reserved(self) -> frozenset[str]:
        return frozenset(_frozen()["reserved"]) | _LOCALS

    @property
    def reserved_locals(self) -> frozenset[str]:
        return _LOCALS | self.helpers

    def qualified(self, cls: str) -> str:
        return cls

    def positional(self, func: str) -> int:
        return next((count for stem, count in _POSITIONAL.items() if func.startswith(stem)), 0)

    def order(self, func: str) -> list[str]:
        return _frozen()["order"].get(func.removeprefix("nn."), []) if func.startswith("nn.") else []

    def defaults(self, func: str) -> Mapping[str, Any]:
        if func.startswith("F."):
            return _frozen()["functions"].get(func[2:], {})
        if func.startswith(("Padded", "Masked")):
            func = f"nn.{func[6:]}"
        if func.startswith("nn."):
            found = _frozen()["layers"].get(func[3:], {})
            return {name: _tuples(value) for name, value in found.items()} or _KNOWN.get(func, {})
        return _KNOWN.get(func, {})

    def as_layer(self, expr: Expr, value: Expr) -> Construct | None:
        return layer_of(expr, value)

    def as_function(self, layer: Layer, value: Expr, held: Mapping[str, Expr]) -> Expr | None:
        return function_of(layer, value, held)

    def size(self, value: str, axis: int) -> str:
        return f"{value}.shape[{axis}]"

    def chain_item(self, number: str) -> str:
        return f"[{number}]"

    def chain(self, steps: Steps) -> str:
        return f"nn.Sequential({', '.join(steps.items)})"

    def chain_head(self, inputs: Sequence[Input]) -> None:
        return None

    def listed(self, items: str) -> str:
        return f"nn.ModuleList({items})"

    def assigned(self, target: str, definition: Expr, text: str) -> str:
        if isinstance(definition, Construct) and definition.cls == "self.register_buffer":
            return text
        return f"{target} = {text}"

    def in_source(self, weight: Weight) -> bool:
        return _written(weight) is not None

    def variable(self, name: str, weight: Weight) -> Construct:
        if weight.kind == "parameter":
            held = ("requires_grad", Literal(weight.trainable))
            return Construct("nn.Parameter", (("data", _fresh(name, weight)), held))
        written = _written(weight)
        kwargs: list[tuple[str, Expr]] = [("name", Literal(name)), ("tensor", written or _empty("torch.zeros", weight))]
        if written is not None:
            kwargs.append(("persistent", Literal(False)))
        return Construct("self.register_buffer", tuple(kwargs))

    def array(self, value: Any, dtype: ir.DataType) -> Expr | None:
        return None  # a buffer goes where the model goes, and has its type

    def structural(self, kind: str, operand: Expr, **facts: Any) -> Expr:
        match kind:
            case "transpose":
                return permuted(operand, facts["perm"])
            case "reshape":
                return call(".reshape", operand, *facts["shape"])
            case "flip":
                return call(".flip", operand, tuple(facts["axes"]))
            case "tensor":
                return operand
            case "concat":
                return Call("torch.cat", (operand,), (("dim", Literal(facts["axis"])),))
        raise AssertionError(kind)

    def simplified(self, expr: Expr) -> Expr | None:
        """Two permutations in a row, one of them of how a parameter is stored, are one or none."""
        if isinstance(expr, Call) and expr.func == ".to" and expr.args[1:] == (Literal(None),):
            return call(".to", expr.args[0], Call("torch.get_default_dtype", ()))
        outer = permutation(expr)
        inner = permutation(outer[0]) if outer is not None else None
        if outer is None or inner is None:
            return None
        both = tuple(inner[1][axis] for axis in outer[1])
        return inner[0] if both == tuple(range(len(both))) else permuted(inner[0], both)

    @property
    def padding_forms(self) -> tuple[Callable[[Body], Body], ...]:
        return (lambda body: body,)

    def class_header(self, template: Template, *, root: bool) -> list[str]:
        base = "nn.Sequential" if () in template.body.definitions else "nn.Module"
        return [f"class {template.name}({base}):"]

    def class_footer(self, template: Template) -> list[str]:
        return []

    def constructor_header(self, arguments: list[str], steps: Steps | None) -> list[str]:
        layers = ", ".join(steps.items) if steps else ""
        return [f"def __init__({', '.join(['self', *arguments])}):", f"    super().__init__({layers})"]

    def freezing(self, paths: Sequence[str]) -> list[str]:
        """Layers and parameters freeze alike."""
        parts = ["self" + "".join(f"[{s}]" if s.isdigit() else f".{s}" for s in path.split(".")) for path in paths]
        if len(parts) < 3:
            return [f"{part}.requires_grad_(False)" for part in parts]
        return [f"for frozen in ({', '.join(parts)}):", "    frozen.requires_grad_(False)"]

    def method_header(self, arguments: list[str], *, training: bool, root: bool) -> list[str]:
        return [f"def forward({', '.join(['self', *arguments])}):"]

    def module_text(self, module: Module) -> str:
        return module_text(module, self.statistics)


def dtype_name(dtype: ir.DataType) -> str:
    """The name that PyTorch gives a type."""
    return "torch.bool" if dtype == ir.DataType.BOOL else f"torch.{dtype.numpy()}"


def _typed(dtype: ir.DataType, *usual: ir.DataType) -> dict[str, Expr]:
    return {} if dtype in usual else {"dtype": Verbatim(dtype_name(dtype))}


def _empty(func: str, weight: Weight) -> Expr:
    sizes = weight.shape or ((),)
    return call(func, *sizes, **_typed(weight.dtype, ir.DataType.FLOAT, ir.DataType.DOUBLE))


def _fresh(name: str, weight: Weight) -> Expr:
    """A parameter that nothing has trained yet: scales are one, shifts zero, all others small and random."""
    if sum(size != 1 for size in weight.shape) <= 1:
        return _empty("torch.ones" if name in SCALES else "torch.zeros", weight)
    return Binary("*", Literal(0.02), _empty("torch.randn", weight))


def _written(weight: Weight) -> Expr | None:
    """A constant as the source writes it, when it is short."""
    value = weight.array() if weight.kind == "constant" else None
    if value is None:
        return None
    counted = _counted(value, weight.dtype)
    if counted is not None:
        return counted
    if value.size > _WRITTEN:
        return None
    exact = value
    if weight.dtype == ir.DataType.FLOAT:
        exact = np.asarray([shortest(number) for number in value.reshape(-1).tolist()]).reshape(value.shape)
    usual = (ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.BOOL)
    return call("torch.tensor", exact.tolist(), **_typed(weight.dtype, *usual))


def _counted(value: np.ndarray, dtype: ir.DataType) -> Expr | None:
    """Whole numbers that count on along one axis, as positions do."""
    numbers = value.reshape(-1)
    if numbers.size < 4 or value.dtype.kind != "i" or numbers.size not in value.shape:
        return None
    start, step = int(numbers[0]), int(numbers[1]) - int(numbers[0])
    stop = start + numbers.size * step
    if step == 0 or not np.array_equal(numbers, np.arange(start, stop, step)):
        return None
    bounds = [stop] if (start, step) == (0, 1) else [start, stop] if step == 1 else [start, stop, step]
    counted = call("torch.arange", *bounds, **_typed(dtype, ir.DataType.INT64))
    return counted if value.ndim == 1 else call(".reshape", counted, *value.shape)


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
