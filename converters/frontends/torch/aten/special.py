"""Special functions, running products, searching, distances: operators that ONNX has only as arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.errors import UnsupportedError

Value = ir.Value
_END = 2**63 - 1


@aten("erfc", promoted=(0,), promotion="int_to_float")
def erfc(op: Builder, x: Value) -> Value:
    return op.Sub(op.constant(1, x), op.Erf(x))


@aten("hypot", promoted=(0, 1))
def hypot(op: Builder, x: Value, other: Value) -> Value:
    return op.Sqrt(op.Add(op.Mul(x, x), op.Mul(other, other)))


@aten("copysign.Tensor", "copysign.Scalar", promoted=(0, 1), promotion="int_to_float")
def copysign(op: Builder, x: Value, other: Value) -> Value:
    """The sign of a zero is told by its reciprocal."""
    size = op.Abs(x)
    zero = op.constant(0, x)
    negative = op.Or(op.Less(other, zero), op.And(op.Equal(other, zero), op.Less(op.Reciprocal(other), zero)))
    return op.Where(negative, op.Neg(size), size)


@aten("logaddexp", promoted=(0, 1), promotion="int_to_float")
def logaddexp(op: Builder, x: Value, other: Value) -> Value:
    """Of the larger one and the difference; equal infinities have none."""
    high = op.Max(x, other)
    apart = op.Where(op.Equal(x, other), op.constant(0, x), op.Abs(op.Sub(x, other)))
    return op.Add(high, op.Log(op.Add(op.constant(1, x), op.Exp(op.Neg(apart)))))


@aten("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self", promoted=(0, 1), promotion="int_to_float")
def xlogy(op: Builder, x: Value, other: Value) -> Value:
    """0·log y is 0 for every y but NaN."""
    zero = op.constant(0, x)
    product = op.Where(op.Equal(x, zero), zero, op.Mul(x, op.Log(other)))
    return op.Where(op.IsNaN(other), other, product)


@aten(
    "__lshift__.Scalar",
    "__lshift__.Tensor",
    "bitwise_left_shift.Tensor",
    "bitwise_left_shift.Tensor_Scalar",
    promoted=(0, 1),
)
def left_shift(op: Builder, x: Value, bits: Value) -> Value:
    """ONNX shifts unsigned numbers only: signed ones are multiplied."""
    return op.Mul(x, op.Pow(op.constant(2, x), bits))


@aten(
    "__rshift__.Scalar",
    "__rshift__.Tensor",
    "bitwise_right_shift.Tensor",
    "bitwise_right_shift.Tensor_Scalar",
    promoted=(0, 1),
)
def right_shift(op: Builder, x: Value, bits: Value) -> Value:
    """Arithmetic: a division that rounds down."""
    unit = op.Pow(op.constant(2, x), bits)
    return op.Div(op.Sub(x, op.Mod(x, unit)), unit)


def _running(op: Builder, x: Value, dim: int, neutral: float, combine: Callable[[Value, Value], Value]) -> Value:
    """Running results along an axis, by doubling: each pass combines with what lies 1, 2, 4, … steps before."""
    rank = len(x.shape)
    if rank == 0:
        return x
    dim %= rank
    size = x.shape[dim]
    if not isinstance(size, int):
        raise UnsupportedError(f"a running product or maximum along an axis that varies ({size}); fix that axis")
    step = 1
    while step < size:
        begins, ends = [0] * rank, [0] * rank
        begins[dim] = step
        shifted = op.Slice(op.Pad(x, [*begins, *ends], op.constant(neutral, x)), [0], [size], [dim], [1])
        x = combine(x, shifted)
        step *= 2
    return x


@aten("cumprod")
def cumprod(op: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    shape = x.shape
    x = op.cast(x, op.dtype)
    x.shape = shape
    return _running(op, x, dim, 1, op.Mul)


@aten("logcumsumexp")
def logcumsumexp(op: Builder, x: Value, dim: int) -> Value:
    return _running(op, x, dim, -math.inf, lambda a, b: logaddexp(op, a, b))


@aten("cummax")
def cummax(op: Builder, x: Value, dim: int) -> tuple[Value, None]:
    return _running(op, x, dim, _lowest(x), op.Max), None


@aten("cummin")
def cummin(op: Builder, x: Value, dim: int) -> tuple[Value, None]:
    return _running(op, x, dim, _highest(x), op.Min), None


def _lowest(x: Value) -> float:
    return -math.inf if x.dtype.is_floating_point() else np.iinfo(x.dtype.numpy()).min


def _highest(x: Value) -> float:
    return math.inf if x.dtype.is_floating_point() else np.iinfo(x.dtype.numpy()).max


def _positions(op: Builder, sequence: Value, values: Value, right: bool) -> Value:
    """How many boundaries lie below each value; boundaries on a new last axis."""
    below = op.LessOrEqual(sequence, values) if right else op.Less(sequence, values)
    return op.cast(op.ReduceSum(op.Cast(below, to=int(ir.DataType.INT64)), [-1], keepdims=0), op.dtype)


@aten("bucketize.Tensor", promoted=(0, 1))
def bucketize(op: Builder, x: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> Value:
    return _positions(op, boundaries, op.Unsqueeze(x, [-1]), right)


@aten("searchsorted.Tensor", promoted=(0, 1))
def searchsorted(
    op: Builder,
    sequence: Value,
    x: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    if sorter is not None:
        raise UnsupportedError("searchsorted with a sorter; gather the sequence first")
    if len(sequence.shape) > 1:
        sequence = op.Unsqueeze(sequence, [-2])
    return _positions(op, sequence, op.Unsqueeze(x, [-1]), right or side == "right")


@aten("cdist", "_cdist_forward")
def cdist(op: Builder, x: Value, other: Value, p: float = 2.0, compute_mode: int | None = None) -> Value:
    """All differences, then a norm: the expanded square loses digits where torch's own does not."""
    apart = op.Abs(op.Sub(op.Unsqueeze(x, [-2]), op.Unsqueeze(other, [-3])))
    if p == 2:
        return op.ReduceL2(apart, [-1], keepdims=0)
    if p == 1:
        return op.ReduceSum(apart, [-1], keepdims=0)
    if p == math.inf:
        return op.ReduceMax(apart, [-1], keepdims=0)
    if p == 0:
        raise UnsupportedError("cdist with p=0")
    total = op.ReduceSum(op.Pow(apart, op.constant(p, x)), [-1], keepdims=0)
    return op.Pow(total, op.constant(1 / p, x))


@aten("_weight_norm")
def weight_norm(op: Builder, v: Value, g: Value, dim: int = 0) -> Value:
    """A direction and a length for every slice along `dim`."""
    rank = len(v.shape)
    axes = [axis for axis in range(rank) if axis != dim % rank] if dim != -1 else list(range(rank))
    return op.Mul(v, op.Div(g, op.ReduceL2(v, axes, keepdims=1)))
