"""Convolutions and their transposes."""

from __future__ import annotations

from typing import Any

from porter.converters.codegen.nodes import Expr, Literal, call, layer
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.window import Window, explicit, one, unless, window
from porter.converters.targets.types import Ints, Str, Tensor, Weight


@torch_op("Conv", layout="spatial")
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
    """PyTorch pads both ends alike, or "same"; any other padding is a separate step."""
    padded, over, padding = _padding(x, window(w.spatial, strides, pads, dilations, auto_pad, x.shape))
    return layer(
        f"nn.Conv{over.rank}d",
        in_channels=w.shape[1] * group,
        out_channels=w.shape[0],
        kernel_size=over.size,
        stride=over.strides,
        padding=padding,
        dilation=over.dilations,
        groups=group,
        bias=b is not None,
        weights={"weight": w, "bias": b},
    )(padded)


def _padding(x: Tensor, over: Window) -> tuple[Expr, Window, Ints | str]:
    """What is convolved, by which window, with which padding."""
    if over.even is not None and not over.same:
        return x, over, over.even
    same = tuple(((reach - 1) // 2, reach // 2) for reach in over.reach)
    if over.ends == same and set(over.strides) == {1}:
        return x, over, "same"
    padded, bare = explicit(x, over)
    return padded, bare, (0,) * over.rank


@torch_op("Conv", layout="spatial")
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
    """With a kernel that is computed or that others share."""
    padded, over, padding = _padding(x, window(_known(w.shape[2:]), strides, pads, dilations, auto_pad, x.shape))
    given: dict[str, Any] = {"stride": unless(one(over.strides), 1), "dilation": unless(one(over.dilations), 1)}
    given |= {"padding": unless(padding if isinstance(padding, str) else one(padding), 0), "groups": unless(group, 1)}
    return call(f"F.conv{over.rank}d", padded, w, *([] if b is None else [b]), **given)


def _known(sizes: tuple[int | str, ...]) -> Ints:
    if not all(isinstance(size, int) for size in sizes):
        raise CannotBind(f"a kernel of size {sizes}, which varies")
    return tuple(int(size) for size in sizes)


@torch_op("ConvTranspose", layout="spatial")
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
    """ONNX's pads take from the result. PyTorch takes both ends alike: what is more at one end is cut off."""
    over, extra = _transposed_window(x, w.spatial, strides, pads, dilations, output_padding, output_shape, auto_pad)
    padding, added, crop = _cut(over, extra)
    y = layer(
        f"nn.ConvTranspose{over.rank}d",
        in_channels=w.shape[0],
        out_channels=w.shape[1] * group,
        kernel_size=over.size,
        stride=over.strides,
        padding=padding,
        output_padding=added,
        groups=group,
        bias=b is not None,
        dilation=over.dilations,
        weights={"weight": w, "bias": b},
    )(x)
    return _cropped(y, crop)


def _cut(over: Window, extra: Ints) -> tuple[Ints, Ints, tuple[tuple[int, int], ...]]:
    """(padding, output_padding, crop): less at the end than at the begin is output padding, more is a crop."""
    parts: list[tuple[int, int, tuple[int, int]]] = []
    axes = zip(over.ends, extra, over.strides, over.dilations, strict=True)
    for (begin, end), more, stride, dilation in axes:
        less = begin - end + more  # what the end has more than a padding of `begin` leaves
        if 0 <= less < max(stride, dilation):
            parts.append((begin, less, (0, 0)))
            continue
        both = max(min(begin, end), 0)
        if more >= max(stride, dilation) or begin < 0 or end < 0:
            raise CannotBind(f"a result that goes on {more} elements behind its last window (output_padding)")
        parts.append((both, more, (begin - both, end - both)))
    padding, added, crop = zip(*parts, strict=True)
    return padding, added, crop


def _cropped(y: Expr, ends: tuple[tuple[int, int], ...]) -> Expr:
    """Without the ends of the spatial axes."""
    if not any(begin or end for begin, end in ends):
        return y
    items = (slice(begin or None, -end if end else None) for begin, end in ends)
    return y[(Literal(...), *items)]


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
        length = x.shape[2 + axis]
        if output_shape and not isinstance(length, int):
            raise CannotBind(f"output_shape for an input of size {length}, which varies")
        taken = output_shape[axis] - stride * (int(length) - 1) if output_shape else stride
        totals.append(reach + added - taken)
    # A result larger than what the windows cover goes on at the ends.
    extra = tuple(added + max(-total, 0) for added, total in zip(extra, totals, strict=True))
    totals = [max(total, 0) for total in totals]
    ends = ((total // 2, total - total // 2) for total in totals)
    found = tuple(pair if auto_pad == "SAME_UPPER" else pair[::-1] for pair in ends)
    return Window(over.size, over.strides, found, over.dilations), extra


@torch_op("ConvTranspose", layout="spatial")
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
    padding, added, crop = _cut(over, extra)
    y = call(
        f"F.conv_transpose{over.rank}d",
        x,
        w,
        *([] if b is None else [b]),
        stride=unless(one(over.strides), 1),
        padding=unless(one(padding), 0),
        output_padding=unless(one(added), 0),
        groups=unless(group, 1),
        dilation=unless(one(over.dilations), 1),
    )
    return _cropped(y, crop)
