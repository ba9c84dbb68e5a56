"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.errors import UnsupportedError

Value = ir.Value


def _each(value: Any, rank: int) -> list[int]:
    items = list(value) if isinstance(value, Sequence) else [value]
    return items * rank if len(items) == 1 else items


def _batched(op: Builder, x: Value, rank: int) -> tuple[Value, bool]:
    return (op.Unsqueeze(x, [0]), True) if len(x.shape) == rank + 1 else (x, False)


def _max_pool(rank: int) -> None:
    def rule(
        op: Builder,
        x: Value,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Value:
        kernel = _each(kernel_size, rank)
        x, single = _batched(op, x, rank)
        y = op.MaxPool(
            x,
            kernel_shape=kernel,
            strides=_each(stride, rank) if stride else kernel,
            pads=_each(padding, rank) * 2,
            dilations=_each(dilation, rank),
            ceil_mode=int(ceil_mode),
        )
        return op.Squeeze(y, [0]) if single else y

    def with_indices(op: Builder, x: Value, *args: Any, **kwargs: Any) -> tuple[Value, None]:
        return rule(op, x, *args, **kwargs), None

    aten(f"max_pool{rank}d")(rule)
    aten(f"max_pool{rank}d_with_indices")(with_indices)


def _avg_pool(rank: int) -> None:
    def rule(
        op: Builder,
        x: Value,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        kernel = _each(kernel_size, rank)
        strides = _each(stride, rank) if stride else kernel
        pads = _each(padding, rank)
        x, single = _batched(op, x, rank)
        if divisor_override is not None:
            if ceil_mode:
                raise UnsupportedError("avg_pool with divisor_override and ceil_mode together")
            padded = op.Pad(x, [0, 0, *pads] * 2, op.constant(0, x)) if any(pads) else x
            y = op.AveragePool(padded, kernel_shape=kernel, strides=strides)
            y = op.Mul(y, op.constant(int(np.prod(kernel)) / divisor_override, x))
        elif ceil_mode and count_include_pad and any(pads):
            y = _padded_average(op, x, kernel, strides, pads)
        else:
            y = op.AveragePool(
                x,
                kernel_shape=kernel,
                strides=strides,
                pads=pads * 2,
                ceil_mode=int(ceil_mode),
                count_include_pad=int(count_include_pad and any(pads)),
            )
        return op.Squeeze(y, [0]) if single else y

    aten(f"avg_pool{rank}d")(rule)


def _padded_average(op: Builder, x: Value, kernel: list[int], strides: list[int], pads: list[int]) -> Value:
    """torch counts its padding, and nothing beyond it: so the padding becomes part of the input.

    A window must not start in the trailing padding, which the pool no longer knows of: one that does is cut off, which
    takes known sizes. Where sizes vary the padding stays the pool's own; ONNX Runtime then divides by too much.
    """
    rank = len(kernel)
    spatial = list(x.shape)[-rank:]
    if not all(isinstance(size, int) for size in spatial):
        return op.AveragePool(x, kernel_shape=kernel, strides=strides, pads=pads * 2, ceil_mode=1, count_include_pad=1)
    padded = op.Pad(x, [0, 0, *pads] * 2, op.constant(0, x))
    y = op.AveragePool(padded, kernel_shape=kernel, strides=strides, ceil_mode=1, count_include_pad=0)
    spans = list(zip(map(int, spatial), kernel, strides, pads, strict=True))
    if all(-(-(n + 2 * p - k) // s) * s < n + p for n, k, s, p in spans):
        return y
    ends = [(n + p + s - 1) // s for n, _, s, p in spans]
    return op.Slice(y, [0] * rank, ends, list(range(2, rank + 2)), [1] * rank)


def _adaptive(rank: int) -> None:
    def rule(op: Builder, x: Value, output_size: Any) -> Value:
        sizes = [x.shape[axis - rank] if size is None else size for axis, size in enumerate(_each(output_size, rank))]
        if all(size == 1 for size in sizes):
            return op.ReduceMean(x, [axis - rank for axis in range(rank)], keepdims=1)
        return _adaptive_general(op, x, sizes, op.ReduceMean, op.AveragePool)

    def max_rule(op: Builder, x: Value, output_size: Any) -> tuple[Value, None]:
        sizes = [x.shape[axis - rank] if size is None else size for axis, size in enumerate(_each(output_size, rank))]
        if all(size == 1 for size in sizes):
            return op.ReduceMax(x, [axis - rank for axis in range(rank)], keepdims=1), None
        return _adaptive_general(op, x, sizes, op.ReduceMax, op.MaxPool), None

    aten(f"adaptive_avg_pool{rank}d", *([f"_adaptive_avg_pool{rank}d"] if rank > 1 else []))(rule)
    aten(f"adaptive_max_pool{rank}d")(max_rule)


def _adaptive_general(op: Builder, x: Value, sizes: list[Any], reduce: Any, pool: Any) -> Value:
    """Bin i covers floor(i·in/out) … ceil((i+1)·in/out): a plain pool when out divides in, else bin by bin."""
    rank = len(sizes)
    spatial = list(x.shape)[-rank:]
    if not all(isinstance(size, int) for size in [*spatial, *sizes]):
        raise UnsupportedError(
            f"adaptive pooling to {sizes} of sizes that vary ({spatial}); fix those axes with --static or dynamic axes"
        )
    if all(size % out == 0 for size, out in zip(spatial, sizes, strict=True)):
        kernel = [size // out for size, out in zip(spatial, sizes, strict=True)]
        return pool(x, kernel_shape=kernel, strides=kernel)
    for position, (size, out) in enumerate(zip(spatial, sizes, strict=True)):
        axis = len(x.shape) - rank + position
        if size == out:
            continue
        bins = [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]
        parts = [reduce(op.Slice(x, [start], [stop], [axis]), [axis], keepdims=1) for start, stop in bins]
        shape = list(x.shape)
        x = op.Concat(*parts, axis=axis)
        x.shape = ir.Shape([*shape[:axis], out, *shape[axis + 1 :]])
    return x


for _rank in (1, 2, 3):
    _max_pool(_rank)
    _avg_pool(_rank)
    _adaptive(_rank)
