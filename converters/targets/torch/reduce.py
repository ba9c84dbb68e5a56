"""Reductions, positions of extremes, running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Literal, Size, call
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import cast_to, dtype_of
from porter.converters.targets.types import Dims, Int, Ints, Tensor

_BODIES: dict[str, Callable[..., Expr]] = {
    "Sum": lambda x, *axes, **k: call(".sum", x, *axes, **k),
    "Mean": lambda x, *axes, **k: call(".mean", x, *axes, **k),
    "Max": lambda x, *axes, **k: call(".amax", x, *axes, **k),
    "Min": lambda x, *axes, **k: call(".amin", x, *axes, **k),
    "L1": lambda x, *axes, **k: call(".sum", call("torch.abs", x), *axes, **k),
    "L2": lambda x, *axes, **k: call("torch.linalg.vector_norm", x, **({"dim": axes[0]} if axes else {}), **k),
    "LogSum": lambda x, *axes, **k: call("torch.log", call(".sum", x, *axes, **k)),
    "LogSumExp": lambda x, *axes, **k: call(".logsumexp", x, *axes, **k),
    "SumSquare": lambda x, *axes, **k: call(".sum", x**2, *axes, **k),
}
_ALL = {"Sum": ".sum", "Mean": ".mean", "Max": ".amax", "Min": ".amin"}
# What each reduction makes of a single element.
_ALONE: dict[str, Callable[[Expr], Expr]] = {
    "L1": lambda x: call("torch.abs", x),
    "L2": lambda x: call("torch.abs", x),
    "LogSum": lambda x: call("torch.log", x),
    "SumSquare": lambda x: x**2,
}


@torch_op(*(f"Reduce{name}" for name in (*_BODIES, "Prod")), axes=["axes"])
def reduction(
    x: Tensor, axes: Ints | None = None, *, op: str, out: Tensor, keepdims: int, noop_with_empty_axes: int = 0
) -> Expr:
    """PyTorch widens sums of integers and takes no means of them."""
    name = op.removeprefix("Reduce")
    if not axes and noop_with_empty_axes:
        return _ALONE.get(name, lambda value: value)(x)
    everything = not axes or len({axis % x.rank for axis in axes}) == x.rank
    chosen = tuple(range(x.rank)) if everything else tuple(axes or ())
    kept: dict[str, Any] = {"keepdim": True} if keepdims else {}
    if name == "Prod":
        return _product(x, chosen, kept, out)
    if everything and not keepdims and name != "LogSumExp":
        given: tuple[Any, ...] = ()
    else:
        given = (chosen[0] if len(chosen) == 1 else chosen,)
    if x.dtype == ir.DataType.BOOL:
        return call(".any" if name == "Max" else ".all", x, *given, **kept)
    if x.dtype.is_floating_point() or name in ("Max", "Min"):
        return _BODIES[name](x, *given, **kept)
    if name in ("Sum", "L1", "SumSquare"):
        widened = {} if out.dtype == ir.DataType.INT64 else {"dtype": dtype_of(out.dtype)}
        return _BODIES[name](x, *given, **kept, **widened)
    return cast_to(_BODIES[name](call(".double", x), *given, **kept), ir.DataType.DOUBLE, out.dtype)


def _product(x: Tensor, axes: tuple[int, ...], kept: dict[str, Any], out: Tensor) -> Expr:
    """PyTorch multiplies along one axis at a time."""
    narrow = out.dtype.is_integer() and out.dtype != ir.DataType.INT64
    product: Expr = x
    for axis in sorted((axis % x.rank for axis in axes), reverse=True):
        product = call(".prod", product, axis, **kept, **({"dtype": dtype_of(out.dtype)} if narrow else {}))
    return product


@torch_op("ArgMax", "ArgMin", axes=["axis"])
def arg_extremum(x: Tensor, *, op: str, axis: int, keepdims: int, select_last_index: int) -> Expr:
    """PyTorch takes the first of equals; the last is the first from behind."""
    kept = {"keepdim": True} if keepdims else {}
    if not select_last_index:
        return call(f".{op.lower()}", x, axis, **kept)
    size = x.shape[axis]
    last = Size(size) - 1 if isinstance(size, str) else Literal(size - 1)
    return last - call(f".{op.lower()}", call(".flip", x, axis), axis, **kept)


@torch_op("TopK", axes=["axis"])
def top_k(x: Tensor, k: Dims, *, axis: int, largest: int, sorted: int) -> Expr:
    """Always sorted: ONNX leaves the order open otherwise. Of equals ONNX takes the first, `torch.topk` any."""
    last = axis in (-1, x.rank - 1)
    return call("top_k", x, k[0], dim=None if last else axis, largest=None if largest else False)


@torch_op("CumSum", axes=["axis"])
def cumulative_sum(x: Tensor, axis: Int, *, exclusive: int, reverse: int) -> Expr:
    narrow = {"dtype": dtype_of(x.dtype)} if x.dtype.is_integer() and x.dtype != ir.DataType.INT64 else {}
    summed = call(".flip", x, axis) if reverse else x
    total = call("exclusive_cumsum", summed, axis) if exclusive else call(".cumsum", summed, axis, **narrow)
    return call(".flip", total, axis) if reverse else total
