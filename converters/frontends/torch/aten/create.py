"""Tensors made from nothing but sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten

Value = ir.Value


def _filled(op: Builder, number: Any) -> Value:
    if isinstance(number, ir.Value):
        return op.Expand(op.cast(number, op.dtype), op.shape_of_output())
    assert op.dtype is not None
    return op.Expand(op.constant(number, op.dtype), op.shape_of_output())


@aten("zeros", "new_zeros", "zeros_like")
def zeros(op: Builder, *_: Any, **__: Any) -> Value:
    return _filled(op, 0)


@aten("ones", "new_ones", "ones_like")
def ones(op: Builder, *_: Any, **__: Any) -> Value:
    return _filled(op, 1)


@aten("empty.memory_format", "new_empty", "empty_like")
def empty(op: Builder, *_: Any, **__: Any) -> Value:
    """Memory that is written before it is read."""
    return _filled(op, 0)


@aten("full", "full_like")
def full(op: Builder, _: Any, number: Any, **__: Any) -> Value:
    return _filled(op, number)


@aten("new_full")
def new_full(op: Builder, _: Any, size: Any, number: Any, **__: Any) -> Value:
    return _filled(op, number)


@aten("scalar_tensor")
def scalar_tensor(op: Builder, number: Any, **_: Any) -> Value:
    return op.cast(number, op.dtype) if isinstance(number, ir.Value) else op.constant(number, op.dtype)


def _number(op: Builder, number: Any) -> Value:
    assert op.dtype is not None
    return op.cast(number, op.dtype) if isinstance(number, ir.Value) else op.constant(number, op.dtype)


@aten("arange")
def arange(op: Builder, end: Any, **_: Any) -> Value:
    return op.Range(_number(op, 0), _number(op, end), _number(op, 1))


@aten("arange.start")
def arange_start(op: Builder, start: Any, end: Any, **_: Any) -> Value:
    return op.Range(_number(op, start), _number(op, end), _number(op, 1))


@aten("arange.start_step")
def arange_step(op: Builder, start: Any, end: Any, step: Any = 1, **_: Any) -> Value:
    return op.Range(_number(op, start), _number(op, end), _number(op, step))


@aten("linspace")
def linspace(op: Builder, start: Any, end: Any, steps: Any, **_: Any) -> Value:
    """By index from both ends to the middle, as torch does, so that both ends are exact."""
    if isinstance(steps, int) and not isinstance(start, ir.Value) and not isinstance(end, ir.Value):
        assert op.dtype is not None
        return op.tensor(np.linspace(start, end, steps).astype(op.dtype.numpy()))
    count = op.cast(op.vector([steps]), op.dtype)
    one = _number(op, 1)
    span = op.Div(op.Sub(_number(op, end), _number(op, start)), op.Squeeze(op.Sub(count, one), [0]))
    return op.Add(_number(op, start), op.Mul(op.Range(_number(op, 0), _number(op, steps), one), span))


@aten("eye", "eye.m")
def eye(op: Builder, n: Any, m: Any = None, **_: Any) -> Value:
    sizes = op.vector([n, n if m is None else m])
    return op.EyeLike(op.ConstantOfShape(sizes, value=ir.tensor(np.zeros(1, np.float32))), dtype=int(op.dtype))


@aten("tril_indices")
def tril_indices(op: Builder, row: int, col: int, offset: int = 0, **_: Any) -> Value:
    return op.tensor(np.stack(np.tril_indices(row, offset, col)).astype(np.int64))


@aten("triu_indices")
def triu_indices(op: Builder, row: int, col: int, offset: int = 0, **_: Any) -> Value:
    return op.tensor(np.stack(np.triu_indices(row, offset, col)).astype(np.int64))
