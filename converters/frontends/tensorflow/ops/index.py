"""Slices, gathering, scattering, one-hot codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.table import tf_op
from porter.errors import UnsupportedError

Value = ir.Value
INT64 = ir.DataType.INT64
_END = np.iinfo(np.int64).max


@tf_op("StridedSlice")
def strided_slice(
    op: Builder,
    x: Value,
    begin: Value,
    end: Value,
    strides: Value,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Value:
    """Python's slices: numbers, ranges, `...` and new axes, in this order of precedence: `...`, new, number, range."""
    steps = op.ints(strides, "steps")
    starts, stops = _bounds(op, begin, len(steps)), _bounds(op, end, len(steps))
    new = [i for i in range(len(steps)) if new_axis_mask >> i & 1 and not ellipsis_mask >> i & 1]
    ellipsis = next((i for i in range(len(steps)) if ellipsis_mask >> i & 1), len(steps))
    skipped = op.rank(x) - (len(steps) - len(new) - int(ellipsis < len(steps)))
    axis, result_axis = 0, 0
    cuts: list[tuple[int, Any, Any, int]] = []
    dropped: list[int] = []
    added: list[int] = []
    for i, step in enumerate(steps):
        if i == ellipsis:
            axis, result_axis = axis + skipped, result_axis + skipped
        elif i in new:
            added.append(result_axis)
            result_axis += 1
        elif shrink_axis_mask >> i & 1:
            cuts.append((axis, starts[i], _next(op, starts[i]), 1))
            dropped.append(axis)
            axis += 1
        else:
            low = (0 if step > 0 else -1) if begin_mask >> i & 1 else starts[i]
            high = (_END if step > 0 else -(1 << 62)) if end_mask >> i & 1 else stops[i]
            if (low, high, step) != (0, _END, 1):
                cuts.append((axis, low, high, step))
            axis, result_axis = axis + 1, result_axis + 1
    if cuts:
        axes, lows, highs, by = zip(*cuts, strict=True)
        x = op.Slice(x, op.dims(lows), op.dims(highs), list(axes), list(by))
    if dropped:
        x = op.Squeeze(x, dropped)
    if added:
        x = op.Unsqueeze(x, added)
    return x if cuts or dropped or added else op.Identity(x)


def _bounds(op: Builder, bound: Value, count: int) -> list[Any]:
    content = op.content(bound)
    if content is not None:
        return content
    whole = op.cast(bound, INT64)
    return [op.Gather(whole, op.constant(i, INT64), axis=0) for i in range(count)]


def _next(op: Builder, start: Any) -> Any:
    """The end of a slice of one element; after the last one there is no number."""
    if isinstance(start, int):
        return start + 1 if start != -1 else _END
    if isinstance(start, str):
        from porter.converters.frontends.tensorflow.dims import add

        return add(start, 1)
    after = op.Add(start, op.constant(1, INT64))
    return op.Where(op.Equal(after, op.constant(0, INT64)), op.constant(_END, INT64), after)


@tf_op("Slice")
def slice_(op: Builder, x: Value, begin: Value, size: Value) -> Value:
    """A size of -1 is all that is left."""
    rank = op.rank(x)
    starts, lengths = _bounds(op, begin, rank), op.content(size)
    if lengths is None:
        whole = op.cast(size, INT64)
        start = op.dims(starts)
        end = op.Where(op.Less(whole, op.constant(0, INT64)), op.constant(_END, INT64), op.Add(start, whole))
        return op.Slice(x, start, end, list(range(rank)), [1] * rank)
    cuts = [i for i in range(rank) if starts[i] != 0 or lengths[i] != -1]
    if not cuts:
        return op.Identity(x)
    ends = [_END if lengths[i] == -1 else _sum(op, starts[i], lengths[i]) for i in cuts]
    return op.Slice(x, op.dims([starts[i] for i in cuts]), op.dims(ends), cuts, [1] * len(cuts))


def _sum(op: Builder, start: Any, length: Any) -> Any:
    from porter.converters.frontends.tensorflow.dims import add

    if isinstance(start, Value) or isinstance(length, Value):
        first, second = op.dims([start]), op.dims([length])
        return op.Squeeze(op.Add(first, second), [0])
    return add(start, length)


# ---- gathering ----


@tf_op("Gather", ignored=["validate_indices"])
def gather_v1(op: Builder, params: Value, indices: Value) -> Value:
    return op.Gather(params, indices, axis=0)


@tf_op("GatherV2")
def gather(op: Builder, params: Value, indices: Value, axis: Value, *, batch_dims: int) -> Value:
    along = op.axis(op.number(axis, "axis"), params)
    batch_dims += op.rank(indices) if batch_dims < 0 else 0
    if batch_dims == 0:
        return op.Gather(params, indices, axis=along)
    rank = op.rank(params)
    rest = [a for a in range(batch_dims, rank) if a != along]
    moved = op.permute(params, [*range(batch_dims), along, *rest])
    picked = op.GatherND(moved, op.Unsqueeze(op.cast(indices, INT64), [-1]), batch_dims=batch_dims)
    count = op.rank(indices) - batch_dims
    before = along - batch_dims  # axes of the data that stand between the batch and what was gathered
    order = [
        *range(batch_dims),
        *range(batch_dims + count, batch_dims + count + before),
        *range(batch_dims, batch_dims + count),
        *range(batch_dims + count + before, op.rank(picked)),
    ]
    return op.permute(picked, order)


@tf_op("GatherNd", ignored=["bad_indices_policy"])
def gather_nd(op: Builder, params: Value, indices: Value) -> Value:
    return op.GatherND(params, op.cast(indices, INT64))


@tf_op("OneHot")
def one_hot(op: Builder, indices: Value, depth: Value, on: Value, off: Value, *, axis: int) -> Value:
    """What is out of range is off everywhere: ONNX counts negative ones from the end, so those are moved out."""
    content = op.content(depth)
    size = op.Squeeze(op.dims(content), [0]) if content else op.cast(depth, INT64)
    whole = op.cast(indices, INT64)
    inside = op.Where(op.Less(whole, op.constant(0, INT64)), size, whole)
    pair = op.Concat(op.Reshape(off, [1]), op.Reshape(on, [1]), axis=0)
    return op.OneHot(inside, size, pair, axis=axis)


@tf_op("Where")
def where(op: Builder, condition: Value) -> Value:
    """The places of what is true, one row each."""
    kind = condition.dtype
    flags = condition if kind == ir.DataType.BOOL else op.Not(op.Equal(condition, op.like(0, condition)))
    return op.Transpose(op.NonZero(flags), perm=[1, 0])


@tf_op("InvertPermutation")
def invert_permutation(op: Builder, x: Value) -> Value:
    array = op.array(x)
    if array is not None:
        return op.tensor(np.argsort(array).astype(x.dtype.numpy()))
    raise UnsupportedError("the inverse of a permutation that is computed while the model runs")


# ---- scattering ----


@tf_op("ScatterNd", ignored=["bad_indices_policy"])
def scatter_nd(op: Builder, indices: Value, updates: Value, shape: Value) -> Value:
    zeros = op.Expand(op.like(0, updates), op.sizes(shape))
    return op.ScatterND(zeros, op.cast(indices, INT64), updates, reduction="add")


_SCATTERS = {
    "TensorScatterUpdate": "none", "TensorScatterAdd": "add", "TensorScatterMax": "max", "TensorScatterMin": "min",
}  # fmt: skip


def _scatter(reduction: str) -> Any:
    def rule(op: Builder, x: Value, indices: Value, updates: Value) -> Value:
        return op.ScatterND(x, op.cast(indices, INT64), updates, reduction=reduction)

    rule.__module__ = __name__
    return rule


for _tf_name, _reduction in _SCATTERS.items():
    tf_op(_tf_name, ignored=["bad_indices_policy"])(_scatter(_reduction))


@tf_op("TensorScatterSub", ignored=["bad_indices_policy"])
def scatter_sub(op: Builder, x: Value, indices: Value, updates: Value) -> Value:
    return op.ScatterND(x, op.cast(indices, INT64), op.Neg(updates), reduction="add")


@tf_op("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(op: Builder, indices: list[Value], data: list[Value]) -> Value:
    """Where all indices are known and each place is filled: the parts joined and put in order."""
    known = [op.ints(index, "indices") for index in indices]
    flat = [i for part in known for i in part]
    if sorted(set(flat)) != list(range(max(flat) + 1)):
        raise UnsupportedError("dynamic_stitch that leaves places empty")
    last = {place: position for position, place in enumerate(flat)}
    parts = []
    for value, index in zip(data, indices, strict=True):
        sizes = op.shape_of(value)[op.rank(index) :]
        parts.append(op.Reshape(value, op.dims([-1, *[s for s in sizes if s is not None]])))
    joined = op.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]
    return op.Gather(joined, [last[place] for place in range(len(last))], axis=0)


# ---- diagonals ----


@tf_op("MatrixBandPart")
def band_part(op: Builder, x: Value, lower: Value, upper: Value) -> Value:
    """A negative number keeps the whole triangle."""
    low, high = op.number(lower, "lower band"), op.number(upper, "upper band")
    if low >= 0:
        x = op.Trilu(x, op.constant(-low, INT64), upper=1)
    if high >= 0:
        x = op.Trilu(x, op.constant(high, INT64), upper=0)
    return x if low >= 0 or high >= 0 else op.Identity(x)


@tf_op("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", ignored=["align"])
def matrix_diag(op: Builder, diagonal: Value, k: Any = None, *others: Value) -> Value:
    """The main diagonal alone."""
    if k is not None and op.ints(k, "k") != [0]:
        raise UnsupportedError("diagonals other than the main one")
    for value, plain in zip(others, (-1, -1, 0), strict=False):
        if op.number(value, "size") != plain:
            raise UnsupportedError("a diagonal in a matrix that is not square, or not padded with zeros")
    content = op.shape_of(diagonal)[-1]
    size = op.dims([content]) if content is not None else op.Shape(diagonal, start=-1)
    places = op.Range(op.constant(0, INT64), op.Squeeze(size, [0]), op.constant(1, INT64))
    on = op.Equal(op.Unsqueeze(places, [0]), op.Unsqueeze(places, [1]))
    return op.Where(on, op.Unsqueeze(diagonal, [-1]), op.like(0, diagonal))


@tf_op("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", ignored=["align"])
def matrix_diag_part(op: Builder, x: Value, k: Any = None, *others: Value) -> Value:
    """The main diagonal of square matrices."""
    if k is not None and op.ints(k, "k") != [0]:
        raise UnsupportedError("diagonals other than the main one")
    rows, columns = op.shape_of(x)[-2:]
    if rows is None or rows != columns:
        raise UnsupportedError("the diagonal of a matrix that is not square")
    places = op.Range(op.constant(0, INT64), op.Squeeze(op.dims([rows]), [0]), op.constant(1, INT64))
    on = op.Equal(op.Unsqueeze(places, [0]), op.Unsqueeze(places, [1]))
    return op.ReduceSum(op.Where(on, x, op.like(0, x)), [-1], keepdims=0)


@tf_op("DiagPart")
def diag_part(op: Builder, x: Value) -> Value:
    if op.rank(x) != 2:
        raise UnsupportedError("the diagonal of a tensor of more than two axes")
    return matrix_diag_part(op, x)
