"""Tensors made from sizes and numbers."""

from __future__ import annotations

import numpy as np

from porter.converters.codegen.nodes import Expr, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.cast import dtype_argument
from porter.converters.targets.keras.shape import filled, sizes_of
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Dims, Float, Tensor


@keras_op("Shape", layout="fixed")
def shape(x: Tensor, *, start: int = 0, end: int | None = None) -> Expr:
    return call("ops.convert_to_tensor", sizes_of(x)[start:end], dtype="int64")


@keras_op("Size", layout="fixed")
def size(x: Tensor) -> Expr:
    return call("ops.cast", call("ops.size", x), "int64")


@keras_op("Range", layout="fixed")
def integer_range(start: Dims, limit: Dims, delta: Dims, *, out: Tensor) -> Expr:
    if not out.dtype.is_integer():
        raise CannotBind("the range counts in fractions")
    bounds = [start[0], limit[0]] if delta != (1,) or start != (0,) else [limit[0]]
    steps = [] if delta == (1,) else [delta[0]]
    return call("ops.arange", *bounds, *steps, dtype=dtype_argument(out.dtype))


@keras_op("Range", layout="fixed")
def number_range(start: Float, limit: Float, delta: Float) -> Expr:
    return call("ops.arange", float(start), float(limit), float(delta))


@keras_op("Range", layout="fixed")
def computed_range(start: Tensor, limit: Tensor, delta: Tensor, *, out: Tensor) -> Expr:
    return call("ops.arange", start, limit, delta, dtype=dtype_argument(out.dtype))


@keras_op("ConstantOfShape", layout="fixed")
def constant_of_shape(sizes: Dims, *, out: Tensor, value: np.ndarray | None = None) -> Expr:
    return filled(sizes, 0.0 if value is None else value.reshape(-1)[0].item(), out)


@keras_op("ConstantOfShape", layout="fixed")
def constant_of_computed_shape(sizes: Tensor, *, out: Tensor, value: np.ndarray | None = None) -> Expr:
    return filled(sizes, 0.0 if value is None else value.reshape(-1)[0].item(), out)


@keras_op("EyeLike", layout="fixed")
def eye_like(x: Tensor, *, out: Tensor, k: int, dtype: int = 0) -> Expr:
    """`dtype` is already that of the output."""
    rows, columns = sizes_of(x)
    return call("ops.eye", rows, None if rows == columns else columns, k=k, dtype=dtype_argument(out.dtype))
