"""Tensors made of sizes and numbers, or in the shape of another tensor."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.dtypes import from_keras
from porter.converters.frontends.keras.operands import in_dtype
from porter.converters.frontends.keras.rules import shape as shapes
from porter.converters.frontends.keras.table import keras_creation, keras_operation

Value = ir.Value
INT64 = ir.DataType.INT64


def _full(op: Builder, shape: Any, value: Any) -> Value:
    sizes = [shape] if isinstance(shape, int | Value) else list(shape)
    return op.Expand(in_dtype(op, value, op.dtype), op.vector(sizes))


@keras_creation("zeros")
def zeros(op: Builder, shape: Any, dtype: Any) -> Value:
    return _full(op, shape, 0)


@keras_creation("ones")
def ones(op: Builder, shape: Any, dtype: Any) -> Value:
    return _full(op, shape, 1)


@keras_creation("full")
def full(op: Builder, shape: Any, fill_value: Any, dtype: Any) -> Value:
    return _full(op, shape, fill_value)


@keras_operation("Full")
def full_operation(op: Builder, fill_value: Any, *, shape: Any, dtype: Any) -> Value:
    return _full(op, shape, fill_value)


@keras_operation("ZerosLike", "OnesLike", "EmptyLike")
def zeros_like(op: Builder, x: Value, *, dtype: str | None, operation: Any) -> Value:
    number = 1 if type(operation).__name__ == "OnesLike" else 0
    return op.Expand(op.constant(number, from_keras(dtype) if dtype else x.dtype), op.Shape(x))


@keras_operation("FullLike")
def full_like(op: Builder, x: Value, fill_value: Any, *, dtype: str | None) -> Value:
    return op.Expand(in_dtype(op, fill_value, from_keras(dtype) if dtype else x.dtype), op.Shape(x))


@keras_creation("arange")
def arange(op: Builder, start: Any, stop: Any, step: Any, dtype: Any) -> Value:
    first, last = (0, start) if stop is None else (start, stop)
    kind = INT64 if not op.dtype.is_floating_point() else op.dtype
    bounds = [in_dtype(op, 1 if x is None else x, kind) for x in (first, last, step)]
    return op.Range(*bounds)


@keras_creation("eye", "identity")
def eye(op: Builder, N: Any = None, M: Any = None, k: int = 0, dtype: Any = None, n: Any = None) -> Value:
    rows = n if N is None else N
    columns = rows if M is None else M
    return op.EyeLike(_full(op, [rows, columns], 0), k=int(k))


@keras_creation("tri")
def tri(op: Builder, N: Any, M: Any, k: int, dtype: Any) -> Value:
    ones = _full(op, [N, N if M is None else M], 1)
    return op.Trilu(ones, op.constant(int(k), INT64), upper=0)


@keras_creation("linspace")
def linspace(
    op: Builder, start: Any, stop: Any, num: Any, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Value:
    """Evenly spaced numbers, as many as a size says."""
    first, last = in_dtype(op, start, op.dtype), in_dtype(op, stop, op.dtype)
    count = num if isinstance(num, Value) else op.constant(int(num), INT64)
    zero, one = op.constant(0, INT64), op.constant(1, INT64)
    steps = op.cast(op.Sub(count, one) if endpoint else count, op.dtype)
    numbers = op.cast(op.Range(zero, count, one), op.dtype)
    return op.Add(op.Mul(numbers, op.Div(op.Sub(last, first), steps)), first)


@keras_creation("broadcast_to")
def broadcast_to(op: Builder, x: Any, shape: Any) -> Value:
    return op.Expand(in_dtype(op, x, op.dtype), op.vector(list(shape)))


@keras_creation("tile")
def tile(op: Builder, x: Any, repeats: Any) -> Value:
    return shapes.tile(op, in_dtype(op, x, op.dtype), repeats=repeats)


@keras_creation("reshape")
def reshape(op: Builder, x: Any, newshape: Any) -> Value:
    return shapes.reshape(op, in_dtype(op, x, op.dtype), newshape=newshape)


@keras_creation("repeat")
def repeat(op: Builder, x: Any, repeats: Any, axis: Any) -> Value:
    return shapes.repeat(op, in_dtype(op, x, op.dtype), repeats=repeats, axis=axis)
