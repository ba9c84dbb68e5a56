"""Pooling."""

from __future__ import annotations

from math import prod
from typing import Any

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Ref, call
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import dtype_of
from porter.converters.targets.torch.window import Ends, Window, explicit, one, padded_with, unless, window
from porter.converters.targets.types import Ints, Str, Tensor


def _arguments(over: Window, padding: Ints | None, ceil_mode: int) -> dict[str, Any]:
    return {
        "stride": None if over.strides == over.size else one(over.strides),
        "padding": None if padding is None else unless(one(padding), 0),
        "ceil_mode": bool(ceil_mode) or None,
    }


def _fits(over: Window) -> Ints | None:
    """The padding as PyTorch's pools take it: both ends alike and no more than half a window."""
    even = None if over.same else over.even
    return (
        even if even is not None and all(2 * pad <= size for pad, size in zip(even, over.size, strict=True)) else None
    )


def _with_overhang(over: Window, overhang: Ints) -> Ends:
    return tuple((begin, end + more) for (begin, end), more in zip(over.ends, overhang, strict=True))


@torch_op("MaxPool", layout="spatial")
def max_pool(
    x: Tensor,
    *,
    outs: list[Ref],
    kernel_shape: Ints,
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    ceil_mode: int = 0,
    storage_order: int = 0,
    auto_pad: Str = "NOTSET",
) -> Expr:
    """Padding is the least value there is."""
    over = window(kernel_shape, strides, pads, dilations, auto_pad, x.shape)
    padding = _fits(over)
    if len(outs) > 1 and (outs[1].value.uses() or outs[1].value.is_graph_output()):
        if over.same or not x.dtype.is_floating_point():
            raise CannotBind("indices of maxima of integers, or under a padding that varies with the size")
        ends = None
        if padding is None:
            ends, ceil_mode = _with_overhang(over, over.overhang(x.shape, ceil_mode)), 0
        given = _arguments(over, padding, ceil_mode) | {"dilation": unless(one(over.dilations), 1), "ends": ends}
        return call("max_pool_with_indices", x, one(over.size), column_major=bool(storage_order) or None, **given)
    narrow = not x.dtype.is_floating_point()
    if narrow and x.dtype not in (ir.DataType.INT8, ir.DataType.UINT8):
        raise CannotBind("maxima over windows of wide integers")
    data: Expr = call(".float", x) if narrow else x
    if padding is None:
        overhang = over.overhang(x.shape, ceil_mode)
        least = float("-inf")
        if over.same and narrow:
            raise CannotBind("SAME padding of integers whose size varies")
        if over.same:
            data, over = explicit(x, over, least)
        else:
            data, over = padded_with(data, _with_overhang(over, overhang), least), over.bare
        ceil_mode = 0
    given = _arguments(over, padding, ceil_mode) | {"dilation": unless(one(over.dilations), 1)}
    y = call(f"F.max_pool{over.rank}d", data, one(over.size), **given)
    return call(".to", y, dtype_of(x.dtype)) if narrow else y


@torch_op("AveragePool", layout="spatial")
def average_pool(
    x: Tensor,
    *,
    kernel_shape: Ints,
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    auto_pad: Str = "NOTSET",
) -> Expr:
    """PyTorch pads both ends alike and leaves no holes; otherwise the mean is a quotient of two."""
    over = window(kernel_shape, strides, pads, dilations, auto_pad, x.shape)
    padding = _fits(over)
    if padding is not None and not over.dilated:
        counted = bool(count_include_pad) or not any(padding)
        given = _arguments(over, padding, ceil_mode) | {"count_include_pad": None if counted else False}
        return call(f"F.avg_pool{over.rank}d", x, one(over.size), **given)
    overhang = over.overhang(x.shape, ceil_mode)
    if count_include_pad and not over.dilated and not any(overhang):
        padded, bare = explicit(x, over)
        return call(f"F.avg_pool{over.rank}d", padded, one(bare.size), **_arguments(bare, None, 0))
    dilation = over.dilations if over.dilated else None
    if over.same:
        ones: Expr = call("torch.ones_like", x)
        padded, bare = explicit(x, over)
        total = _summed(padded, bare)
        if count_include_pad:
            return total / prod(over.size)
        return total / _summed(call("pad_same", ones, over.reach, over.strides, lower=over.lower or None), bare)
    return call(
        "average_pool",
        x,
        over.size,
        over.strides,
        padding=_with_overhang(over, overhang),
        counted=over.ends if count_include_pad else None,
        dilation=dilation,
    )


def _summed(x: Expr, over: Window) -> Expr:
    """The sum over each window of what is padded already."""
    dilation = over.dilations if over.dilated else None
    return call("window_sum", x, over.size, over.strides, dilation=dilation)


@torch_op("LpPool", layout="spatial")
def lp_pool(
    x: Tensor,
    *,
    kernel_shape: Ints,
    strides: Ints = (),
    pads: Ints = (),
    dilations: Ints = (),
    ceil_mode: int = 0,
    p: int = 2,
    auto_pad: Str = "NOTSET",
) -> Expr:
    """PyTorch's own takes no absolute values; zeros around add nothing to powers."""
    over = window(kernel_shape, strides, pads, dilations, auto_pad, x.shape)
    if over.same:
        padded, over = explicit(x, over)
    else:
        padded, over = padded_with(x, _with_overhang(over, over.overhang(x.shape, ceil_mode))), over.bare
    return _root(_summed(_power(padded, p), over), p)


def _power(x: Expr, p: int) -> Expr:
    return x**2 if p == 2 else call("torch.abs", x) if p == 1 else call("torch.abs", x) ** p


def _root(total: Expr, p: int) -> Expr:
    return call("torch.sqrt", total) if p == 2 else total if p == 1 else total ** (1 / p)


@torch_op("GlobalAveragePool", "GlobalMaxPool", layout="spatial")
def global_pool(x: Tensor, *, op: str) -> Expr:
    kind = op.removeprefix("Global").removesuffix("Pool")
    if 3 <= x.rank <= 5:
        name = {"Average": "avg", "Max": "max"}[kind]
        return call(f"F.adaptive_{name}_pool{x.rank - 2}d", x, 1)
    axes = tuple(range(2, x.rank))
    return call({"Average": ".mean", "Max": ".amax"}[kind], x, axes, keepdim=True) if axes else x


@torch_op("GlobalLpPool", layout="spatial")
def global_lp_pool(x: Tensor, *, p: int = 2) -> Expr:
    return _root(call(".sum", _power(x, p), tuple(range(2, x.rank)), keepdim=True), p)
