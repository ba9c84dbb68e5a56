"""Integer tensors that hold sizes, followed symbolically: what `Concat(Shape(x)[0], 49)` says without running it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import reduce
from math import prod

import numpy as np
import onnx_ir as ir

from porter.converters.graph.canonical import constant_of
from porter.converters.graph.nesting import everywhere
from porter.converters.opset import SIZE

Dim = int | str
_LIMIT = 64


def find_sizes(graph: ir.Graph) -> dict[ir.Value, tuple[Dim, ...]]:
    """{value: its elements as sizes} for scalars and vectors of integers that come from shapes and constants."""
    found: dict[ir.Value, tuple[Dim, ...]] = {}
    for value in graph.initializers.values():
        array = constant_of(value)
        if array is not None and array.dtype.kind == "i" and array.ndim <= 1 and array.size <= _LIMIT:
            found[value] = tuple(int(item) for item in array.reshape(-1))
    for node in everywhere(graph):
        for value, sizes in zip(node.outputs, follow(node, found), strict=False):
            if sizes is not None:
                found[value] = sizes
    return found


def follow(node: ir.Node, found: dict[ir.Value, tuple[Dim, ...]]) -> list[tuple[Dim, ...] | None]:
    """What a node's outputs hold, from what is known of its inputs."""
    output = node.outputs[0]
    if SIZE in output.metadata_props:
        return [(output.metadata_props[SIZE],)]
    inputs = [found.get(value) if value is not None else None for value in node.inputs]
    if node.op_type == "Shape":
        return [_shape(node)]
    if not inputs or inputs[0] is None:
        return [None]
    first = inputs[0]
    match node.op_type:
        case "Unsqueeze" | "Squeeze" | "Reshape" | "Identity":
            return [first]
        case "Cast":
            return [first if output.dtype in (ir.DataType.INT64, ir.DataType.INT32) else None]
        case "Concat":
            return [
                tuple(item for part in inputs for item in part) if all(part is not None for part in inputs) else None
            ]
        case "Gather" if inputs[1] is not None and all(isinstance(i, int) for i in inputs[1]):
            return [tuple(first[i] for i in inputs[1] if isinstance(i, int))]
        case "Slice" if all(part is not None for part in inputs[1:]):
            bounds = [part[0] for part in inputs[1:] if part]
            known = [bound for bound in bounds if isinstance(bound, int)]
            step = known[3] if len(known) > 3 else 1
            return [first[known[0] : known[1] : step]] if len(known) == len(bounds) else [None]
        case "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Max" | "Min":
            return [_arithmetic(node.op_type, inputs)]
        case "Split" if len(inputs) > 1 and inputs[1] is not None and all(isinstance(i, int) for i in inputs[1]):
            ends = [sum(size for size in inputs[1][: i + 1] if isinstance(size, int)) for i in range(len(inputs[1]))]
            return [first[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        case "ReduceProd":
            return [(product(first),)]
    return [None]


def _shape(node: ir.Node) -> tuple[Dim, ...] | None:
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    sizes = tuple(size if isinstance(size, int) else size.value for size in source.shape)
    start = node.attributes["start"].as_int() if "start" in node.attributes else 0
    end = node.attributes["end"].as_int() if "end" in node.attributes else None
    part = sizes[start:end]
    return None if any(size is None for size in part) else part


# ONNX divides integers towards zero; sizes are never negative, where that is floor division.
_OPERATORS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "Add": ("+", operator.add),
    "Sub": ("-", operator.sub),
    "Mul": ("*", operator.mul),
    "Div": ("//", operator.floordiv),
    "Mod": ("%", operator.mod),
    "Max": ("max", max),
    "Min": ("min", min),
}


def _arithmetic(op_type: str, inputs: list[tuple[Dim, ...] | None]) -> tuple[Dim, ...] | None:
    if any(part is None for part in inputs):
        return None
    parts = [part for part in inputs if part is not None]
    length = max(len(part) for part in parts)
    columns = [part * length if len(part) == 1 else part for part in parts]
    if any(len(column) != length for column in columns):
        return None
    return tuple(_combine(op_type, list(items)) for items in zip(*columns, strict=True))


def _combine(op_type: str, items: list[Dim]) -> Dim:
    symbol, compute = _OPERATORS[op_type]
    if all(isinstance(item, int) for item in items):
        return reduce(compute, (item for item in items if isinstance(item, int)))
    if op_type in ("Max", "Min"):
        return f"{symbol}({', '.join(str(item) for item in items)})"
    return ast.unparse(ast.parse(f" {symbol} ".join(f"({item})" for item in items), mode="eval"))


def product(sizes: tuple[Dim, ...] | list[Dim]) -> Dim:
    """The product of sizes, the numbers collected in front."""
    number = prod(size for size in sizes if isinstance(size, int))
    symbols = [f"({size})" if not str(size).isidentifier() else str(size) for size in sizes if isinstance(size, str)]
    if not symbols:
        return number
    text = " * ".join(([str(number)] if number != 1 else []) + symbols)
    return ast.unparse(ast.parse(text, mode="eval"))


def as_array(sizes: tuple[Dim, ...]) -> np.ndarray | None:
    """The sizes as int64 when all are numbers."""
    return np.asarray(sizes, dtype=np.int64) if all(isinstance(size, int) for size in sizes) else None
