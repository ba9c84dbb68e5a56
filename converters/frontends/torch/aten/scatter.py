"""Writing to places that indices or masks tell: scatter, index_add, index_fill, masked_scatter."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.aten.elementwise import floor_division
from porter.converters.frontends.torch.table import aten

Value = ir.Value


@aten("scatter.src")
def scatter_src(op: Builder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return op.ScatterElements(x, index, src, axis=dim)


@aten("scatter.value")
def scatter_value(op: Builder, x: Value, dim: int, index: Value, value: float) -> Value:
    return op.ScatterElements(x, index, op.Expand(op.constant(value, x), op.Shape(index)), axis=dim)


@aten("scatter_add")
def scatter_add(op: Builder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return op.ScatterElements(x, index, src, axis=dim, reduction="add")


_REDUCTIONS = {
    "sum": "add",
    "add": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "amin": "min",
    "mean": "add",
}


@aten("scatter.reduce", "scatter_reduce.two")
def scatter_reduce(
    op: Builder, x: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True
) -> Value:
    """Without `include_self` the places that are written to start at what the reduction leaves unchanged."""
    start = x if include_self else op.ScatterElements(x, index, _filled(op, _neutral(reduce, x), x, index), axis=dim)
    total = op.ScatterElements(start, index, src, axis=dim, reduction=_REDUCTIONS[reduce])
    if reduce != "mean":
        return total
    ones = op.Expand(op.constant(1, x), op.Shape(x))
    first = ones if include_self else op.ScatterElements(ones, index, _filled(op, 0, x, index), axis=dim)
    counts = op.ScatterElements(first, index, _filled(op, 1, x, index), axis=dim, reduction="add")
    return op.Div(total, counts) if x.dtype.is_floating_point() else floor_division(op, total, counts)


def _filled(op: Builder, number: float, like: Value, index: Value) -> Value:
    return op.Expand(op.constant(number, like), op.Shape(index))


def _neutral(reduce: str, x: Value) -> float:
    if reduce in ("amax", "amin"):
        kind = x.dtype.numpy()
        ends = (-math.inf, math.inf) if x.dtype.is_floating_point() else (np.iinfo(kind).min, np.iinfo(kind).max)
        return ends[reduce == "amin"]
    return 1 if reduce in ("prod", "multiply") else 0


@aten("index_add")
def index_add(op: Builder, x: Value, dim: int, index: Value, source: Value, alpha: float = 1) -> Value:
    rank = len(x.shape)
    dim %= rank
    if alpha != 1:
        source = op.Mul(source, op.constant(alpha, x))
    if dim == 0:
        return op.ScatterND(x, op.Unsqueeze(index, [1]), source, reduction="add")
    perm = [dim, *(axis for axis in range(rank) if axis != dim)]
    moved = op.ScatterND(
        op.Transpose(x, perm=perm), op.Unsqueeze(index, [1]), op.Transpose(source, perm=perm), reduction="add"
    )
    return op.Transpose(moved, perm=[perm.index(axis) for axis in range(rank)])


@aten("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(op: Builder, x: Value, dim: int, index: Value, value: Value | float) -> Value:
    rank = len(x.shape)
    dim %= rank
    size = op.Squeeze(op.Shape(x, start=dim, end=dim + 1), [0])
    places = op.Range(op.constant(0, ir.DataType.INT64), size, op.constant(1, ir.DataType.INT64))
    index = op.Reshape(op.cast(index, ir.DataType.INT64), [-1, 1])
    chosen = op.Equal(op.Mod(index, size, fmod=0), op.Unsqueeze(places, [0]))
    hit = op.Cast(op.ReduceMax(op.Cast(chosen, to=int(ir.DataType.INT32)), [0], keepdims=0), to=int(ir.DataType.BOOL))
    hit = op.Unsqueeze(hit, list(range(1, rank - dim))) if dim < rank - 1 else hit
    return op.Where(hit, op.cast(value, x.dtype) if isinstance(value, ir.Value) else op.constant(value, x), x)


@aten("masked_scatter")
def masked_scatter(op: Builder, x: Value, mask: Value, source: Value) -> Value:
    """The n-th place where the mask is true takes the n-th element of the source."""
    whole = op.Expand(mask, op.Shape(x))
    flat = op.Cast(op.Reshape(whole, [-1]), to=int(ir.DataType.INT64))
    number = op.Sub(op.CumSum(flat, op.constant(0, ir.DataType.INT64)), op.constant(1, ir.DataType.INT64))
    picked = op.Gather(op.Reshape(source, [-1]), op.Max(number, op.constant(0, ir.DataType.INT64)), axis=0)
    return op.Where(whole, op.Reshape(picked, op.Shape(x)), x)
