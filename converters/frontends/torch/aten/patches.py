"""Windows of an image as columns, and back; whole normalisations as torch's core operators name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.aten.norm import batch_norm, group_norm, layer_norm
from porter.converters.frontends.torch.table import aten

Value = ir.Value
_END = 2**63 - 1


@aten("im2col")
def im2col(
    op: Builder, x: Value, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Value:
    """One strided slice for every place in the window, stacked behind the channels."""
    if any(padding):
        lead = [0] * (len(x.shape) - 2)
        x = op.Pad(x, [*lead, *padding] * 2, op.constant(0, x))
    places = []
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            begins = [row * dilation[0], column * dilation[1]]
            left = [(k - 1 - i) * d for k, i, d in zip(kernel, (row, column), dilation, strict=True)]
            piece = op.Slice(x, begins, [-n if n else _END for n in left], [-2, -1], list(stride))
            places.append(op.Unsqueeze(piece, [-3]))
    return op.Reshape(op.Concat(*places, axis=-3), op.shape_of_output())


@aten("col2im")
def col2im(
    op: Builder,
    x: Value,
    output_size: Sequence[Any],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    single = len(x.shape) == 2
    x = op.Unsqueeze(x, [0]) if single else x
    y = op.Col2Im(
        x,
        op.vector(list(output_size)),
        op.vector(list(kernel)),
        dilations=list(dilation),
        pads=list(padding) * 2,
        strides=list(stride),
    )
    return op.Squeeze(y, [0]) if single else y


@aten("_native_batch_norm_legit_no_training")
def native_batch_norm(
    op: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, None, None]:
    return batch_norm(op, x, weight, bias, mean, var, False, momentum, eps, False), None, None


@aten("native_layer_norm")
def native_layer_norm(
    op: Builder, x: Value, normalized_shape: Sequence[int], weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, None, None]:
    return layer_norm(op, x, normalized_shape, weight, bias, eps), None, None


@aten("native_group_norm")
def native_group_norm(
    op: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    batch: Any,
    channels: Any,
    inner: Any,
    groups: int,
    eps: float,
) -> tuple[Value, None, None]:
    return group_norm(op, x, groups, weight, bias, eps), None, None
