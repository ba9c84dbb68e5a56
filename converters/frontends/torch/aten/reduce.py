"""Reductions, sorting, cumulative operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten

Value = ir.Value
Axes = Sequence[int] | int | None


def _axes(dim: Axes) -> list[int] | None:
    if dim is None or dim == []:
        return None
    return [dim] if isinstance(dim, int) else list(dim)


@aten("sum", "sum.dim_IntList")
def reduce_sum(op: Builder, x: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return op.ReduceSum(op.cast(x, op.dtype), _axes(dim), keepdims=int(keepdim))


@aten("mean", "mean.dim")
def reduce_mean(op: Builder, x: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return op.ReduceMean(op.cast(x, op.dtype), _axes(dim), keepdims=int(keepdim))


@aten("prod", "prod.dim_int")
def reduce_prod(op: Builder, x: Value, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return op.ReduceProd(op.cast(x, op.dtype), _axes(dim), keepdims=int(keepdim))


@aten("amax")
def amax(op: Builder, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    return op.ReduceMax(x, _axes(dim), keepdims=int(keepdim))


@aten("amin")
def amin(op: Builder, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    return op.ReduceMin(x, _axes(dim), keepdims=int(keepdim))


@aten("max")
def max_all(op: Builder, x: Value) -> Value:
    return op.ReduceMax(x, keepdims=0)


@aten("min")
def min_all(op: Builder, x: Value) -> Value:
    return op.ReduceMin(x, keepdims=0)


@aten("max.dim")
def max_dim(op: Builder, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return op.ReduceMax(x, [dim], keepdims=int(keepdim)), op.ArgMax(x, axis=dim, keepdims=int(keepdim))


@aten("min.dim")
def min_dim(op: Builder, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return op.ReduceMin(x, [dim], keepdims=int(keepdim)), op.ArgMin(x, axis=dim, keepdims=int(keepdim))


def _arg(op: Builder, reduce: Any, x: Value, dim: int | None, keepdim: bool) -> Value:
    if dim is None:
        return reduce(op.Reshape(x, [-1]), axis=0, keepdims=0)
    return reduce(x, axis=dim, keepdims=int(keepdim))


@aten("argmax")
def argmax(op: Builder, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _arg(op, op.ArgMax, x, dim, keepdim)


@aten("argmin")
def argmin(op: Builder, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _arg(op, op.ArgMin, x, dim, keepdim)


@aten("any", "any.dim", "any.dims")
def reduce_any(op: Builder, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    flags = op.cast(op.cast(x, ir.DataType.BOOL), ir.DataType.INT32)
    return op.Cast(op.ReduceMax(flags, _axes(dim), keepdims=int(keepdim)), to=int(ir.DataType.BOOL))


@aten("all", "all.dim", "all.dims")
def reduce_all(op: Builder, x: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    flags = op.cast(op.cast(x, ir.DataType.BOOL), ir.DataType.INT32)
    return op.Cast(op.ReduceMin(flags, _axes(dim), keepdims=int(keepdim)), to=int(ir.DataType.BOOL))


@aten("logsumexp")
def logsumexp(op: Builder, x: Value, dim: Axes, keepdim: bool = False) -> Value:
    return op.ReduceLogSumExp(x, _axes(dim), keepdims=int(keepdim))


def _variance(op: Builder, x: Value, dim: Axes, correction: float, keepdim: bool) -> Value:
    """Mean of squares about the mean; Bessel's factor as n / (n - correction), n known or counted at run time."""
    axes = _axes(dim)
    centred = op.Sub(x, op.ReduceMean(x, axes, keepdims=1))
    biased = op.ReduceMean(op.Mul(centred, centred), axes, keepdims=int(keepdim))
    if correction == 0:
        return biased
    rank = len(x.shape)
    sizes = [x.shape[axis % rank] for axis in (axes if axes is not None else range(rank))]
    if all(isinstance(size, int) for size in sizes):
        count = int(np.prod(sizes))
        return op.Mul(biased, op.constant(count / (count - correction) if count > correction else np.nan, x))
    counts = op.Gather(op.Shape(x), [axis % rank for axis in (axes if axes is not None else range(rank))])
    number = op.cast(op.ReduceProd(counts, keepdims=0), x.dtype)
    return op.Mul(biased, op.Div(number, op.Sub(number, op.constant(correction, x))))


@aten("var.correction")
def var(op: Builder, x: Value, dim: Axes = None, *, correction: float | None = None, keepdim: bool = False) -> Value:
    return _variance(op, x, dim, 1 if correction is None else correction, keepdim)


@aten("var.dim")
def var_dim(op: Builder, x: Value, dim: Axes = None, unbiased: bool = True, keepdim: bool = False) -> Value:
    return _variance(op, x, dim, int(unbiased), keepdim)


@aten("var")
def var_all(op: Builder, x: Value, unbiased: bool = True) -> Value:
    return _variance(op, x, None, int(unbiased), False)


@aten("std.correction")
def std(op: Builder, x: Value, dim: Axes = None, *, correction: float | None = None, keepdim: bool = False) -> Value:
    return op.Sqrt(_variance(op, x, dim, 1 if correction is None else correction, keepdim))


@aten("std.dim")
def std_dim(op: Builder, x: Value, dim: Axes = None, unbiased: bool = True, keepdim: bool = False) -> Value:
    return op.Sqrt(_variance(op, x, dim, int(unbiased), keepdim))


@aten("std")
def std_all(op: Builder, x: Value, unbiased: bool = True) -> Value:
    return op.Sqrt(_variance(op, x, None, int(unbiased), False))


@aten("var_mean.correction")
def var_mean(
    op: Builder, x: Value, dim: Axes = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    variance = _variance(op, x, dim, 1 if correction is None else correction, keepdim)
    return variance, op.ReduceMean(x, _axes(dim), keepdims=int(keepdim))


@aten("topk")
def topk(
    op: Builder, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    return op.TopK(x, op.vector([k]), axis=dim, largest=int(largest), sorted=int(sorted), outputs=2)


@aten("sort", "sort.stable")
def sort(
    op: Builder, x: Value, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> tuple[Value, Value]:
    size = op.Shape(x, start=dim % len(x.shape), end=dim % len(x.shape) + 1)
    return op.TopK(x, size, axis=dim, largest=int(descending), sorted=1, outputs=2)


@aten("argsort", "argsort.stable")
def argsort(op: Builder, x: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    return sort(op, x, dim, descending)[1]


@aten("cumsum")
def cumsum(op: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    return op.CumSum(op.cast(x, op.dtype), op.constant(dim, ir.DataType.INT64))


@aten("std_mean.correction")
def std_mean(
    op: Builder, x: Value, dim: Axes = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    return std(op, x, dim, correction=correction, keepdim=keepdim), op.ReduceMean(x, _axes(dim), keepdims=int(keepdim))


@aten("aminmax")
def aminmax(op: Builder, x: Value, *, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    return amin(op, x, dim, keepdim), amax(op, x, dim, keepdim)
