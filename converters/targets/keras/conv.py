"""Convolutions and their transposes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter.converters import weights as wx
from porter.converters.codegen.nodes import Expr, call, layer
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.window import Window, cropped, padded_same, window, zero_padded
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Dims, Ints, Str, Tensor, Weight


@keras_op("Conv", layout="spatial")
def conv(
    x: Tensor,
    w: Weight,
    b: Weight | None = None,
    *,
    kernel_shape: Ints = (),
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    group: int = 1,
    auto_pad: Str = "NOTSET",
) -> Expr:
    """Keras pads evenly or not at all, so any other padding is a separate step."""
    over, padded = _explicit(window(w.spatial, strides, pads, dilations, auto_pad, x.shape), x)
    return _convolution(padded, w, b, over, group)


def _explicit(over: Window, x: Tensor) -> tuple[Window, Expr]:
    """Keras has a name for SAME_UPPER, and only where a layer strides or dilates and not both."""
    if not over.same or (over.padding and not (over.dilated and max(over.strides) > 1)):
        return over, x
    padded, bare = padded_same(x, over)
    return bare, padded


def _convolution(x: Expr, w: Weight, b: Weight | None, over: Window, group: int) -> Expr:
    """The layer for a kernel stored as (out, in / group, *spatial); one filter or more per channel is depthwise.

    Keras strides or dilates but not both: then every position is computed and the stride picks some.
    """
    if over.padding is None:
        x, over = zero_padded(x, over.ends), Window(over.size, over.strides, (0,) * (2 * over.rank), over.dilations)
    if over.dilated and max(over.strides) > 1:
        x, dense = (x if over.padding == "valid" else zero_padded(x, over.ends)), _dense(over)
        return _every(_convolution(x, w, b, dense, group), over.strides)
    common: dict[str, Any] = {"kernel_size": over.size, "strides": over.strides, "padding": over.padding}
    common |= {"dilation_rate": over.dilations, "use_bias": b is not None}
    # TensorFlow's depthwise kernels want one stride for both axes.
    if group > 1 and w.shape[1] == 1 and over.rank < 3 and len(set(over.strides)) == 1:
        multiplier = w.shape[0] // group
        kernel = w.reshaped(group, multiplier, *over.size).moved("IM*->*IM")
        return layer(
            f"DepthwiseConv{over.rank}D", depth_multiplier=multiplier, weights={"kernel": kernel, "bias": b}, **common
        )(x)
    kernel = w.moved("OI*->*IO")
    return layer(
        f"Conv{over.rank}D", filters=w.shape[0], groups=group, weights={"kernel": kernel, "bias": b}, **common
    )(x)


def _dense(over: Window) -> Window:
    """The window at every position of an input that is padded already."""
    return Window(over.size, (1,) * over.rank, (0,) * (2 * over.rank), over.dilations)


def _every(y: Expr, strides: Ints) -> Expr:
    """The positions that the strides pick."""
    return y[(slice(None), *(slice(None, None, stride if stride > 1 else None) for stride in strides))]


@keras_op("Conv", layout="spatial")
def conv_functional(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    kernel_shape: Ints = (),
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    group: int = 1,
    auto_pad: Str = "NOTSET",
) -> Expr:
    """With a kernel that is computed or that others share; the groups follow from the kernel's channels."""
    over, padded = _explicit(window(_known(w.shape[2:]), strides, pads, dilations, auto_pad, x.shape), x)
    picks = over.dilated and max(over.strides) > 1
    if over.padding is None or (picks and over.padding != "valid"):
        padded, over = zero_padded(padded, over.ends), replace(over, pads=(0,) * (2 * over.rank))
    y: Expr = call(
        "ops.conv",
        padded,
        call("ops.transpose", w, (*range(2, w.rank), 1, 0)),
        strides=(1,) * over.rank if picks else over.strides,
        padding=over.padding,
        data_format="channels_last",
        dilation_rate=over.dilations,
    )
    y = _every(y, over.strides) if picks else y
    return y if b is None else y + b


def _known(sizes: tuple[int | str, ...]) -> Ints:
    if not all(isinstance(size, int) for size in sizes):
        raise CannotBind(f"a kernel of size {sizes}, which varies")
    return tuple(int(size) for size in sizes)


@keras_op("ConvTranspose", layout="spatial")
def conv_transpose(
    x: Tensor,
    w: Weight,
    b: Weight | None = None,
    *,
    kernel_shape: Ints = (),
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    output_padding: Ints = (),
    output_shape: Ints = (),
    group: int = 1,
    auto_pad: Str = "NOTSET",
) -> Expr:
    """ONNX's pads take from the result. Keras gives all of it ("valid"), and a crop follows.

    Keras has no groups here and TensorFlow no dilation: then it is a convolution of the input spread by the strides.
    """
    over, extra = _transposed_window(x, w.spatial, strides, pads, dilations, output_padding, output_shape, auto_pad)
    if group > 1 or over.dilated:
        return _as_convolution(x, w, b, over, extra, group)
    plan = _layer_padding(over, extra)
    if plan is None:
        return _as_convolution(x, w, b, over, extra, group)
    padding, added, crop = plan
    y = layer(
        f"Conv{over.rank}DTranspose",
        filters=w.shape[1],
        kernel_size=over.size,
        strides=over.strides,
        padding=padding,
        output_padding=added,
        use_bias=b is not None,
        weights={"kernel": w.moved("IO*->*OI"), "bias": b},
    )(x)
    return cropped(y, crop)


def _transposed_window(
    x: Tensor,
    spatial: Ints,
    strides: Ints,
    pads: Ints,
    dilations: Ints,
    output_padding: Ints,
    output_shape: Ints,
    auto_pad: str,
) -> tuple[Window, Ints]:
    """The window, and what is added at the ends; padding may be given by the size of the result instead."""
    rank = len(spatial)
    over = window(spatial, strides, () if auto_pad == "VALID" else pads, dilations, "NOTSET", x.shape)
    extra = tuple(output_padding) or (0,) * rank
    if not output_shape and auto_pad in ("NOTSET", "", "VALID"):
        return over, extra
    totals = []
    for axis, (stride, reach, added) in enumerate(zip(over.strides, over.reach, extra, strict=True)):
        length = x.shape[1 + axis]
        if output_shape and not isinstance(length, int):
            raise CannotBind(f"output_shape for an input of size {length}, which varies")
        taken = output_shape[axis] - stride * (int(length) - 1) if output_shape else stride
        totals.append(reach + added - taken)
    # A result larger than what the windows cover goes on at the ends.
    extra = tuple(added + max(-total, 0) for added, total in zip(extra, totals, strict=True))
    totals = [max(total, 0) for total in totals]
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    found = (*small, *large) if auto_pad == "SAME_UPPER" else (*large, *small)
    return Window(over.size, over.strides, found, over.dilations), extra


def _layer_padding(over: Window, extra: Ints) -> tuple[str, Ints | None, tuple[tuple[int, int], ...]] | None:
    """(padding, output_padding, crop) for Keras' layer; None when it can't reach the size.

    "valid" gives (n - 1) * stride + max(kernel, stride) elements, and with output_padding
    (n - 1) * stride + kernel + output_padding; what lies behind the last window is real: it is the bias.
    """
    gaps = tuple(size - stride for size, stride in zip(over.size, over.strides, strict=True))
    half = (*(gap // 2 for gap in gaps), *(gap - gap // 2 for gap in gaps))
    if not any(extra) and min(gaps) >= 0 and any(over.pads) and over.pads == half:
        return "same", None, ((0, 0),) * over.rank
    tails = [max(-gap, 0) + end - added for gap, (_, end), added in zip(gaps, over.ends, extra, strict=True)]
    if min(tails) >= 0:
        return "valid", None, tuple((begin, tail) for (begin, _), tail in zip(over.ends, tails, strict=True))
    added = tuple(max(more - end, 0) for (_, end), more in zip(over.ends, extra, strict=True))
    if any(more >= stride for more, stride in zip(added, over.strides, strict=True)):
        return None
    crop = tuple((begin, max(end - more, 0)) for (begin, end), more in zip(over.ends, extra, strict=True))
    return "valid", added, crop


def _as_convolution(x: Expr, w: Weight, b: Weight | None, over: Window, extra: Ints, group: int) -> Expr:
    """The same sum as a convolution: the input spread by the strides, the kernel flipped, in and out exchanged."""
    x, plain = _spread(x, over, extra)
    grouped = w.reshaped(group, w.shape[0] // group, *w.shape[1:]).moved("GIO*->GOI*")
    kernel = grouped.reshaped(w.shape[1] * group, w.shape[0] // group, *over.size)
    flipped = kernel.with_expr(wx.flip(kernel.expr, range(2, kernel.rank)))
    return _convolution(x, flipped, b, plain, group)


def _spread(x: Expr, over: Window, extra: Ints) -> tuple[Expr, Window]:
    """The input of the convolution that a transposed one is, and its window."""
    if max(over.strides) > 1:
        x = call("spread", x, over.strides)
    ends = tuple(
        (reach - 1 - begin, reach - 1 - end + more)
        for reach, (begin, end), more in zip(over.reach, over.ends, extra, strict=True)
    )
    x = cropped(x, tuple((max(-begin, 0), max(-end, 0)) for begin, end in ends))
    pads = (*(max(begin, 0) for begin, _ in ends), *(max(end, 0) for _, end in ends))
    return x, Window(over.size, (1,) * over.rank, pads, over.dilations)


@keras_op("ConvTranspose", layout="spatial")
def conv_transpose_functional(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    kernel_shape: Ints = (),
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    output_padding: Ints = (),
    output_shape: Ints = (),
    group: int = 1,
    auto_pad: Str = "NOTSET",
) -> Expr:
    """With a kernel that is computed or that others share."""
    sizes = _known(w.shape[2:])
    over, extra = _transposed_window(x, sizes, strides, pads, dilations, output_padding, output_shape, auto_pad)
    plan = None if group > 1 or over.dilated else _layer_padding(over, extra)
    if plan is None:
        return _functional_as_convolution(x, w, b, over, extra, group)
    padding, added, crop = plan
    y = call(
        "ops.conv_transpose",
        x,
        call("ops.transpose", w, (*range(2, w.rank), 1, 0)),
        strides=over.strides,
        padding=padding,
        output_padding=added,
        data_format="channels_last",
    )
    return cropped(y if b is None else y + b, crop)


def _functional_as_convolution(x: Tensor, w: Tensor, b: Tensor | None, over: Window, extra: Ints, group: int) -> Expr:
    spread, plain = _spread(x, over, extra)
    kernel: Expr = w
    inside, outside = w.shape[0], w.shape[1]
    if group > 1:
        if not isinstance(inside, int) or not isinstance(outside, int):
            raise CannotBind(f"groups of a computed kernel with channels ({inside}, {outside}), which vary")
        kernel = call("ops.reshape", kernel, (group, inside // group, outside, *over.size))
        kernel = call("ops.transpose", kernel, (*range(3, 3 + over.rank), 1, 0, 2))
        kernel = call("ops.reshape", kernel, (*over.size, inside // group, group * outside))
    else:
        kernel = call("ops.transpose", kernel, (*range(2, 2 + over.rank), 0, 1))
    y = call(
        "ops.conv",
        zero_padded(spread, plain.ends),
        call("ops.flip", kernel, axis=tuple(range(over.rank))),
        padding="valid",
        data_format="channels_last",
        dilation_rate=over.dilations,
    )
    return y if b is None else y + b


@keras_op("Col2Im", layout="fixed")
def col2im(
    x: Tensor,
    image_shape: Dims,
    block_shape: Ints,
    *,
    dilations: Ints = (),
    pads: Ints = (),
    strides: Ints = (),
) -> Expr:
    """A sum of windows; Keras has only the way there."""
    over = window(block_shape, strides, pads, dilations, "NOTSET", x.shape)
    return call("fold", x, tuple(image_shape), over.size, over.strides, padding=over.ends, dilation_rate=over.dilations)
