"""Reading and writing at positions."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.codegen.nodes import Binary, Expr, Literal, Ref, Size, Weight, call, layer
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import cast_to, new
from porter.converters.targets.types import Array, Int, Tensor

_ALL = Literal(slice(None))

# ***** reading *****


@torch_op("Gather", layout="fixed")
def embedding(x: Weight, indices: Tensor, *, axis: int, training_facts: dict[str, Any]) -> Expr:
    if axis != 0 or x.rank != 2 or x.kind != "parameter" or indices.value.is_initializer() or indices.rank == 0:
        raise CannotBind("this is no lookup in a table of vectors")
    return layer(
        "nn.Embedding",
        num_embeddings=x.shape[0],
        embedding_dim=x.shape[1],
        padding_idx=training_facts.get("padding_idx"),
        weights={"weight": x},
    )(indices)


@torch_op("Gather", layout="fixed")
def gather(x: Tensor, indices: Tensor, *, axis: int, training_facts: dict[str, Any]) -> Expr:
    """Plain indexing, which counts negative positions from the end as ONNX does."""
    position = constant_of(indices.value)
    at: Expr = indices
    if position is not None and indices.rank == 0:
        at = Literal(int(position))
    elif indices.rank == 0:
        return call(".squeeze", x[(*[_ALL] * (axis % x.rank), call(".reshape", indices, 1))], axis % x.rank)
    if training_facts.get("padding_idx") is not None:
        return call("F.embedding", indices, x, padding_idx=training_facts["padding_idx"])
    return x[(*[_ALL] * (axis % x.rank), at)]


@torch_op("GatherElements", axes=["axis"], data=(0, 1))
def gather_elements(x: Tensor, indices: Tensor, *, axis: int) -> Expr:
    return call("torch.gather", x, axis, counted(indices, x, axis))


def counted(indices: Tensor, x: Tensor, axis: int) -> Expr:
    """Positions along an axis counted from its start: PyTorch's gathers and scatters know no negative ones."""
    number = constant_of(indices.value)
    if _counts_up(indices) or (number is not None and bool((number >= 0).all())):
        return indices
    size = x.shape[axis]
    return Binary("%", indices, Size(size) if isinstance(size, str) else Literal(size))


def _counts_up(indices: Tensor) -> bool:
    """Whether indices are never negative."""
    producer = indices.value.producer()
    found_by_search = producer is not None and producer.op_type in ("ArgMax", "ArgMin", "TopK", "NonZero", "Range")
    return found_by_search or not indices.dtype.is_signed()


@torch_op("GatherND", layout="fixed")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int) -> Expr:
    return call("gather_nd", x, indices, batch_dims=batch_dims or None)


@torch_op("NonZero", layout="fixed")
def nonzero(x: Tensor) -> Expr:
    return call(".t", call(".nonzero", x))


@torch_op("Compress", layout="fixed")
def compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Expr:
    kept = call(".flatten", call(".nonzero", condition))
    if axis is None:
        return call(".flatten", x)[kept]
    return x[(*[_ALL] * (axis % x.rank), kept)]


@torch_op("Unique", layout="fixed")
def unique(x: Tensor, *, outs: list[Ref], sorted: int, axis: int | None = None) -> Expr | tuple[Expr, ...]:
    """Values, first positions, where each element went, counts."""
    if x.rank == 1:
        axis = None
    found = call("unique", x, dim=axis, in_order=True if not sorted else None)
    return found[0] if len(outs) == 1 else found


# ***** writing *****

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@torch_op("ScatterElements", layout="fixed")
def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int, reduction: str) -> Expr:
    at = counted(indices, x, axis)
    if reduction == "none":
        return call(".scatter", x, axis, at, updates)
    return call(".scatter_reduce", x, axis, at, updates, _REDUCTIONS[reduction])


@torch_op("ScatterND", layout="fixed")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str) -> Expr:
    if reduction in ("none", "add"):
        places = call(".unbind", indices, -1)
        return call(".index_put", x, places, updates, accumulate=True if reduction == "add" else None)
    return call("scatter_nd", x, indices, updates, _REDUCTIONS[reduction])


# ***** classes *****


@torch_op("OneHot", layout="fixed")
def one_hot(indices: Tensor, depth: Int, values: Array, *, axis: int, out: Tensor) -> Expr:
    """ONNX counts a negative index from the end and gives one outside no place."""
    off, on = (item.item() for item in values)
    positions: Expr = call(".long", indices) if indices.dtype.is_floating_point() else indices
    new_axis = -1 if axis in (-1, indices.rank) else axis % (indices.rank + 1)
    found = call("one_hot", positions, int(depth), dim=None if new_axis == -1 else new_axis)
    if (off, on) == (0, 1):
        return cast_to(found, ir.DataType.BOOL, out.dtype)
    if out.dtype == ir.DataType.BOOL:
        return call("torch.logical_not", found)
    return call("torch.where", found, call("torch.tensor", on, **new(out.dtype)), off)


@torch_op("Trilu", layout="fixed")
def triangle(x: Tensor, k: Int | None = None, *, upper: int) -> Expr:
    return call(".triu" if upper else ".tril", x, *([] if not k else [int(k)]))
