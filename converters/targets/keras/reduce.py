"""Reductions, positions of extremes, running sums."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Literal, Size, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.cast import as_int64, dtype_name
from porter.converters.targets.types import Dims, Int, Ints, Tensor

_Axis = int | tuple[int, ...] | None
_BODIES: dict[str, Callable[[Expr, _Axis, bool], Expr]] = {
    "Sum": lambda x, axis, keep: call("ops.sum", x, axis=axis, keepdims=keep),
    "Prod": lambda x, axis, keep: call("ops.prod", x, axis=axis, keepdims=keep),
    "Mean": lambda x, axis, keep: call("ops.mean", x, axis=axis, keepdims=keep),
    "Max": lambda x, axis, keep: call("ops.max", x, axis=axis, keepdims=keep),
    "Min": lambda x, axis, keep: call("ops.min", x, axis=axis, keepdims=keep),
    "L1": lambda x, axis, keep: call("ops.sum", call("ops.abs", x), axis=axis, keepdims=keep),
    "L2": lambda x, axis, keep: call("l2_norm", x, axis=axis, keepdims=keep or None),
    "LogSum": lambda x, axis, keep: call("ops.log", call("ops.sum", x, axis=axis, keepdims=keep)),
    "LogSumExp": lambda x, axis, keep: call("ops.logsumexp", x, axis=axis, keepdims=keep),
    "SumSquare": lambda x, axis, keep: call("ops.sum", call("ops.square", x), axis=axis, keepdims=keep),
}
# What each reduction makes of a single element.
_ALONE: dict[str, Callable[[Expr], Expr]] = {
    "L1": lambda x: call("ops.abs", x),
    "L2": lambda x: call("ops.abs", x),
    "LogSum": lambda x: call("ops.log", x),
    "SumSquare": lambda x: call("ops.square", x),
}


@keras_op(*(f"Reduce{name}" for name in _BODIES), axes=["axes"])
def reduction(
    x: Tensor, axes: Ints | None = None, *, op: str, out: Tensor, keepdims: int, noop_with_empty_axes: int = 0
) -> Expr:
    """Keras reduces truth values and takes means of integers in other types than ONNX."""
    name = op.removeprefix("Reduce")
    if not axes and noop_with_empty_axes:
        return _ALONE.get(name, lambda value: value)(x)
    axis = _axis(axes, x.rank)
    if x.dtype == ir.DataType.BOOL:
        return call("ops.any" if name == "Max" else "ops.all", x, axis=axis, keepdims=bool(keepdims))
    if x.dtype.is_floating_point() or name not in ("Mean", "L2", "LogSum", "LogSumExp"):
        return _BODIES[name](x, axis, bool(keepdims))
    result = _BODIES[name](call("ops.cast", x, "float64"), axis, bool(keepdims))
    return call("ops.cast", result, dtype_name(out.dtype))


def _axis(axes: Ints | None, rank: int) -> _Axis:
    if not axes or len(set(axes)) == rank:
        return None
    return axes[0] if len(axes) == 1 else tuple(axes)


@keras_op("ArgMax", "ArgMin", axes=["axis"], note="where there are NaNs, torch picks the first, TensorFlow none")
def arg_extremum(x: Tensor, *, op: str, out: Tensor, axis: int, keepdims: int, select_last_index: int) -> Expr:
    """Keras takes the first of equals; the last is the first from behind."""
    name = f"ops.{op.lower()}"
    if not select_last_index:
        return as_int64(call(name, x, axis=axis, keepdims=bool(keepdims)), out)
    size = x.shape[axis]
    last = Size(size) - 1 if isinstance(size, str) else Literal(size - 1)
    return as_int64(last - call(name, call("ops.flip", x, axis=axis), axis=axis, keepdims=bool(keepdims)), out)


@keras_op("TopK", axes=["axis"])
def top_k(x: Tensor, k: Dims, *, outs: list[Tensor], axis: int, largest: int, sorted: int) -> Expr:
    """Always sorted: ONNX leaves the order open otherwise. Of equals, both take the first."""
    indices = outs[1]
    last = axis in (-1, x.rank - 1)
    if largest and last and as_int64(indices, indices) is indices:
        return call("ops.top_k", x, k[0])
    return call("top_k", x, k[0], axis=None if last else axis, largest=None if largest else False)


@keras_op("CumSum", axes=["axis"])
def cumulative_sum(x: Tensor, axis: Int, *, exclusive: int, reverse: int) -> Expr:
    summed = call("ops.flip", x, axis=axis) if reverse else x
    total = call("exclusive_cumsum" if exclusive else "ops.cumsum", summed, axis=axis)
    return call("ops.flip", total, axis=axis) if reverse else total
