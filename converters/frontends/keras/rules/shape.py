"""Shapes: the same elements in another arrangement, or copies of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import axes_of, axis_of, in_dtype, moved, promoted, rank
from porter.converters.frontends.keras.table import keras_layer, keras_operation
from porter.errors import UnsupportedError

Value = ir.Value
INT64 = ir.DataType.INT64


@keras_operation("Reshape")
def reshape(op: Builder, x: Value, *, newshape: Any) -> Value:
    """A size of -1 is what is left over; one that is known to be that of the same axis stays 0, ONNX's "as it is"."""
    sizes = [newshape] if isinstance(newshape, int | Value) else list(newshape)
    if sum(isinstance(size, Value) for size in sizes) == 1 and -1 not in sizes:
        sizes = [-1 if isinstance(size, Value) else size for size in sizes]  # the only one left open
    return op.Reshape(x, op.vector(sizes) if sizes else op.tensor(np.zeros(0, np.int64)), allowzero=_allowzero(sizes))


def _allowzero(sizes: Sequence[Any]) -> int | None:
    return 1 if 0 in [size for size in sizes if isinstance(size, int)] else None


@keras_layer("Reshape")
def reshape_layer(op: Builder, layer: Any, inputs: Value) -> Value:
    """The batch axis stays."""
    target = list(op.shape[1:])
    varying = [axis for axis, size in enumerate(target) if not isinstance(size, int)]
    if not varying:
        return op.Reshape(inputs, [_batch(inputs), *target])
    if len(varying) == 1 and isinstance(inputs.shape[0], int):
        return op.Reshape(inputs, [inputs.shape[0], *(-1 if a in varying else s for a, s in enumerate(target))])
    return op.Reshape(inputs, op.shape_of_output())


def _batch(x: Value) -> int:
    return x.shape[0] if isinstance(x.shape[0], int) else -1


@keras_layer("Flatten")
def flatten(op: Builder, layer: Any, inputs: Value) -> Value:
    """In the order of channels last, whatever the layer's `data_format` is, if that says so."""
    x = inputs
    if layer.data_format == "channels_first" and rank(x) > 2:
        x = moved(op, x, [0, *range(2, rank(x)), 1])
    if rank(x) == 1:
        return op.Unsqueeze(x, [1])
    return op.Flatten(x, axis=1)


@keras_operation("Ravel")
def ravel(op: Builder, x: Value) -> Value:
    return op.Reshape(x, [-1])


@keras_operation("Transpose")
def transpose(op: Builder, x: Value, *, axes: Sequence[int] | None) -> Value:
    perm = list(reversed(range(rank(x)))) if axes is None else axes_of(x, list(axes))
    return op.Transpose(x, perm=perm)


@keras_layer("Permute")
def permute(op: Builder, layer: Any, inputs: Value) -> Value:
    return op.Transpose(inputs, perm=[0, *layer.dims])


@keras_operation("Swapaxes")
def swapaxes(op: Builder, x: Value, *, axis1: int, axis2: int) -> Value:
    perm = list(range(rank(x)))
    a, b = axis_of(x, axis1), axis_of(x, axis2)
    perm[a], perm[b] = perm[b], perm[a]
    return op.Transpose(x, perm=perm)


@keras_operation("Moveaxis")
def moveaxis(op: Builder, x: Value, *, source: Any, destination: Any) -> Value:
    sources, destinations = axes_of(x, source), axes_of(x, destination)
    perm = [a for a in range(rank(x)) if a not in sources]
    for to, axis in sorted(zip(destinations, sources, strict=True)):
        perm.insert(to, axis)
    return op.Transpose(x, perm=perm)


@keras_operation("ExpandDims")
def expand_dims(op: Builder, x: Any, *, axis: Any) -> Value:
    x = in_dtype(op, x, op.dtype)
    n = len(op.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    return op.Unsqueeze(x, [a % n for a in axes])


@keras_operation("Squeeze")
def squeeze(op: Builder, x: Value, *, axis: Any) -> Value:
    axes = [a for a, size in enumerate(x.shape) if size == 1] if axis is None else axes_of(x, axis)
    return op.Squeeze(x, axes) if axes else x


@keras_operation("BroadcastTo")
def broadcast_to(op: Builder, x: Value, *, shape: Any) -> Value:
    return op.Expand(x, op.vector(list(shape)))


@keras_operation("Concatenate")
def concatenate(op: Builder, xs: Sequence[Any], *, axis: int | None) -> Value:
    values = promoted(op, *xs)
    if axis is None:
        return op.Concat(*(op.Reshape(x, [-1]) for x in values), axis=0)
    return op.Concat(*values, axis=axis_of(values[0], axis))


@keras_layer("Concatenate")
def concatenate_layer(op: Builder, layer: Any, inputs: Sequence[Value]) -> Value:
    return concatenate(op, inputs, axis=layer.axis)


@keras_operation("Append")
def append(op: Builder, x1: Any, x2: Any, *, axis: int | None) -> Value:
    return concatenate(op, [x1, x2], axis=axis)


@keras_operation("Stack")
def stack(op: Builder, x: Sequence[Any], *, axis: int) -> Value:
    axis = axis % len(op.shape)
    return op.Concat(*(op.Unsqueeze(item, [axis]) for item in promoted(op, *x)), axis=axis)


def _at_least(op: Builder, x: Value, n: int) -> Value:
    """numpy's atleast_2d and atleast_3d."""
    if rank(x) >= n:
        return x
    axes = {(0, 1): [0], (0, 2): [0, 1], (1, 2): [0], (0, 3): [0, 1, 2], (1, 3): [0, 2], (2, 3): [2]}
    return op.Unsqueeze(x, axes[rank(x), n])


@keras_operation("Hstack", "Vstack", "Dstack")
def stacked(op: Builder, xs: Sequence[Any], *, operation: Any) -> Value:
    kind = type(operation).__name__[0]
    values = promoted(op, *xs)
    if kind == "H":
        n = 1 if rank(values[0]) <= 1 else 2
        return op.Concat(*(_at_least(op, x, n) for x in values), axis=0 if n == 1 else 1)
    n, axis = (2, 0) if kind == "V" else (3, 2)
    return op.Concat(*(_at_least(op, x, n) for x in values), axis=axis)


@keras_operation("Split", "ArraySplit", "Hsplit", "Vsplit", "Dsplit")
def split(op: Builder, x: Value, *, indices_or_sections: Any, operation: Any) -> Any:
    kind = type(operation).__name__[0]
    axis = getattr(operation, "axis", None)
    if axis is None:
        axis = {"H": 0 if rank(x) == 1 else 1, "V": 0, "D": 2}[kind]
    axis = axis_of(x, axis)
    sizes = [shape[axis] for shape in op.shapes]
    if len(sizes) == 1:
        return [x]
    if isinstance(indices_or_sections, int) and len(set(sizes)) == 1:
        return list(op.Split(x, axis=axis, num_outputs=len(sizes), outputs=len(sizes)))
    if not all(isinstance(size, int) for size in sizes):
        raise UnsupportedError("a split of an axis that varies at given places; fix that axis with --static")
    return list(op.Split(x, sizes, axis=axis, outputs=len(sizes)))


@keras_operation("Unstack")
def unstack(op: Builder, x: Value, *, axis: int) -> list[Value]:
    axis = axis_of(x, axis)
    count = len(op.shapes)
    return [op.Gather(x, op.constant(place, INT64), axis=axis) for place in range(count)]


@keras_operation("Tile")
def tile(op: Builder, x: Value, *, repeats: Any) -> Value:
    counts = [repeats] if isinstance(repeats, int | Value) else list(repeats)
    if len(counts) < rank(x):
        counts = [1] * (rank(x) - len(counts)) + counts
    if len(counts) > rank(x):
        x = op.Unsqueeze(x, list(range(len(counts) - rank(x))))
    return op.Tile(x, op.vector(counts))


@keras_layer("RepeatVector")
def repeat_vector(op: Builder, layer: Any, inputs: Value) -> Value:
    return op.Tile(op.Unsqueeze(inputs, [1]), [1, int(layer.n), 1])


@keras_operation("Repeat")
def repeat(op: Builder, x: Value, *, repeats: Any, axis: int | None) -> Value:
    if axis is None:
        x, axis, n = op.Reshape(x, [-1]), 0, 1
    else:
        axis, n = axis_of(x, axis), rank(x)
    if isinstance(repeats, Value) and not len(repeats.shape):
        return _repeated(op, x, repeats, axis, n)
    counts = [repeats] if isinstance(repeats, int) else repeats
    if isinstance(counts, Value):
        raise UnsupportedError("repeats that are computed: the size of the result depends on the data")
    if len(set(map(int, counts))) == 1:
        return _repeated(op, x, int(counts[0]), axis, n)
    places = np.repeat(np.arange(len(counts)), np.asarray(counts, np.int64))
    return op.Gather(x, places.astype(np.int64), axis=axis)


def _repeated(op: Builder, x: Value, count: int | Value, axis: int, n: int) -> Value:
    """Every element `count` times in a row."""
    counts = op.vector([count if a == axis + 1 else 1 for a in range(n + 1)])
    copies = op.Tile(op.Unsqueeze(x, [axis + 1]), counts)
    sizes = [0] * axis + [-1] + [size_of(op, x, a) for a in range(axis + 1, n)]
    return op.Reshape(copies, op.vector(sizes))


def size_of(op: Builder, x: Value, axis: int) -> int | Value:
    """The size of one axis, read at run time where it varies."""
    size = x.shape[axis]
    return size if isinstance(size, int) else op.Squeeze(op.Shape(x, start=axis, end=axis + 1), [0])


# ---- parts ----


@keras_operation("Pad")
def pad(op: Builder, x: Value, constant_values: Any = None, *, pad_width: Any, mode: str) -> Value:
    pairs = _pairs(pad_width, rank(x))
    return padded(op, x, pairs, mode, constant_values)


def _pairs(pad_width: Any, n: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, int):
        return [(pad_width, pad_width)] * n
    pairs = [tuple(pair) if isinstance(pair, list | tuple) else (pair, pair) for pair in pad_width]
    if len(pad_width) == 2 and all(isinstance(size, int) for size in pad_width):
        pairs = [tuple(pad_width)]
    if len(pairs) == 1:
        pairs *= n
    return [(int(pair[0]), int(pair[-1])) for pair in pairs]


def padded(op: Builder, x: Value, pairs: Sequence[tuple[int, int]], mode: str = "constant", value: Any = None) -> Value:
    """Every axis extended by (in front, behind)."""
    if not any(size for pair in pairs for size in pair):
        return x
    onnx = {"constant": "constant", "reflect": "reflect", "symmetric": "symmetric"}[mode]
    pads = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
    if onnx == "symmetric":
        return _symmetric(op, x, pairs)
    filler = None if mode != "constant" else in_dtype(op, 0 if value is None else value, x.dtype)
    return op.Pad(x, pads, filler, mode=onnx)


def _symmetric(op: Builder, x: Value, pairs: Sequence[tuple[int, int]]) -> Value:
    """The border element counts itself: the ends reversed, put beside it."""
    for axis, (front, behind) in enumerate(pairs):
        parts = [x]
        if front:
            parts.insert(0, op.Slice(x, [front - 1], [-(1 << 62)], [axis], [-1]))
        if behind:
            parts.append(op.Slice(x, [-1], [-behind - 1], [axis], [-1]))
        if len(parts) > 1:
            x = op.Concat(*parts, axis=axis)
    return x


@keras_layer("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def zero_padding(op: Builder, layer: Any, inputs: Value) -> Value:
    return padded(op, inputs, _spatial_pairs(layer, layer.padding, rank(inputs)))


def _spatial_pairs(layer: Any, given: Any, n: int) -> list[tuple[int, int]]:
    """(in front, behind) of all axes, from those of the spatial ones."""
    pairs = [tuple(given)] if n == 3 else [tuple(pair) for pair in given]
    last = getattr(layer, "data_format", None) != "channels_first"
    return [(0, 0), *pairs, (0, 0)] if last else [(0, 0), (0, 0), *pairs]


@keras_layer("Cropping1D", "Cropping2D", "Cropping3D")
def cropping(op: Builder, layer: Any, inputs: Value) -> Value:
    pairs = _spatial_pairs(layer, layer.cropping, rank(inputs))
    axes = [axis for axis, pair in enumerate(pairs) if any(pair)]
    if not axes:
        return inputs
    starts = [pairs[axis][0] for axis in axes]
    ends = [-pairs[axis][1] if pairs[axis][1] else (1 << 62) for axis in axes]
    return op.Slice(inputs, starts, ends, axes, [1] * len(axes))


@keras_operation("Flip", "Fliplr", "Flipud")
def flip(op: Builder, x: Value, *, operation: Any) -> Value:
    kind = type(operation).__name__
    axes = axes_of(x, operation.axis) if kind == "Flip" else [1 if kind == "Fliplr" else 0]
    return op.Slice(x, [-1] * len(axes), [-(1 << 62)] * len(axes), axes, [-1] * len(axes))


@keras_operation("Rot90")
def rot90(op: Builder, array: Value, *, k: int, axes: Any) -> Value:
    first, second = axes_of(array, list(axes))
    perm = list(range(rank(array)))
    perm[first], perm[second] = second, first

    def turned(x: Value, axis: int) -> Value:
        return op.Slice(x, [-1], [-(1 << 62)], [axis], [-1])

    match k % 4:
        case 0:
            return array
        case 1:
            return op.Transpose(turned(array, second), perm=perm)
        case 2:
            return turned(turned(array, first), second)
    return turned(op.Transpose(array, perm=perm), second)


@keras_operation("Roll")
def roll(op: Builder, x: Value, *, shift: Any, axis: Any) -> Value:
    shape = op.Shape(x) if axis is None else None
    if axis is None:
        x, axes, shifts = op.Reshape(x, [-1]), [0], [shift] if isinstance(shift, int) else list(shift)
    else:
        axes = axes_of(x, axis)
        shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    for a, by in zip(axes, shifts, strict=True):
        size = x.shape[a] if x.shape is not None and shape is None else None
        by = by % size if isinstance(size, int) and size else by
        if by:
            behind = op.Slice(x, [-by], [1 << 62], [a], [1])
            front = op.Slice(x, [0], [-by], [a], [1])
            x = op.Concat(behind, front, axis=a)
    return op.Reshape(x, shape) if shape is not None else x


@keras_operation("Tril", "Triu")
def triangle(op: Builder, x: Value, *, k: Any, operation: Any) -> Value:
    diagonal = k if isinstance(k, Value) else op.constant(int(k), INT64)
    upper = int(type(operation).__name__ == "Triu")
    if x.dtype == ir.DataType.BOOL:
        return op.cast(op.Trilu(op.cast(x, ir.DataType.INT32), diagonal, upper=upper), x.dtype)
    return op.Trilu(x, diagonal, upper=upper)


@keras_operation("Meshgrid")
def meshgrid(op: Builder, *x: Value, indexing: str) -> list[Value]:
    count = len(x)
    results = []
    order = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else list(range(count))
    lengths = [op.Size(item) for item in x]
    shape = op.vector([lengths[i] for i in order])
    for position, item in enumerate(x):
        place = order.index(position)
        column = op.Reshape(item, [-1 if a == place else 1 for a in range(count)])
        results.append(op.Expand(column, shape))
    return results
