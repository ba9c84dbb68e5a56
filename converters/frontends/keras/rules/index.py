"""Choosing elements: embeddings, slices, gathering and scattering, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import axis_of, in_dtype, promoted, rank
from porter.converters.frontends.keras.rules.elementwise import truth
from porter.converters.frontends.keras.table import keras_layer, keras_operation
from porter.errors import UnsupportedError

Value = ir.Value
INT64 = ir.DataType.INT64


@keras_layer("Embedding")
def embedding(op: Builder, layer: Any, inputs: Value) -> Value:
    return op.Gather(layer.embeddings, _as_index(op, inputs), axis=0)


def _as_index(op: Builder, index: Any) -> Value:
    value = in_dtype(op, index, INT64) if not isinstance(index, Value) else index
    return value if value.dtype in (INT64, ir.DataType.INT32) else op.cast(value, INT64)


@keras_operation("Take")
def take(op: Builder, x: Value, indices: Any, *, axis: int | None) -> Value:
    if axis is None:
        return op.Gather(op.Reshape(x, [-1]), _as_index(op, indices), axis=0)
    return op.Gather(x, _as_index(op, indices), axis=axis_of(x, axis))


@keras_operation("TakeAlongAxis")
def take_along_axis(op: Builder, x: Value, indices: Value, *, axis: int | None) -> Value:
    index = _as_index(op, indices)
    if axis is None:
        return op.GatherElements(op.Reshape(x, [-1]), op.Reshape(index, [-1]), axis=0)
    axis = axis_of(x, axis)
    if all(a == b for i, (a, b) in enumerate(zip(x.shape, index.shape, strict=True)) if i != axis):
        return op.GatherElements(x, index, axis=axis)
    return _gather_broadcast(op, x, index, axis)


def _gather_broadcast(op: Builder, x: Value, index: Value, axis: int) -> Value:
    """Both brought to one shape but for the axis."""
    n = rank(x)
    one = op.tensor(np.asarray([1], np.int64))
    sizes = [[op.Shape(v, start=a, end=a + 1) for a in range(n)] for v in (x, index)]
    common = [op.Max(a, b) for a, b in zip(*sizes, strict=True)]
    shapes = [op.Concat(*(one if a == axis else common[a] for a in range(n)), axis=0) for _ in range(2)]
    return op.GatherElements(op.Expand(x, shapes[0]), op.Expand(index, shapes[1]), axis=axis)


# ---- x[...] ----


@keras_operation("GetItem")
def get_item(op: Builder, x: Value, key: Any) -> Value:
    """numpy's rules: slices first, then numbers, then what is new, and at last one index tensor."""
    keys = list(key) if isinstance(key, tuple | list) else [key]
    kept = sum(k is not None and k is not Ellipsis for k in keys)
    if Ellipsis in [k for k in keys if not isinstance(k, Value)]:
        place = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[place : place + 1] = [slice(None)] * (rank(x) - kept)
    keys += [slice(None)] * (rank(x) - sum(k is not None for k in keys))
    y = _sliced(op, x, [k for k in keys if k is not None])
    return _indexed(op, y, keys)


def _sliced(op: Builder, x: Value, keys: list[Any]) -> Value:
    starts, ends, axes, steps = [], [], [], []
    for axis, key in enumerate(keys):
        if not isinstance(key, slice) or key == slice(None):
            continue
        step = 1 if key.step is None else key.step
        starts.append((0 if step > 0 else -1) if key.start is None else key.start)
        ends.append((1 << 62 if step > 0 else -(1 << 62)) if key.stop is None else key.stop)
        axes.append(axis)
        steps.append(step)
    return op.Slice(x, op.vector(starts), op.vector(ends), axes, steps) if axes else x


def _indexed(op: Builder, x: Value, keys: list[Any]) -> Value:
    tensors = [axis for axis, key in enumerate(k for k in keys if k is not None) if _is_tensor(key)]
    if len(tensors) > 1:
        raise UnsupportedError("indexing with several tensors at once; use keras.ops.take or take_along_axis")
    axis, new = 0, []
    y = x
    for position, key in enumerate(keys):
        if key is None:
            new.append(position - sum(isinstance(k, int) for k in keys[:position]))
        elif isinstance(key, slice):
            axis += 1
        elif _is_tensor(key):
            y = op.Gather(y, _as_index(op, key), axis=axis)
            axis += len(key.shape)
        else:
            index = key if isinstance(key, Value) else op.constant(int(key), INT64)
            y = op.Gather(y, index, axis=axis)
    return op.Unsqueeze(y, new) if new else y


def _is_tensor(key: Any) -> bool:
    return isinstance(key, Value) and len(key.shape) > 0


@keras_operation("Slice")
def slice_(op: Builder, inputs: Value, start_indices: Any, *, shape: Any) -> Value:
    n = rank(inputs)
    if isinstance(start_indices, Value):
        starts = op.cast(start_indices, INT64)
    else:
        starts = op.vector([op.cast(i, INT64) if isinstance(i, Value) else int(i) for i in start_indices])
    ends = op.Add(starts, op.vector(list(shape)))
    return op.Slice(inputs, starts, ends, list(range(n)), [1] * n)


@keras_operation("SliceUpdate")
def slice_update(op: Builder, inputs: Value, start_indices: Any, updates: Value) -> Value:
    """Each position of the update, counted from the start."""
    n = rank(inputs)
    if isinstance(start_indices, Value):
        starts = op.cast(start_indices, INT64)
    else:
        starts = op.vector([op.cast(i, INT64) if isinstance(i, Value) else int(i) for i in start_indices])
    grid = np.moveaxis(np.indices([int(size) for size in updates.shape]), 0, -1).astype(np.int64)
    return op.ScatterND(inputs, op.Add(op.tensor(grid), op.Reshape(starts, [1] * n + [n])), updates)


@keras_operation("ScatterUpdate")
def scatter_update(op: Builder, inputs: Value, indices: Any, updates: Any, *, reduction: str | None) -> Value:
    kind = {None: "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}[reduction]
    return op.ScatterND(inputs, in_dtype(op, indices, INT64), in_dtype(op, updates, inputs.dtype), reduction=kind)


@keras_operation("Scatter")
def scatter(op: Builder, indices: Any, values: Value, *, shape: Any) -> Value:
    """Into zeros; what falls on one place is added up."""
    zeros = op.Expand(op.constant(0, values), op.vector(list(shape)))
    return op.ScatterND(zeros, in_dtype(op, indices, INT64), values, reduction="add")


# ---- choosing by a condition ----


@keras_operation("Where")
def where(op: Builder, condition: Value, x1: Any = None, x2: Any = None) -> Value:
    if x1 is None:
        raise UnsupportedError("where with one argument: the size of its result depends on the data")
    a, b = promoted(op, x1, x2)
    return op.Where(truth(op, condition), a, b)


@keras_operation("Select")
def select(op: Builder, condlist: Any, choicelist: Any, default: Any = 0) -> Value:
    y = in_dtype(op, default, op.dtype)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        y = op.Where(truth(op, condition), in_dtype(op, choice, op.dtype), y)
    return y


# ---- one-hot ----


@keras_operation("OneHot")
def one_hot(op: Builder, x: Value, *, num_classes: int, axis: int, dtype: str | None, sparse: bool) -> Value:
    """A class out of range has no one; ONNX would count negative ones from the end."""
    if sparse:
        raise UnsupportedError("a sparse one_hot; set sparse=False")
    return _one_hot(op, x, num_classes, axis, op.dtype)


def _one_hot(op: Builder, x: Value, classes: int, axis: int, dtype: ir.DataType) -> Value:
    n = rank(x) + 1
    axis = axis % n
    numbers = op.tensor(np.arange(classes, dtype=np.int64).reshape([-1 if a == axis else 1 for a in range(n)]))
    return op.cast(op.Equal(op.Unsqueeze(op.cast(x, INT64), [axis]), numbers), dtype)


@keras_operation("MultiHot")
def multi_hot(op: Builder, inputs: Value, *, num_classes: int, axis: int, operation: Any) -> Value:
    return _multi_hot(op, inputs, num_classes, axis, op.dtype)


def _multi_hot(op: Builder, x: Value, classes: int, axis: int, dtype: ir.DataType) -> Value:
    """The classes along the last axis, or along the only one."""
    reduce = 1 if rank(x) > 1 else 0
    return op.ReduceMax(_one_hot(op, x, classes, axis, dtype), [reduce], keepdims=0)


# ---- sorting ----


@keras_operation("TopK")
def top_k(op: Builder, x: Value, *, k: int, sorted: bool) -> tuple[Value, Value]:
    values, places = op.TopK(x, [int(k)], axis=rank(x) - 1, sorted=int(sorted), outputs=2)
    return values, op.cast(places, ir.DataType.INT32)


def _ordered(op: Builder, x: Value, axis: int | None) -> tuple[Value, Value]:
    if axis is None:
        x, axis = op.Reshape(x, [-1]), 0
        size = op.Shape(x)
    else:
        axis = axis_of(x, axis)
        size = op.Shape(x, start=axis, end=axis + 1)
    if x.dtype == ir.DataType.BOOL:
        values, places = op.TopK(op.cast(x, ir.DataType.INT32), size, axis=axis, largest=0, outputs=2)
        return op.cast(values, x.dtype), places
    return op.TopK(x, size, axis=axis, largest=0, outputs=2)


@keras_operation("Sort")
def sort(op: Builder, x: Value, *, axis: int | None) -> Value:
    return _ordered(op, x, axis)[0]


@keras_operation("Argsort")
def argsort(op: Builder, x: Value, *, axis: int | None) -> Value:
    return _ordered(op, x, axis)[1]


@keras_operation("SearchSorted")
def search_sorted(op: Builder, sorted_sequence: Any, values: Any, *, side: str) -> Value:
    return _counted_below(op, values, sorted_sequence, "Less" if side == "left" else "LessOrEqual")


@keras_operation("Digitize")
def digitize(op: Builder, x: Any, bins: Any) -> Value:
    return _counted_below(op, x, bins, "LessOrEqual")


def _counted_below(op: Builder, x: Any, edges: Any, relation: str) -> Value:
    """How many edges lie below each element."""
    edges = op.tensor(np.asarray(edges)) if isinstance(edges, list | tuple) else edges
    a, b = promoted(op, x, edges)
    below = getattr(op, relation)(b, op.Unsqueeze(a, [rank(a)]))
    return op.ReduceSum(op.cast(below, op.dtype), [rank(a)], keepdims=0)


@keras_operation("IsIn")
def is_in(op: Builder, x1: Any, x2: Any, *, assume_unique: bool, invert: bool) -> Value:
    a, b = promoted(op, x1, x2)
    same = op.Equal(op.Unsqueeze(a, [rank(a)]), op.Reshape(b, [-1]))
    found = op.cast(op.ReduceMax(op.cast(same, ir.DataType.INT32), [rank(a)], keepdims=0), ir.DataType.BOOL)
    return op.Not(found) if invert else found


@keras_operation("InTopK")
def in_top_k(op: Builder, targets: Value, predictions: Value, *, k: int) -> Value:
    """Fewer than k predictions are larger than that of the target."""
    target = op.GatherElements(predictions, op.Unsqueeze(op.cast(targets, INT64), [1]), axis=1)
    larger = op.ReduceSum(op.cast(op.Greater(predictions, target), INT64), [1], keepdims=0)
    return op.Less(larger, op.constant(int(k), INT64))


# ---- diagonals ----


@keras_operation("Diagonal")
def diagonal_operation(op: Builder, x: Value, *, offset: int, axis1: int, axis2: int) -> Value:
    return diagonal(op, x, offset=offset, axis1=axis1, axis2=axis2)


def diagonal(op: Builder, x: Value, *, offset: int, axis1: int, axis2: int) -> Value:
    a, b = axis_of(x, axis1), axis_of(x, axis2)
    rows, columns = x.shape[a], x.shape[b]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise UnsupportedError("the diagonal of axes that vary; fix those axes with --static")
    others = [axis for axis in range(rank(x)) if axis not in (a, b)]
    y = op.Transpose(x, perm=[a, b, *others])
    first, second = max(-offset, 0), max(offset, 0)
    count = max(min(rows - first, columns - second), 0)
    places = np.stack([np.arange(count) + first, np.arange(count) + second], -1).astype(np.int64)
    picked = op.GatherND(y, op.tensor(places))
    return op.Transpose(picked, perm=[*range(1, len(others) + 1), 0])


@keras_operation("Diag")
def diag(op: Builder, x: Value, *, k: int) -> Value:
    if rank(x) == 2:
        return diagonal(op, x, offset=k, axis1=0, axis2=1)
    return _on_diagonal(op, x, k)


@keras_operation("Diagflat")
def diagflat(op: Builder, x: Value, *, k: int) -> Value:
    return _on_diagonal(op, op.Reshape(x, [-1]), k, int(np.prod([int(size) for size in x.shape])))


def _on_diagonal(op: Builder, x: Value, k: int, count: int | None = None) -> Value:
    count = int(x.shape[0]) if count is None else count
    side = count + abs(k)
    places = np.stack([np.arange(count) + max(-k, 0), np.arange(count) + max(k, 0)], -1).astype(np.int64)
    return op.ScatterND(op.Expand(op.constant(0, x), [side, side]), op.tensor(places), x)
