"""Convolutions and pools: TensorFlow's channels last as ONNX's channels first, and its paddings as pads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.dims import add, multiply, subtract
from porter.converters.frontends.tensorflow.table import tf_op
from porter.errors import UnsupportedError

Value = ir.Value


def channels_first(op: Builder, x: Value, data_format: str) -> Value:
    """The image with its channels behind the batch."""
    rank = op.rank(x)
    return x if data_format.startswith("NC") else op.permute(x, [0, rank - 1, *range(1, rank - 1)])


def back(op: Builder, y: Value, data_format: str) -> Value:
    """The result in the order that the source has."""
    rank = op.rank(y)
    return y if data_format.startswith("NC") else op.permute(y, [0, *range(2, rank), 1])


def spatial(items: Sequence[int], data_format: str) -> list[int]:
    """The part of a list with one item for each axis that is about space.

    Raises:
        UnsupportedError: the list also moves along the batch or the channels.
    """
    inner, outer = (items[2:], items[:2]) if data_format.startswith("NC") else (items[1:-1], [items[0], items[-1]])
    if any(item != 1 for item in outer):
        raise UnsupportedError(f"windows over the batch or the channels: {list(items)}")
    return list(inner)


def paddings(
    padding: str,
    explicit: Sequence[int],
    data_format: str,
    sizes: Sequence[Any],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> dict[str, Any]:
    """The attributes of ONNX that pad as TensorFlow does.

    "SAME" pads so that ceil(size / stride) windows fit, the odd one at the end; where a size that varies decides how
    much that is, the node says `auto_pad`.
    """
    rank = len(kernel)
    if padding == "VALID":
        return {"pads": [0] * 2 * rank}
    if padding == "EXPLICIT":
        pairs = [tuple(explicit[2 * axis : 2 * axis + 2]) for axis in range(rank + 2)]
        inner = pairs[2:] if data_format.startswith("NC") else pairs[1:-1]
        if any(pair != (0, 0) for pair in pairs if pair not in inner):
            raise UnsupportedError(f"padding of the batch or the channels: {list(explicit)}")
        return {"pads": [begin for begin, _ in inner] + [end for _, end in inner]}
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    totals = []
    for size, extent, stride in zip(sizes, reach, strides, strict=True):
        if stride == 1:
            totals.append(extent - 1)
        elif isinstance(size, int):
            totals.append(max((-(-size // stride) - 1) * stride + extent - size, 0))
        else:
            return {"auto_pad": "SAME_UPPER"}
    return {"pads": [total // 2 for total in totals] + [total - total // 2 for total in totals]}


def _kernel(op: Builder, w: Value) -> list[int]:
    shape = op.shape_of(w)
    if not all(isinstance(size, int) for size in shape):
        raise UnsupportedError(f"a kernel whose size varies: {shape}")
    return [size for size in shape if isinstance(size, int)]


@tf_op("Conv2D", "Conv3D", ignored=["use_cudnn_on_gpu"])
def conv(
    op: Builder,
    x: Value,
    w: Value,
    *,
    strides: list[int],
    padding: str,
    data_format: str,
    dilations: list[int],
    explicit_paddings: list[int] | None = None,
) -> Value:
    """The kernel is (*space, input, output); fewer inputs than channels means groups."""
    x = channels_first(op, x, data_format)
    *kernel, inner, _ = _kernel(op, w)
    strides, dilations = spatial(strides, data_format), spatial(dilations, data_format)
    sizes = op.shape_of(x)
    channels = sizes[1]
    if not isinstance(channels, int):
        channels = inner  # a channel count that varies can only be what the kernel takes
    rank = len(kernel)
    y = op.Conv(
        x,
        op.Transpose(w, perm=[rank + 1, rank, *range(rank)]),
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        group=channels // inner,
        **paddings(padding, explicit_paddings or [], data_format, sizes[2:], kernel, strides, dilations),
    )
    return back(op, y, data_format)


@tf_op("DepthwiseConv2dNative")
def depthwise(
    op: Builder,
    x: Value,
    w: Value,
    *,
    strides: list[int],
    padding: str,
    data_format: str,
    dilations: list[int],
    explicit_paddings: list[int] | None = None,
) -> Value:
    """The kernel is (height, width, channels, multiplier)."""
    x = channels_first(op, x, data_format)
    *kernel, channels, multiplier = _kernel(op, w)
    strides, dilations = spatial(strides, data_format), spatial(dilations, data_format)
    y = op.Conv(
        x,
        op.Reshape(op.Transpose(w, perm=[2, 3, 0, 1]), [channels * multiplier, 1, *kernel]),
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        group=channels,
        **paddings(padding, explicit_paddings or [], data_format, op.shape_of(x)[2:], kernel, strides, dilations),
    )
    return back(op, y, data_format)


@tf_op("Conv2DBackpropInput", "Conv3DBackpropInputV2", ignored=["use_cudnn_on_gpu"])
def transposed(
    op: Builder,
    input_sizes: Value,
    w: Value,
    y: Value,
    *,
    strides: list[int],
    padding: str,
    data_format: str,
    dilations: list[int],
    explicit_paddings: list[int] | None = None,
) -> Value:
    """A transposed convolution: what it crops is what the convolution from `input_sizes` would pad."""
    y = channels_first(op, y, data_format)
    *kernel, _, inner = _kernel(op, w)
    strides, dilations = spatial(strides, data_format), spatial(dilations, data_format)
    wanted = op.content(input_sizes)
    if wanted is None:
        raise UnsupportedError("the output size of a transposed convolution is computed of data")
    if len(wanted) == len(kernel) + 2:
        wanted = wanted[2:] if data_format.startswith("NC") else wanted[1:-1]
    given = op.shape_of(y)
    begins, ends, extra = [], [], []
    explicit = (
        paddings(padding, explicit_paddings or [], data_format, [], kernel, strides, dilations)["pads"]
        if (padding != "SAME")
        else [0] * 2 * len(kernel)
    )
    for axis, size in enumerate(wanted):
        full = add(multiply(add(given[axis + 2], -1), strides[axis]), dilations[axis] * (kernel[axis] - 1) + 1)
        more = subtract(size, full)
        if not isinstance(more, int):
            raise UnsupportedError(
                f"a transposed convolution to {size}, where a whole number of strides gives {full}: fix the sizes"
            )
        if padding == "SAME":
            crop = max(-more, 0)
            begins.append(crop // 2)
            ends.append(crop - crop // 2)
            extra.append(max(more, 0))
        else:
            begin, end = explicit[axis], explicit[axis + len(kernel)]
            begins.append(begin)
            ends.append(end)
            extra.append(more + begin + end)
    rank = len(kernel)
    channels = given[1]
    result = op.ConvTranspose(
        y,
        op.Transpose(w, perm=[rank + 1, rank, *range(rank)]),
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=[*begins, *ends],
        output_padding=extra,
        group=channels // inner if isinstance(channels, int) else 1,
    )
    return back(op, result, data_format)


# ---- pools ----


def _pool(
    op: Builder,
    kind: str,
    x: Value,
    ksize: list[int],
    strides: list[int],
    padding: str,
    data_format: str,
    explicit: list[int],
    **settings: Any,
) -> Value:
    x = channels_first(op, x, data_format)
    kernel, strides = spatial(ksize, data_format), spatial(strides, data_format)
    pads = paddings(padding, explicit, data_format, op.shape_of(x)[2:], kernel, strides, [1] * len(kernel))
    return back(op, getattr(op, kind)(x, kernel_shape=kernel, strides=strides, **pads, **settings), data_format)


@tf_op("MaxPool", "MaxPool3D")
def max_pool(
    op: Builder,
    x: Value,
    *,
    ksize: list[int],
    strides: list[int],
    padding: str,
    data_format: str,
    explicit_paddings: list[int] | None = None,
) -> Value:
    return _pool(op, "MaxPool", x, ksize, strides, padding, data_format, explicit_paddings or [])


@tf_op("MaxPoolV2")
def max_pool_v2(op: Builder, x: Value, ksize: Value, strides: Value, *, padding: str, data_format: str) -> Value:
    sizes, steps = op.ints(ksize, "window"), op.ints(strides, "strides")
    return _pool(op, "MaxPool", x, sizes, steps, padding, data_format, [])


@tf_op("AvgPool", "AvgPool3D")
def average_pool(
    op: Builder, x: Value, *, ksize: list[int], strides: list[int], padding: str, data_format: str
) -> Value:
    """What lies outside of the image is not counted."""
    return _pool(op, "AveragePool", x, ksize, strides, padding, data_format, [], count_include_pad=0)
