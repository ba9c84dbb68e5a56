"""Keras 3 as the emitter writes it."""

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
from porter.converters.codegen.module import Input, Module, frozen_paths
from porter.converters.codegen.nodes import Call, Expr, Layer, Literal, Verbatim, Weight, call
from porter.converters.codegen.normal import Construct
from porter.converters.codegen.printer import literal
from porter.converters.codegen.unify import Template
from porter.converters.numbers import shortest
from porter.converters.targets.keras.fresh import SCALES
from porter.converters.targets.keras.module import input_texts, module_text
from porter.converters.targets.keras.padding import explicit_padding, padding_everywhere
from porter.converters.targets.keras.sequential import layer_of
from porter.converters.targets.keras.unjitted import unjitted

HELPERS = f"{__package__}.helpers"
_POSITIONAL = {
    "Conv": 2, "Depthwise": 1, "Dense": 1, "Dropout": 1, "SpatialDropout": 1, "Embedding": 2, "MaxPooling": 1,
    "AveragePooling": 1, "LSTM": 1, "GRU": 1, "SimpleRNN": 1, "ZeroPadding": 1, "Cropping": 1, "UpSampling": 1,
    "Activation": 1, "Reshape": 1, "Bidirectional": 1, "MultiHeadAttention": 2, "LeakyReLU": 1, "Permute": 1,
    "GroupNormalization": 1, "RNN": 1, "TwoBias": 1, "bilinear": 1,
}  # fmt: skip
_MODULE = frozenset(
    {"build", "create_variables", "draw", "find", "initialize", "load_weights", "redraw", "symbolic_inputs", "FROZEN"}
)
_LOCALS = frozenset({"keras", "layers", "ops", "tf", "self", "training", "math", "load_file", "Path"}) | _MODULE


@cache
def _frozen() -> dict[str, Any]:
    return json.loads(files(__package__).joinpath("frozen.json").read_text())


class KerasDialect:
    """Names and habits of Keras 3 code."""

    name = "keras"
    sequential = "keras.Sequential"
    identity = "Identity"
    appends = "add"
    added = frozenset(f"{kind}{rank}D" for kind in ("ZeroPadding", "Cropping") for rank in (1, 2, 3))
    chains_freeze = False
    chains_loops = False
    calls_without_inputs = False
    stores_reshaped = True
    statistics = frozenset({"moving_mean", "moving_variance"})
    functions_as_layers: tuple[bool, ...] = (False, True)
    collapsible = frozenset({"kernel_size", "strides", "pool_size", "dilation_rate", "size", "padding", "cropping"})

    def __init__(self, package: str) -> None:
        self.package = package
        self.helpers = frozenset(library(HELPERS))

    @property
    def reserved(self) -> frozenset[str]:
        return frozenset(_frozen()["reserved"]) | _LOCALS

    @property
    def reserved_locals(self) -> frozenset[str]:
        return _LOCALS | self.helpers

    def qualified(self, cls: str) -> str:
        return f"layers.{cls}" if cls in _frozen()["layers"] and cls not in self.helpers else cls

    def positional(self, func: str) -> int:
        known = func in _frozen()["layers"] or func in self.helpers or "." in func
        return next((count for stem, count in _POSITIONAL.items() if func.startswith(stem)), 0 if known else 1)

    def order(self, func: str) -> list[str]:
        return _frozen()["order"].get(func, []) if func not in self.helpers else []

    def defaults(self, func: str) -> Mapping[str, Any]:
        if func.startswith("ops."):
            return _frozen()["ops"].get(func[4:], {})
        found = dict(_frozen()["layers"].get(func, {}))
        return {name: _tuples(value) for name, value in found.items()}

    def as_layer(self, expr: Expr, value: Expr) -> Construct | None:
        return layer_of(expr, value)

    def as_function(self, layer: Layer, value: Expr, held: Mapping[str, Expr]) -> None:
        return None

    def size(self, value: str, axis: int) -> str:
        return f"ops.shape({value})[{axis}]"

    def chain_item(self, number: str) -> str:
        return f".layers[{number}]"

    def chain(self, steps: Steps) -> str:
        return f"keras.Sequential({steps.whole})"

    def chain_head(self, inputs: Sequence[Input]) -> list[Expr]:
        return [Verbatim(text) for text in input_texts(inputs)]

    def listed(self, items: str) -> str:
        return items

    def assigned(self, target: str, definition: Expr, text: str) -> str:
        return f"{target} = {text}"

    def in_source(self, weight: Weight) -> bool:
        return False

    def variable(self, name: str, weight: Weight) -> Construct:
        kwargs: list[tuple[str, Expr]] = [("name", Literal(name)), ("shape", Literal(tuple(weight.shape)))]
        if weight.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
            kwargs.append(("dtype", Literal(_dtype(weight.dtype))))
        if not weight.trainable or weight.kind != "parameter":
            kwargs += [("initializer", Literal("zeros")), ("trainable", Literal(False))]
        elif weight.rank <= 1:  # scales and shifts, which Keras would draw at random
            kwargs.append(("initializer", Literal("ones" if name in SCALES else "zeros")))
        return Construct("self.add_weight", tuple(kwargs))

    def array(self, value: Any, dtype: ir.DataType) -> Expr | None:
        if dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE):  # Keras would make it float32 under any policy
            numbers = (
                [shortest(number) for number in value.reshape(-1).tolist()] if dtype == ir.DataType.FLOAT else None
            )
            exact = np.asarray(numbers).reshape(value.shape) if numbers is not None else value
            name = Verbatim("self.compute_dtype") if numbers is not None else Literal("float64")
            return call("ops.array", exact.tolist(), dtype=name)
        if dtype == ir.DataType.UINT64 and value.size and value.max() >= 2**63:
            return None  # neither Keras nor TensorFlow makes it of Python's numbers without loss
        return _counted(value, dtype) or call("ops.array", value.tolist(), dtype=_dtype(dtype))

    def structural(self, kind: str, operand: Expr, **facts: Any) -> Expr:
        match kind:
            case "transpose":
                perm = facts["perm"]
                return (
                    call("ops.transpose", operand)
                    if tuple(perm) == tuple(reversed(range(len(perm))))
                    else call("ops.transpose", operand, tuple(perm))
                )
            case "reshape":
                return call("ops.reshape", operand, tuple(facts["shape"]))
            case "flip":
                return call("ops.flip", operand, axis=tuple(facts["axes"]))
            case "tensor":
                return call("ops.convert_to_tensor", operand)
            case "concat":
                return Call("ops.concatenate", (operand,), (("axis", Literal(facts["axis"])),))
        raise AssertionError(kind)

    def simplified(self, expr: Expr) -> Expr | None:
        """Two transposes in a row, one of them of how a variable is stored, are one or none.

        Sizes that vary are tensors in a graph, which Python's `max` and `min` cannot compare.
        """
        if isinstance(expr, Call) and expr.func in ("max", "min"):
            return Call({"max": "largest_size", "min": "smallest_size"}[expr.func], expr.args)
        outer = _transposed(expr)
        inner = _transposed(outer[0]) if outer is not None else None
        if outer is None or inner is None:
            return None
        known = outer[1] or inner[1]
        if known is None:  # both reverse all axes
            return inner[0]
        turned = tuple(reversed(range(len(known))))
        both = tuple((inner[1] or turned)[axis] for axis in outer[1] or turned)
        return inner[0] if both == tuple(range(len(both))) else self.structural("transpose", inner[0], perm=both)

    @property
    def padding_forms(self) -> tuple[Callable[[Body], Body], ...]:
        return (
            unjitted,
            lambda body: explicit_padding(unjitted(body)),
            lambda body: padding_everywhere(unjitted(body)),
        )

    def class_header(self, template: Template, *, root: bool) -> list[str]:
        return [
            f"@keras.saving.register_keras_serializable({literal(self.package)})",
            f"class {template.name}({'keras.Model' if root else 'layers.Layer'}):",
        ]

    def class_footer(self, template: Template) -> list[str]:
        """The call of a chain. Keras would save a Sequential by its layers, a layer by what it was made with."""
        if () not in template.body.definitions:
            return []
        return ["def call(self, x):", "    for layer in self.layers:", "        x = layer(x)", "    return x"]

    def constructor_header(self, arguments: list[str], steps: Steps | None) -> list[str]:
        return [
            f"def __init__({', '.join(['self', *arguments, '**kwargs'])}):",
            "    super().__init__(**kwargs)",
            *([f"    self.layers = {steps.whole}"] if steps else []),
        ]

    def freezing(self, paths: Sequence[str]) -> list[str]:
        return []  # the variables are not made yet

    def method_header(self, arguments: list[str], *, training: bool, root: bool) -> list[str]:
        """Keras hands `training` on to every layer; fit() gives it only to a model that takes it."""
        names = list(arguments)
        if root and len(names) > 1:
            names = [names[0], *(f"{name}=None" for name in names[1:])]
        lines = [f"def call({', '.join(['self', *names])}):"]
        if root and training:
            lines = [f"def call({', '.join(['self', *names, 'training=None'])}):  # Keras hands it on to every layer"]
        if root and len(arguments) > 1:
            lines += [
                f"    if isinstance({arguments[0]}, dict):  # fit() and predict() hand all inputs over as one",
                f"        return self.call(**{arguments[0]})",
                f"    if isinstance({arguments[0]}, (list, tuple)):",
                f"        return self.call(*{arguments[0]})",
            ]
        return lines

    def module_text(self, module: Module) -> str:
        return module_text(module, frozen_paths(module.variables, self.statistics), self.statistics, self.qualified)


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
    counted = call("ops.arange", *bounds, dtype=_dtype(dtype))
    axis = value.shape.index(numbers.size)
    after = value.ndim - 1 - axis
    picked = (*[None] * axis, *([slice(None), *[None] * after] if after else []))
    return counted[picked] if picked else counted


def _transposed(expr: Expr) -> tuple[Expr, tuple[int, ...] | None] | None:
    """What a transpose is of, and its axes (None: all in reverse); None for anything else."""
    if not isinstance(expr, Call) or expr.func != "ops.transpose" or expr.kwargs:
        return None
    axes = expr.args[1] if len(expr.args) > 1 else None
    return expr.args[0], axes.value if isinstance(axes, Literal) else None


def _dtype(dtype: ir.DataType) -> str:
    return "bool" if dtype == ir.DataType.BOOL else str(dtype.numpy())


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
