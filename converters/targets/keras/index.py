"""Reading and writing at positions."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Literal, Size, Weight, call, layer
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.cast import as_int64, dtype_argument
from porter.converters.targets.keras.shape import slice_of
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Array, Int, Tensor

# ***** reading *****


@keras_op("Gather", layout="fixed")
def embedding(x: Weight, indices: Tensor, *, axis: int, training_facts: dict[str, Any]) -> Expr:
    """Keras trains the padding row of an embedding too, torch does not."""
    if axis != 0 or x.rank != 2 or x.kind != "parameter" or indices.value.is_initializer() or indices.rank == 0:
        raise CannotBind("this is no lookup in a table of vectors")
    vectors = layer("Embedding", input_dim=x.shape[0], output_dim=x.shape[1], weights={"embeddings": x})(indices)
    padding = training_facts.get("padding_idx")
    return vectors if padding is None else call("without_padding_gradient", vectors, indices, padding)


@keras_op("Gather", layout="fixed")
def gather(x: Tensor, indices: Tensor, *, axis: int) -> Expr:
    """One position known while porting is plain indexing."""
    position = constant_of(indices.value)
    if position is not None and indices.rank == 0:
        return x[(*[Literal(slice(None))] * (axis % x.rank), Literal(int(position)))]
    return call("ops.take", x, indices, axis=axis)


@keras_op("GatherElements", axes=["axis"], data=(0, 1))
def gather_elements(x: Tensor, indices: Tensor, *, axis: int) -> Expr:
    """ONNX lets the indices cover a corner of the data; Keras would broadcast them."""
    return call("ops.take_along_axis", _corner(x, indices, axis), indices, axis=axis)


def _corner(x: Tensor, like: Tensor, axis: int) -> Expr:
    """The part of `x` that has the sizes of `like`, all of it along `axis`."""
    items: list[Expr] = [Literal(slice(None))] * x.rank
    for at, (size, wanted) in enumerate(zip(x.shape, like.shape, strict=True)):
        if at != axis % x.rank and (size != wanted or size == "?"):
            items[at] = slice_of(None, Size(wanted) if isinstance(wanted, str) else wanted)
    return x if all(item == Literal(slice(None)) for item in items) else x[tuple(items)]


@keras_op("GatherND", layout="fixed")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int) -> Expr:
    return call("gather_nd", x, indices, batch_dims=batch_dims or None)


@keras_op("NonZero", layout="fixed")
def nonzero(x: Tensor, *, out: Tensor) -> Expr:
    return as_int64(call("ops.stack", call("ops.nonzero", x)), out)


@keras_op("Compress", layout="fixed")
def compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Expr:
    kept = call("ops.nonzero", condition)[0]
    if axis is None:
        return call("ops.take", call("ops.reshape", x, (-1,)), kept, axis=0)
    return call("ops.take", x, kept, axis=axis)


@keras_op("Unique", layout="fixed")
def unique(x: Tensor, *, outs: list[Tensor], sorted: int, axis: int | None = None) -> Expr | tuple[Expr, ...]:
    """Values, first positions, where each element went, counts."""
    if x.rank == 1:
        axis = None
    found = call("unique", x, axis=axis, in_order=True if not sorted else None)
    return found[0] if len(outs) == 1 else found


# ***** writing *****

_REDUCTIONS = {"none": None, "add": "add", "mul": "mul", "max": "max", "min": "min"}


@keras_op("ScatterElements", layout="fixed")
def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int, reduction: str) -> Expr:
    return call("scatter_elements", x, indices, updates, axis=axis, reduction=_REDUCTIONS[reduction])


@keras_op("ScatterND", layout="fixed")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str) -> Expr:
    return call("scatter_nd", x, indices, updates, reduction=_REDUCTIONS[reduction])


# ***** classes *****


@keras_op("OneHot", layout="fixed")
def one_hot(indices: Tensor, depth: Int, values: Array, *, axis: int, out: Tensor) -> Expr:
    """Keras gives a negative index no place, ONNX counts it from the end."""
    off, on = (item.item() for item in values)
    positions: Expr = indices
    if indices.dtype.is_floating_point():
        positions = call("ops.cast", indices, "int64")
    if not _counts_up(indices):
        positions = call("ops.where", call("ops.less", positions, 0), positions + int(depth), positions)
    found = call(
        "ops.one_hot", positions, int(depth), axis=_new_axis(axis, indices.rank), dtype=dtype_argument(out.dtype)
    )
    if (off, on) == (0, 1):
        return found
    if out.dtype == ir.DataType.BOOL:
        return call("ops.logical_not", found)
    scaled = found if on - off == 1 else found * Literal(on - off)
    return scaled if off == 0 else scaled + off


def _new_axis(axis: int, rank: int) -> int:
    """Counted from the front unless it is the last: TensorFlow takes no other negative axis here."""
    return -1 if axis in (-1, rank) else axis % (rank + 1)


def _counts_up(indices: Tensor) -> bool:
    """Whether indices are never negative."""
    producer = indices.value.producer()
    found_by_search = producer is not None and producer.op_type in ("ArgMax", "ArgMin", "TopK", "NonZero", "Range")
    return found_by_search or not indices.dtype.is_signed()


@keras_op("Trilu", layout="fixed")
def triangle(x: Tensor, k: Int | None = None, *, upper: int) -> Expr:
    """TensorFlow takes no diagonal outside the matrix."""
    rows, columns = x.shape[-2:]
    diagonal = 0 if k is None else int(k)
    if isinstance(rows, int) and isinstance(columns, int):
        diagonal = max(-rows, min(diagonal, columns))
    return call("ops.triu" if upper else "ops.tril", x, k=diagonal)
