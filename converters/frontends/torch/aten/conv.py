"""Convolutions. torch pads both ends of an axis alike; strings are "same" (at stride 1) and "valid"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten

Value = ir.Value


def _each(value: Any, rank: int) -> list[int]:
    items = list(value) if isinstance(value, Sequence) else [value]
    return items * rank if len(items) == 1 else items


def _batched(op: Builder, x: Value, rank: int) -> tuple[Value, bool]:
    """torch also takes an image without a batch axis."""
    return (op.Unsqueeze(x, [0]), True) if len(x.shape) == rank + 1 else (x, False)


def _pads(padding: Any, kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    rank = len(kernel)
    if padding == "valid":
        return [0] * (2 * rank)
    if padding == "same":
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [t // 2 for t in total] + [t - t // 2 for t in total]
    return _each(padding, rank) * 2


def _convolve(
    op: Builder, x: Value, weight: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Value:
    kernel = [int(size) for size in weight.shape[2:]]
    rank = len(kernel)
    x, single = _batched(op, x, rank)
    dilation = _each(dilation, rank)
    y = op.Conv(
        x,
        weight,
        bias,
        kernel_shape=kernel,
        strides=_each(stride, rank),
        pads=_pads(padding, kernel, dilation),
        dilations=dilation,
        group=groups,
    )
    return op.Squeeze(y, [0]) if single else y


@aten("conv1d", "conv2d", "conv3d", "conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv(
    op: Builder,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    return _convolve(op, x, weight, bias, stride, padding, dilation, groups)


@aten("convolution")
def convolution(
    op: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Value:
    if transposed:
        return conv_transpose(op, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolve(op, x, weight, bias, stride, padding, dilation, groups)


@aten("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(
    op: Builder,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Value:
    kernel = [int(size) for size in weight.shape[2:]]
    rank = len(kernel)
    x, single = _batched(op, x, rank)
    y = op.ConvTranspose(
        x,
        weight,
        bias,
        kernel_shape=kernel,
        strides=_each(stride, rank),
        pads=_each(padding, rank) * 2,
        output_padding=_each(output_padding, rank),
        dilations=_each(dilation, rank),
        group=groups,
    )
    return op.Squeeze(y, [0]) if single else y
