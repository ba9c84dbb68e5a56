"""Pooling."""

from __future__ import annotations

from math import prod

from porter.converters.codegen.nodes import Expr, Ref, Verbatim, call, layer
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.window import Window, padded_same, padded_with, window, zero_padded
from porter.converters.targets.types import Ints, Str, Tensor

_Ends = tuple[tuple[int, int], ...]


def _with_overhang(over: Window, overhang: Ints) -> _Ends:
    return tuple((begin, end + more) for (begin, end), more in zip(over.ends, overhang, strict=True))


def _pooled(kind: str, x: Expr, over: Window, padding: str) -> Expr:
    """Keras' layer; in 3-D a function, since TensorFlow pools volumes up to float32 only."""
    if over.rank == 3:
        function = {"Max": "ops.max_pool", "Average": "ops.average_pool"}[kind]
        return call("pool_3d", Verbatim(function), x, over.size, over.strides, padding=padding)
    strides = over.strides if over.strides != over.size else None
    return layer(f"{kind}Pooling{over.rank}D", pool_size=over.size, strides=strides, padding=padding)(x)


@keras_op("MaxPool", layout="spatial")
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
    """ONNX pads with the least value there is, Keras only where it pads by itself ("same").

    Where nothing is negative, zeros are as good. Their share of a gradient would come back to zeros of a ReLU, which
    passes none on.
    """
    over = window(kernel_shape, strides, pads, dilations, auto_pad, x.shape)
    overhang = over.overhang(x.shape, ceil_mode)
    least = float("-inf") if x.dtype.is_floating_point() else int(x.dtype.min)
    if len(outs) > 1 and (outs[1].value.uses() or outs[1].value.is_graph_output()):
        order = bool(storage_order) or None
        ends: Expr | _Ends = _with_overhang(over, overhang)
        if over.same:
            ends = call("same_padding", x, over.reach, over.strides, lower=over.lower or None)
        return call(
            "max_pool_with_indices", x, over.size, over.strides, ends, over.dilations, least, column_major=order
        )
    if over.padding and not over.dilated and not any(overhang):
        return _pooled("Max", x, over, over.padding)
    if over.hangs_over_as_same(x.shape, overhang):
        return _pooled("Max", x, over, "same")
    if over.same:
        padded, over = padded_same(x, over, least)
    else:
        around = _with_overhang(over, overhang)
        padded = zero_padded(x, around) if _rectified(x) and not over.dilated else padded_with(x, around, least)
    if over.dilated:
        return call("dilated_pool", Verbatim("ops.maximum"), padded, over.size, over.strides, over.dilations)
    return _pooled("Max", padded, over, "valid")


def _rectified(x: Tensor) -> bool:
    """Whether a value is what a ReLU gives."""
    maker = x.value.producer()
    return maker is not None and maker.op_type == "Relu"


@keras_op("AveragePool", layout="spatial")
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
    """Keras leaves padding out of the mean ("same") or has none ("valid").

    Padding that counts is a separate step. Otherwise, and where a last window hangs over the padded end (its divisor
    is what lies inside), the mean is a quotient of two.
    """
    over = window(kernel_shape, strides, pads, dilations, auto_pad, x.shape)
    overhang = over.overhang(x.shape, ceil_mode)
    simple = not over.dilated and not any(overhang)
    if simple and over.padding == "valid":
        return _pooled("Average", x, over, "valid")
    if (simple and over.padding == "same" and not count_include_pad) or over.hangs_over_as_same(x.shape, overhang):
        return _pooled("Average", x, over, "same")
    if over.same:
        return _same_average(x, over, bool(count_include_pad))
    if simple and count_include_pad:
        return _pooled("Average", zero_padded(x, over.ends), over, "valid")
    counted = over.ends if count_include_pad else ((0, 0),) * over.rank
    return call(
        "average_pool",
        x,
        over.size,
        over.strides,
        padding=_with_overhang(over, overhang),
        counted=counted if count_include_pad else None,
        dilation_rate=over.dilations if over.dilated else None,
    )


def _same_average(x: Tensor, over: Window, counted: bool) -> Expr:
    """Under SAME the padding varies with the size, and so does what a window covers of the input."""
    padded, bare = padded_same(x, over)

    def mean(values: Expr) -> Expr:
        none = ((0, 0),) * over.rank
        dilation = over.dilations if over.dilated else None
        return call("average_pool", values, over.size, over.strides, padding=none, dilation_rate=dilation)

    total = mean(padded) if over.dilated else _pooled("Average", padded, bare, "valid")
    if counted:
        return total
    ones = call("ops.ones_like", x[(slice(0, 1), Verbatim("..."), slice(0, 1))])
    return total / mean(call("pad_same", ones, over.reach, over.strides, lower=over.lower or None))


@keras_op("LpPool", layout="spatial")
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
    """A mean of powers times the size of the window is their sum; zeros around add nothing."""
    over = window(kernel_shape, strides, pads, dilations, auto_pad, x.shape)
    padded: Expr
    if over.same:  # zeros add nothing to powers
        padded, over = padded_same(x, over)
    else:
        padded = zero_padded(x, _with_overhang(over, over.overhang(x.shape, ceil_mode)))
    padded = (
        call("ops.square", padded) if p == 2 else call("ops.abs", padded) if p == 1 else call("ops.abs", padded) ** p
    )
    if over.dilated:
        return _root(call("dilated_pool", Verbatim("ops.add"), padded, over.size, over.strides, over.dilations), p)
    return _root(_pooled("Average", padded, over, "valid") * prod(over.size), p)


def _power(x: Expr, p: int) -> Expr:
    return call("ops.square", x) if p == 2 else call("ops.abs", x) if p == 1 else call("ops.abs", x) ** p


def _root(total: Expr, p: int) -> Expr:
    return call("ops.sqrt", total) if p == 2 else total if p == 1 else total ** (1 / p)


@keras_op("GlobalAveragePool", "GlobalMaxPool", layout="spatial")
def global_pool(x: Tensor, *, op: str) -> Expr:
    kind = op.removeprefix("Global").removesuffix("Pool")
    if 3 <= x.rank <= 5:
        return layer(f"Global{kind}Pooling{x.rank - 2}D", keepdims=True)(x)
    axes = tuple(range(1, x.rank - 1)) if x.rank > 2 else ()
    function = {"Average": "ops.mean", "Max": "ops.max"}[kind]
    return call(function, x, axis=axes, keepdims=True) if axes else x


@keras_op("GlobalLpPool", layout="spatial")
def global_lp_pool(x: Tensor, *, p: int = 2) -> Expr:
    return _root(call("ops.sum", _power(x, p), axis=tuple(range(1, x.rank - 1)), keepdims=True), p)
