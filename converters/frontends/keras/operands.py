"""Operands of a rule as ONNX values: Keras' rules of type promotion, numbers as constants, axes counted from zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.dtypes import from_keras, to_keras

Value = ir.Value


def common_dtype(*operands: Any) -> ir.DataType:
    """The dtype to which Keras brings operands, each a value, a Python number or the name of a dtype."""
    kinds = [
        to_keras(x.dtype) if isinstance(x, Value) else x if isinstance(x, str) else _kind(x)
        for x in operands
        if x is not None
    ]
    return from_keras(keras.backend.result_type(*kinds))


def _kind(number: Any) -> Any:
    return str(number.dtype) if isinstance(number, np.generic | np.ndarray) else type(number)


def promoted(op: Builder, *operands: Any, also: str | None = None) -> list[Value]:
    """All operands in their common dtype; `also` takes part in finding it."""
    dtype = common_dtype(*operands, also)
    return [in_dtype(op, operand, dtype) for operand in operands]


def in_dtype(op: Builder, operand: Any, dtype: ir.DataType) -> Value:
    """An operand as a value of the dtype."""
    return op.cast(operand, dtype) if isinstance(operand, Value) else op.constant(operand, dtype)


def rank(x: Value) -> int:
    """The number of axes."""
    return len(x.shape)


def axis_of(x: Value, axis: int) -> int:
    """An axis counted from the front."""
    return axis % rank(x) if rank(x) else 0


def axes_of(x: Value, axes: int | Sequence[int] | None) -> list[int]:
    """Axes counted from the front; None is all of them."""
    if axes is None:
        return list(range(rank(x)))
    return [axis_of(x, axis) for axis in ([axes] if isinstance(axes, int) else axes)]


def each(value: Any, count: int) -> list[int]:
    """A number for all axes, or one for each."""
    return [int(value)] * count if isinstance(value, int) else [int(item) for item in value]


def to_front(op: Builder, x: Value, channels_last: bool) -> Value:
    """The channel axis after the batch axis, where ONNX wants it."""
    if not channels_last or rank(x) == 2:
        return x
    n = rank(x)
    return moved(op, x, [0, n - 1, *range(1, n - 1)])


def to_back(op: Builder, x: Value, channels_last: bool, n: int) -> Value:
    """The inverse of `to_front`, for a value of `n` axes."""
    return moved(op, x, [0, *range(2, n), 1]) if channels_last and n > 2 else x


def moved(op: Builder, x: Value, perm: Sequence[int]) -> Value:
    """A transposition, its result with a shape."""
    if list(perm) == list(range(len(perm))):
        return x
    y = op.Transpose(x, perm=list(perm))
    if x.shape is not None:
        y.shape = ir.Shape([x.shape[axis] for axis in perm])
    return y


def filled(op: Builder, like: Value, number: float, shape: Sequence[int]) -> Value:
    """A constant of one number in the dtype of a value."""
    return op.tensor(np.full(tuple(shape), number, dtype=like.dtype.numpy()))
