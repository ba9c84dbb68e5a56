"""Indexing, gathering, scattering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.aliases import replace_slice
from porter.converters.frontends.torch.table import aten
from porter.converters.opset import SIZE, TRAINING
from porter.errors import UnsupportedError

Value = ir.Value


@aten("embedding")
def embedding(
    op: Builder,
    weight: Value,
    indices: Value,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    """The padding row is a fact for training: it gets no gradient from the lookup."""
    facts = {TRAINING: f'{{"padding_idx": {padding_idx}}}'} if padding_idx >= 0 else None
    return op.Gather(weight, indices, axis=0, facts=facts)


@aten("embedding_bag", "embedding_bag.padding_idx", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    op: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Value, None, None, None]:
    """Bags of one fixed length, as `nn.EmbeddingBag` makes them of a 2-D index: offsets are 0, n, 2n, …"""
    length = _bag_length(indices, offsets)
    if length is None or include_last_offset:
        raise UnsupportedError("embedding_bag with offsets of its own: bags of different lengths; give a 2-D index")
    if padding_idx not in (None, -1):
        raise UnsupportedError("embedding_bag with padding_idx")
    depth = int(weight.shape[1])
    bags = op.Reshape(op.Gather(weight, indices, axis=0), op.vector([-1, length, depth]))
    if per_sample_weights is not None:
        bags = op.Mul(bags, op.Reshape(per_sample_weights, op.vector([-1, length, 1])))
    reduce = {0: op.ReduceSum, 1: op.ReduceMean, 2: op.ReduceMax}[mode]
    return reduce(bags, [1], keepdims=0), None, None, None


def _bag_length(indices: Value, offsets: Value) -> int | Value | None:
    """n where the offsets are 0, n, 2n, … up to the number of indices, which is how torch flattens a 2-D index."""
    steps = offsets.producer()
    if steps is None or steps.op_type != "Range":
        return None
    start, limit, step = steps.inputs
    if start.const_value is None or start.const_value.numpy() != 0:
        return None
    total = limit.metadata_props.get(SIZE) if limit.const_value is None else int(limit.const_value.numpy())
    count = indices.shape[0] if isinstance(indices.shape[0], int) else indices.shape[0].value
    if total != count:
        return None
    return step if step.const_value is None else int(step.const_value.numpy())


@aten("index_select")
def index_select(op: Builder, x: Value, dim: int, index: Value) -> Value:
    return op.Gather(x, index, axis=dim)


@aten("gather")
def gather(op: Builder, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    """torch reads no further along the other axes than the index goes; ONNX wants both alike."""
    rank = len(x.shape)
    if rank == 0:
        return op.Reshape(op.Gather(op.Reshape(x, [1]), index, axis=0), op.Shape(index))
    axes = [axis for axis in range(rank) if axis != dim % rank and x.shape[axis] != index.shape[axis]]
    if axes:
        ends = op.Gather(op.Shape(index), axes)
        x = op.Slice(x, [0] * len(axes), ends, axes, [1] * len(axes))
    return op.GatherElements(x, index, axis=dim % rank)


@aten("take")
def take(op: Builder, x: Value, index: Value) -> Value:
    return op.Gather(op.Reshape(x, [-1]), index, axis=0)


@aten("index.Tensor", "_unsafe_index.Tensor")
def index_tensor(op: Builder, x: Value, indices: Sequence[Value | None]) -> Value:
    """Advanced indexing: indexed axes are brought to the front, read by GatherND, and put where torch puts them."""
    if indices[0] is not None and indices[0].dtype == ir.DataType.BOOL and all(i is None for i in indices[1:]):
        return op.GatherND(x, op.Transpose(op.NonZero(indices[0]), perm=[1, 0]))
    indices = _positions(op, indices)
    used = [axis for axis, index in enumerate(indices) if index is not None]
    if len(used) == 1:
        return op.Gather(x, indices[used[0]], axis=used[0])
    rank = len(x.shape)
    grid, grid_rank = _grid(op, [indices[axis] for axis in used])
    rest = [axis for axis in range(rank) if axis not in used]
    picked = op.GatherND(op.Transpose(x, perm=[*used, *rest]) if used != list(range(len(used))) else x, grid)
    if used == list(range(used[0], used[-1] + 1)) and used[0] > 0:
        lead = used[0]
        perm = [
            *(grid_rank + i for i in range(lead)),
            *range(grid_rank),
            *(grid_rank + i for i in range(lead, len(rest))),
        ]
        return op.Transpose(picked, perm=perm)
    return picked


def _grid(op: Builder, indices: list[Value]) -> tuple[Value, int]:
    """Index tensors broadcast together, as the last axis of one tensor; and their common rank."""
    rank = max(len(index.shape) for index in indices)
    joint = indices[0]
    for index in indices[1:]:
        joint = op.Add(op.cast(joint, ir.DataType.INT64), op.cast(index, ir.DataType.INT64))
    size = op.Shape(joint)
    parts = [op.Unsqueeze(op.Expand(op.cast(index, ir.DataType.INT64), size), [-1]) for index in indices]
    return op.Concat(*parts, axis=-1), rank


def _positions(op: Builder, indices: Sequence[Value | None]) -> list[Value | None]:
    """Indices with each boolean mask replaced by the positions where it is true, one vector for each of its axes."""
    found: list[Value | None] = []
    for index in indices:
        if index is None or index.dtype != ir.DataType.BOOL:
            found.append(index)
            continue
        rows = op.Split(op.NonZero(index), axis=0, num_outputs=len(index.shape), outputs=len(index.shape))
        for row in rows if isinstance(rows, tuple) else (rows,):
            vector = op.Squeeze(row, [0])
            vector.shape = ir.Shape([None])
            found.append(vector)
    return found


@aten("index_put", "_unsafe_index_put")
def index_put(op: Builder, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False) -> Value:
    reduction = "add" if accumulate else "none"
    rank = len(x.shape)
    mask = indices[0]
    if mask is not None and mask.dtype == ir.DataType.BOOL and all(index is None for index in indices[1:]):
        behind = rank - len(mask.shape)
        apart = len(values.shape) > behind and values.shape[0] != 1  # a value for every true element
    else:
        apart = True
    if not apart:
        mask = op.Unsqueeze(mask, list(range(len(mask.shape), rank))) if behind else mask
        values = op.cast(values, x.dtype)
        return op.Where(mask, op.Add(x, values) if accumulate else values, x)
    indices = _positions(op, indices)
    used = [axis for axis, index in enumerate(indices) if index is not None]
    grid, grid_rank = _grid(op, [indices[axis] for axis in used])
    rest = [axis for axis in range(rank) if axis not in used]
    perm = [*used, *rest]
    lead = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
    moved = x if perm == list(range(rank)) else op.Transpose(x, perm=perm)
    grid_size = op.Shape(grid, start=0, end=-1) if grid_rank else op.vector([])
    if lead:  # the values lie where torch would have put the result of reading: (leading rest, grid, trailing rest)
        natural = op.Concat(op.Shape(x, start=0, end=lead), grid_size, op.Shape(x, start=used[-1] + 1), axis=0)
        spread = op.Expand(op.cast(values, x.dtype), natural)
        order = [*(lead + i for i in range(grid_rank)), *range(lead), *(grid_rank + i for i in range(lead, len(rest)))]
        spread = op.Transpose(spread, perm=order)
    else:
        spread = op.Expand(op.cast(values, x.dtype), op.Concat(grid_size, op.Shape(moved, start=len(used)), axis=0))
    written = op.ScatterND(moved, grid, spread, reduction=reduction)
    return (
        written if perm == list(range(rank)) else op.Transpose(written, perm=[perm.index(axis) for axis in range(rank)])
    )


@aten("masked_select")
def masked_select(op: Builder, x: Value, mask: Value) -> Value:
    size = op.Shape(op.Where(mask, x, x))
    return op.GatherND(op.Expand(x, size), op.Transpose(op.NonZero(op.Expand(mask, size)), perm=[1, 0]))


@aten("nonzero")
def nonzero(op: Builder, x: Value) -> Value:
    return op.Transpose(op.NonZero(x), perm=[1, 0])


@aten("one_hot")
def one_hot(op: Builder, x: Value, num_classes: int = -1) -> Value:
    if num_classes < 0:
        raise UnsupportedError("one_hot without num_classes: its width depends on the data")
    import numpy as np

    return op.OneHot(
        x, op.constant(num_classes, ir.DataType.INT64), op.tensor(np.asarray([0, 1], dtype=np.int64)), axis=-1
    )


@aten("tril")
def tril(op: Builder, x: Value, diagonal: int = 0) -> Value:
    return op.Trilu(x, op.constant(diagonal, ir.DataType.INT64), upper=0)


@aten("triu")
def triu(op: Builder, x: Value, diagonal: int = 0) -> Value:
    return op.Trilu(x, op.constant(diagonal, ir.DataType.INT64), upper=1)


@aten("copy")
def copy(op: Builder, x: Value, source: Value, non_blocking: bool = False) -> Value:
    return op.Expand(op.cast(source, x.dtype), op.Shape(x))


@aten("fill.Scalar", "fill.Tensor")
def fill(op: Builder, x: Value, value: Any) -> Value:
    fill = op.cast(value, x.dtype) if isinstance(value, ir.Value) else op.constant(value, x)
    return op.Expand(fill, op.Shape(x))


@aten("zero")
def zero(op: Builder, x: Value) -> Value:
    return op.Expand(op.constant(0, x), op.Shape(x))


@aten("select_scatter")
def select_scatter(op: Builder, x: Value, src: Value, dim: int, index: int) -> Value:
    rank = len(x.shape)
    dim %= rank
    where = op.Expand(op.constant(index % int(x.shape[dim]), ir.DataType.INT64), op.Shape(op.Unsqueeze(src, [dim])))
    return op.ScatterElements(x, where, op.Unsqueeze(src, [dim]), axis=dim)


@aten("slice_scatter")
def slice_scatter(
    op: Builder, x: Value, src: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    rank = len(x.shape)
    return replace_slice(op, x, src, dim % rank, start or 0, end, step, rank)


@aten("index_copy")
def index_copy(op: Builder, x: Value, dim: int, index: Value, source: Value) -> Value:
    rank = len(x.shape)
    perm = [dim % rank, *(axis for axis in range(rank) if axis != dim % rank)]
    moved = op.ScatterND(op.Transpose(x, perm=perm), op.Unsqueeze(index, [1]), op.Transpose(source, perm=perm))
    return op.Transpose(moved, perm=[perm.index(axis) for axis in range(rank)])
