"""Tensors made from sizes and numbers."""

from __future__ import annotations

import numpy as np

from porter.converters.codegen.nodes import Expr, call
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import new
from porter.converters.targets.torch.shape import filled, sizes_of
from porter.converters.targets.types import Dims, Float, Tensor


@torch_op("Shape", layout="fixed")
def shape(x: Tensor, *, out: Tensor, start: int = 0, end: int | None = None) -> Expr:
    return call("torch.tensor", list(sizes_of(x)[start:end]), **new(out.dtype))


@torch_op("Size", layout="fixed")
def size(x: Tensor, *, out: Tensor) -> Expr:
    return call("torch.tensor", call(".numel", x), **new(out.dtype))


@torch_op("Range", layout="fixed")
def integer_range(start: Dims, limit: Dims, delta: Dims, *, out: Tensor) -> Expr:
    if not out.dtype.is_integer():
        raise CannotBind("the range counts in fractions")
    bounds = [start[0], limit[0]] if delta != (1,) or start != (0,) else [limit[0]]
    steps = [] if delta == (1,) else [delta[0]]
    given = new(out.dtype)
    return call(
        "torch.arange", *bounds, *steps, **(given if out.dtype.name != "INT64" else {"device": given["device"]})
    )


@torch_op("Range", layout="fixed")
def number_range(start: Float, limit: Float, delta: Float, *, out: Tensor) -> Expr:
    return call("torch.arange", float(start), float(limit), float(delta), **new(out.dtype))


@torch_op("Range", layout="fixed")
def computed_range(start: Tensor, limit: Tensor, delta: Tensor, *, out: Tensor) -> Expr:
    return call("torch.arange", start, limit, delta, **new(out.dtype))


@torch_op("ConstantOfShape", layout="fixed")
def constant_of_shape(sizes: Dims, *, out: Tensor, value: np.ndarray | None = None) -> Expr:
    return filled(sizes, 0.0 if value is None else value.reshape(-1)[0].item(), out)


@torch_op("ConstantOfShape", layout="fixed")
def constant_of_computed_shape(sizes: Tensor, *, out: Tensor, value: np.ndarray | None = None) -> Expr:
    return filled(call(".tolist", sizes), 0.0 if value is None else value.reshape(-1)[0].item(), out)


@torch_op("EyeLike", layout="fixed")
def eye_like(x: Tensor, *, out: Tensor, k: int, dtype: int = 0) -> Expr:
    """`dtype` is already that of the output. PyTorch has ones on the main diagonal only."""
    rows, columns = sizes_of(x)
    if k == 0:
        return call("torch.eye", rows, *([] if rows == columns else [columns]), **new(out.dtype))
    ones = call("torch.ones", rows, columns, **new(out.dtype))
    return call(".tril", call(".triu", ones, k), k)
