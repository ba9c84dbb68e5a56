"""Convolutions. Keras pads for "same" below and to the right first, and keeps its kernels with the channels last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from keras.src.backend.common.backend_utils import compute_conv_transpose_output_shape

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import each, moved, promoted, rank, to_back, to_front
from porter.converters.frontends.keras.table import keras_layer, keras_operation
from porter.errors import UnsupportedError

Value = ir.Value


def padding_of(
    padding: str, sizes: Sequence[Any], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> dict[str, Any]:
    """The attributes `pads` or `auto_pad` for "valid", "same" and "causal" over the spatial `sizes`."""
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    if padding == "valid":
        return {"pads": [0] * (2 * len(spans))}
    if padding == "causal":
        return {"pads": [span - 1 for span in spans] + [0] * len(spans)}
    totals = []
    for size, span, stride in zip(sizes, spans, strides, strict=True):
        if stride == 1:
            totals.append(span - 1)
        elif isinstance(size, int):
            totals.append(max((math.ceil(size / stride) - 1) * stride + span - size, 0))
        elif span <= stride and span == 1:
            totals.append(0)
        else:
            return {"auto_pad": "SAME_UPPER"}
    return {"pads": [total // 2 for total in totals] + [total - total // 2 for total in totals]}


def channels_last(data_format: str | None) -> bool:
    """Whether the channel axis is the last; None is Keras' own setting."""
    import keras

    return (data_format or keras.config.image_data_format()) == "channels_last"


def _onnx_kernel(op: Builder, kernel: Value) -> Value:
    """(*spatial, in, out) as (out, in, *spatial); of transposed convolutions (*spatial, out, in) as (in, out, …)."""
    n = rank(kernel)
    return moved(op, kernel, [n - 1, n - 2, *range(n - 2)])


def convolve(
    op: Builder,
    x: Value,
    kernel: Value,
    bias: Value | None = None,
    *,
    strides: Any,
    padding: str,
    data_format: str | None,
    dilation_rate: Any,
    groups: int | None = None,
    onnx_kernel: Value | None = None,
) -> Value:
    """A convolution with a kernel of Keras' layout; `onnx_kernel` is one that has ONNX's already."""
    spatial = [int(size) for size in kernel.shape[:-2]]
    last = channels_last(data_format)
    front = to_front(op, x, last)
    strides, dilations = each(strides, len(spatial)), each(dilation_rate, len(spatial))
    y = op.Conv(
        front,
        onnx_kernel if onnx_kernel is not None else _onnx_kernel(op, kernel),
        bias,
        kernel_shape=spatial,
        strides=strides,
        dilations=dilations,
        group=groups if groups is not None else int(front.shape[1]) // int(kernel.shape[-2]),
        **padding_of(padding, list(front.shape)[2:], spatial, strides, dilations),
    )
    return to_back(op, y, last, rank(x))


@keras_layer("Conv1D", "Conv2D", "Conv3D", activates=True)
def conv(op: Builder, layer: Any, inputs: Value) -> Value:
    return convolve(
        op,
        inputs,
        layer.kernel,
        layer.bias if layer.use_bias else None,
        strides=layer.strides,
        padding=layer.padding,
        data_format=layer.data_format,
        dilation_rate=layer.dilation_rate,
        groups=layer.groups,
    )


@keras_operation("Conv")
def conv_operation(
    op: Builder, inputs: Any, kernel: Any, *, strides: Any, padding: str, data_format: str | None, dilation_rate: Any
) -> Value:
    x, w = promoted(op, inputs, kernel)
    return convolve(op, x, w, strides=strides, padding=padding, data_format=data_format, dilation_rate=dilation_rate)


def _depthwise_kernel(op: Builder, kernel: Value) -> Value:
    """(*spatial, in, multiplier) as (in · multiplier, 1, *spatial)."""
    n = rank(kernel)
    *spatial, channels, multiplier = (int(size) for size in kernel.shape)
    if multiplier == 1:
        return moved(op, kernel, [n - 2, n - 1, *range(n - 2)])
    w = op.Reshape(moved(op, kernel, [n - 2, n - 1, *range(n - 2)]), [channels * multiplier, 1, *spatial])
    w.shape = ir.Shape([channels * multiplier, 1, *spatial])
    return w


@keras_layer("DepthwiseConv1D", "DepthwiseConv2D", activates=True)
def depthwise(op: Builder, layer: Any, inputs: Value) -> Value:
    return convolve(
        op,
        inputs,
        layer.kernel,
        layer.bias if layer.use_bias else None,
        strides=layer.strides,
        padding=layer.padding,
        data_format=layer.data_format,
        dilation_rate=layer.dilation_rate,
        groups=int(layer.kernel.shape[-2]),
        onnx_kernel=_depthwise_kernel(op, layer.kernel),
    )


@keras_operation("DepthwiseConv")
def depthwise_operation(
    op: Builder, inputs: Any, kernel: Any, *, strides: Any, padding: str, data_format: str | None, dilation_rate: Any
) -> Value:
    x, w = promoted(op, inputs, kernel)
    return convolve(
        op,
        x,
        w,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        groups=int(w.shape[-2]),
        onnx_kernel=_depthwise_kernel(op, w),
    )


@keras_layer("SeparableConv1D", "SeparableConv2D", activates=True)
def separable(op: Builder, layer: Any, inputs: Value) -> Value:
    return _separable(
        op,
        inputs,
        layer.depthwise_kernel,
        layer.pointwise_kernel,
        layer.bias if layer.use_bias else None,
        strides=layer.strides,
        padding=layer.padding,
        data_format=layer.data_format,
        dilation_rate=layer.dilation_rate,
    )


@keras_operation("SeparableConv")
def separable_operation(
    op: Builder,
    inputs: Value,
    depthwise_kernel: Value,
    pointwise_kernel: Value,
    *,
    strides: Any,
    padding: str,
    data_format: str | None,
    dilation_rate: Any,
) -> Value:
    return _separable(
        op,
        inputs,
        depthwise_kernel,
        pointwise_kernel,
        None,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
    )


def _separable(
    op: Builder, x: Value, depth: Value, point: Value, bias: Value | None, *, data_format: str | None, **how: Any
) -> Value:
    """Each channel by itself, then all of them at each place."""
    y = convolve(
        op,
        x,
        depth,
        groups=int(depth.shape[-2]),
        onnx_kernel=_depthwise_kernel(op, depth),
        data_format=data_format,
        **how,
    )
    last = channels_last(data_format)
    front = to_front(op, y, last) if y.shape is not None else _front_again(op, y, last, rank(x))
    n = rank(x) - 2
    y = op.Conv(
        front,
        _onnx_kernel(op, point),
        bias,
        kernel_shape=[1] * n,
        strides=[1] * n,
        dilations=[1] * n,
        pads=[0] * (2 * n),
        group=1,
    )
    return to_back(op, y, last, rank(x))


def _front_again(op: Builder, y: Value, last: bool, n: int) -> Value:
    """What was just put in back, from before it was."""
    producer = y.producer()
    if last and producer is not None and producer.op_type == "Transpose":
        return producer.inputs[0]
    return op.Transpose(y, perm=[0, n - 1, *range(1, n - 1)]) if last else y


@keras_layer("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", activates=True)
def conv_transpose(op: Builder, layer: Any, inputs: Value) -> Value:
    return _conv_transpose(
        op,
        inputs,
        layer.kernel,
        layer.bias if layer.use_bias else None,
        layer.strides,
        layer.padding,
        layer.output_padding,
        layer.data_format,
        layer.dilation_rate,
    )


@keras_operation("ConvTranspose")
def conv_transpose_operation(
    op: Builder,
    inputs: Any,
    kernel: Any,
    *,
    strides: Any,
    padding: str,
    output_padding: Any,
    data_format: str | None,
    dilation_rate: Any,
) -> Value:
    x, w = promoted(op, inputs, kernel)
    return _conv_transpose(op, x, w, None, strides, padding, output_padding, data_format, dilation_rate)


def _conv_transpose(
    op: Builder,
    x: Value,
    kernel: Value,
    bias: Value | None,
    strides: Any,
    padding: str,
    output_padding: Any,
    data_format: str | None,
    dilation_rate: Any,
) -> Value:
    spatial = [int(size) for size in kernel.shape[:-2]]
    count = len(spatial)
    strides, dilations = each(strides, count), each(dilation_rate, count)
    begins, ends, extra = _transposed_padding(spatial, strides, padding, output_padding, dilations)
    last = channels_last(data_format)
    y = op.ConvTranspose(
        to_front(op, x, last),
        _onnx_kernel(op, kernel),
        bias,
        kernel_shape=spatial,
        strides=strides,
        dilations=dilations,
        pads=begins + ends,
        output_padding=extra,
        group=1,
    )
    return to_back(op, y, last, rank(x))


def _transposed_padding(
    kernel: list[int], strides: list[int], padding: str, output_padding: Any, dilations: list[int]
) -> tuple[list[int], list[int], list[int]]:
    """What is cut off in front and behind, and added behind: the same for every size of the input."""
    size = 64
    wanted = compute_conv_transpose_output_shape(
        (1, *[size] * len(kernel), 1),
        tuple(kernel),
        1,
        tuple(strides),
        padding,
        output_padding,
        "channels_last",
        tuple(dilations),
    )[1:-1]
    begins, ends, extra = [], [], []
    for k, s, d, out in zip(kernel, strides, dilations, wanted, strict=True):
        beyond = (size - 1) * s + d * (k - 1) + 1 - int(out)
        cut = max(beyond, 0)
        if padding == "valid":
            begins.append(0)
        else:
            begins.append(cut // 2)
        ends.append(cut - begins[-1])
        extra.append(max(-beyond, 0))
        if extra[-1] and extra[-1] >= max(s, d):
            raise UnsupportedError(f"a transposed convolution with {extra[-1]} zeros behind, more than its stride {s}")
    return begins, ends, extra
