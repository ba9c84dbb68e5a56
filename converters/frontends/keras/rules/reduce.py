"""Reductions and scans."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.dtypes import from_keras
from porter.converters.frontends.keras.operands import axes_of, axis_of, in_dtype, rank
from porter.converters.frontends.keras.rules.elementwise import truth
from porter.converters.frontends.keras.table import keras_layer, keras_operation

Value = ir.Value
INT64 = ir.DataType.INT64


def reduced(op: Builder, onnx: str, x: Value, axis: Any, keepdims: bool) -> Value:
    """One of ONNX's reductions over axes, all of them when none are named."""
    axes = axes_of(x, axis)
    if not axes:
        return x
    return getattr(op, onnx)(x, axes, keepdims=int(keepdims))


@keras_operation("Sum", "Mean")
def total(op: Builder, x: Value, *, axis: Any, keepdims: bool, operation: Any) -> Value:
    return reduced(op, f"Reduce{type(operation).__name__}", in_dtype(op, x, op.dtype), axis, keepdims)


@keras_operation("Prod")
def prod(op: Builder, x: Value, *, axis: Any, keepdims: bool, dtype: str | None) -> Value:
    x = op.cast(x, from_keras(dtype) if dtype else op.dtype)
    return reduced(op, "ReduceProd", x, axis, keepdims)


@keras_operation("Max", "Min")
def extreme(op: Builder, x: Value, *, axis: Any, keepdims: bool, initial: Any, operation: Any) -> Value:
    kind = type(operation).__name__
    y = _extreme(op, kind, x, axis, keepdims)
    return y if initial is None else getattr(op, kind)(y, in_dtype(op, initial, y.dtype))


def _extreme(op: Builder, kind: str, x: Value, axis: Any, keepdims: bool) -> Value:
    if x.dtype == ir.DataType.BOOL:
        return op.cast(reduced(op, f"Reduce{kind}", op.cast(x, ir.DataType.INT32), axis, keepdims), x.dtype)
    return reduced(op, f"Reduce{kind}", x, axis, keepdims)


@keras_operation("Amax", "Amin")
def amax(op: Builder, x: Value, *, axis: Any, keepdims: bool, operation: Any) -> Value:
    return _extreme(op, type(operation).__name__.removeprefix("A").capitalize(), x, axis, keepdims)


@keras_operation("Ptp")
def ptp(op: Builder, x: Value, *, axis: Any, keepdims: bool) -> Value:
    return op.Sub(reduced(op, "ReduceMax", x, axis, keepdims), reduced(op, "ReduceMin", x, axis, keepdims))


@keras_operation("All", "Any")
def any_(op: Builder, x: Value, *, axis: Any, keepdims: bool, operation: Any) -> Value:
    numbers = op.cast(truth(op, x), ir.DataType.INT32)
    kind = "ReduceMin" if type(operation).__name__ == "All" else "ReduceMax"
    return op.cast(reduced(op, kind, numbers, axis, keepdims), ir.DataType.BOOL)


@keras_operation("CountNonzero")
def count_nonzero(op: Builder, x: Value, *, axis: Any) -> Value:
    return reduced(op, "ReduceSum", op.cast(truth(op, x), op.dtype), axis, False)


@keras_operation("Logsumexp")
def logsumexp(op: Builder, x: Value, *, axis: Any, keepdims: bool) -> Value:
    return reduced(op, "ReduceLogSumExp", in_dtype(op, x, op.dtype), axis, keepdims)


@keras_operation("Average")
def average(op: Builder, x: Value, weights: Value | None = None, *, axis: Any) -> Value:
    x = in_dtype(op, x, op.dtype)
    if weights is None:
        return reduced(op, "ReduceMean", x, axis, False)
    w = in_dtype(op, weights, op.dtype)
    if axis is not None and rank(w) == 1 and rank(x) > 1:
        w = op.Reshape(w, [-1 if a == axis_of(x, axis) else 1 for a in range(rank(x))])
        products = op.Mul(x, w)
        return op.Div(reduced(op, "ReduceSum", products, axis, False), op.ReduceSum(w, None, keepdims=0))
    return op.Div(reduced(op, "ReduceSum", op.Mul(x, w), axis, False), reduced(op, "ReduceSum", w, axis, False))


@keras_operation("Argmax", "Argmin")
def argmax(op: Builder, x: Value, *, axis: int | None, keepdims: bool, operation: Any) -> Value:
    """The first of equals on both sides."""
    kind = {"Argmax": "ArgMax", "Argmin": "ArgMin"}[type(operation).__name__]
    if x.dtype == ir.DataType.BOOL:
        x = op.cast(x, ir.DataType.INT32)
    if axis is not None:
        return getattr(op, kind)(x, axis=axis_of(x, axis), keepdims=int(keepdims))
    place = getattr(op, kind)(op.Reshape(x, [-1]), axis=0, keepdims=0)
    return op.Reshape(place, [1] * rank(x)) if keepdims else place


@keras_operation("Cumsum")
def cumsum(op: Builder, x: Value, *, axis: int | None, dtype: str | None) -> Value:
    x = op.cast(x, from_keras(dtype) if dtype else op.dtype)
    if axis is None:
        return op.CumSum(op.Reshape(x, [-1]), op.constant(0, INT64))
    return op.CumSum(x, op.constant(axis_of(x, axis), INT64))


@keras_operation("Trace")
def trace(op: Builder, x: Value, *, offset: int, axis1: int, axis2: int) -> Value:
    from porter.converters.frontends.keras.rules.index import diagonal

    return op.ReduceSum(diagonal(op, x, offset=offset, axis1=axis1, axis2=axis2), [-1], keepdims=0)


@keras_operation("Norm")
def norm(op: Builder, x: Value, *, ord: Any, axis: Any, keepdims: bool) -> Value:
    """Norms of vectors, and Frobenius' of matrices; others need singular values."""
    from porter.errors import UnsupportedError

    x = in_dtype(op, x, op.dtype)
    if axis is None and ord is None:
        flat = op.ReduceL2(x, axes_of(x, None), keepdims=0)
        return op.Reshape(flat, [1] * rank(x)) if keepdims else flat
    axes = axes_of(x, axis)
    if len(axes) == 2 and ord in (None, "fro"):
        return op.ReduceL2(x, axes, keepdims=int(keepdims))
    if len(axes) != 1:
        raise UnsupportedError(f"the matrix norm of order {ord!r}; Frobenius' norm and norms of vectors work")
    return _vector_norm(op, x, 2 if ord is None else ord, axes, int(keepdims))


def _vector_norm(op: Builder, x: Value, order: Any, axes: list[int], keepdims: int) -> Value:
    if order in (1, 2):
        return getattr(op, f"ReduceL{order}")(x, axes, keepdims=keepdims)
    if order == np.inf:
        return op.ReduceMax(op.Abs(x), axes, keepdims=keepdims)
    if order == -np.inf:
        return op.ReduceMin(op.Abs(x), axes, keepdims=keepdims)
    if order == 0:
        return op.ReduceSum(op.cast(truth(op, x), x.dtype), axes, keepdims=keepdims)
    powers = op.ReduceSum(op.Pow(op.Abs(x), op.constant(float(order), x)), axes, keepdims=keepdims)
    return op.Pow(powers, op.constant(1 / order, x))


def _global(name: str, onnx: str, dims: int) -> None:
    def rule(op: Builder, layer: Any, inputs: Value) -> Value:
        first = 1 if layer.data_format == "channels_last" else 2
        return getattr(op, onnx)(inputs, list(range(first, first + dims)), keepdims=int(layer.keepdims))

    keras_layer(name)(rule)


for _dims in (1, 2, 3):
    _global(f"GlobalMaxPooling{_dims}D", "ReduceMax", _dims)
for _dims in (2, 3):
    _global(f"GlobalAveragePooling{_dims}D", "ReduceMean", _dims)
