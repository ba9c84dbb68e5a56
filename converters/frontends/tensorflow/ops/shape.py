"""Shapes, and what moves elements without changing them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.table import data_type, tf_op
from porter.errors import UnsupportedError

Value = ir.Value
INT64 = ir.DataType.INT64


@tf_op("Const", ignored=["dtype"])
def const(op: Builder, *, value: np.ndarray) -> Value:
    if value.dtype.kind == "c":
        value = np.stack([value.real, value.imag], axis=-1)
    if value.dtype.kind in "OSU":
        raise UnsupportedError("a constant of strings has no counterpart")
    return op.tensor(np.asarray(value))


@tf_op("Shape")
def shape(op: Builder, x: Value, *, out_type: tf.DType) -> Value:
    return op.cast(op.Shape(x), data_type(out_type))


@tf_op("ShapeN")
def shapes(op: Builder, xs: list[Value], *, out_type: tf.DType) -> list[Value]:
    return [op.cast(op.Shape(x), data_type(out_type)) for x in xs]


@tf_op("Size")
def size(op: Builder, x: Value, *, out_type: tf.DType) -> Value:
    return op.cast(op.Size(x), data_type(out_type))


@tf_op("Rank")
def rank(op: Builder, x: Value) -> Value:
    return op.constant(op.rank(x), ir.DataType.INT32)


@tf_op("Reshape")
def reshape(op: Builder, x: Value, wanted: Value) -> Value:
    content = op.content(wanted)
    if content is not None and any(item == 0 for item in content):
        return op.Reshape(x, op.sizes(wanted), allowzero=1)
    return op.Reshape(x, op.sizes(wanted))


@tf_op("ExpandDims")
def expand_dims(op: Builder, x: Value, axis: Value) -> Value:
    return op.Unsqueeze(x, [op.number(axis, "axis")])


@tf_op("Squeeze")
def squeeze(op: Builder, x: Value, *, squeeze_dims: list[int]) -> Value:
    """Without axes, all of size one."""
    axes = squeeze_dims
    if not axes:
        sizes = op.shape_of(x)
        if any(not isinstance(size, int) for size in sizes):
            raise UnsupportedError("a squeeze of all axes of size one, where some size varies: name the axes")
        axes = [axis for axis, size in enumerate(sizes) if size == 1]
    return op.Squeeze(x, sorted(op.axis(axis, x) for axis in axes)) if axes else op.Identity(x)


@tf_op("Transpose")
def transpose(op: Builder, x: Value, perm: Value) -> Value:
    return op.permute(x, [op.axis(axis, x) for axis in op.ints(perm, "permutation")])


@tf_op("ConcatV2")
def concat(op: Builder, xs: list[Value], axis: Value) -> Value:
    along = op.number(axis, "axis")
    return op.Concat(*xs, axis=op.axis(along, xs[0])) if len(xs) > 1 else op.Identity(xs[0])


@tf_op("Concat")
def concat_v1(op: Builder, axis: Value, xs: list[Value]) -> Value:
    return concat(op, xs, axis)


@tf_op("Pack")
def pack(op: Builder, xs: list[Value], *, axis: int) -> Value:
    parts = [op.Unsqueeze(x, [axis]) for x in xs]
    return op.Concat(*parts, axis=axis % (op.rank(xs[0]) + 1)) if len(parts) > 1 else parts[0]


@tf_op("Unpack")
def unpack(op: Builder, x: Value, *, num: int, axis: int) -> list[Value]:
    along = op.axis(axis, x)
    if num == 1:
        return [op.Squeeze(x, [along])]
    parts = op.Split(x, [1] * num, axis=along, outputs=num)
    return [op.Squeeze(part, [along]) for part in parts]


@tf_op("Split")
def split(op: Builder, axis: Value, x: Value, *, num_split: int) -> list[Value]:
    along = op.axis(op.number(axis, "axis"), x)
    if num_split == 1:
        return [op.Identity(x)]
    size = op.shape_of(x)[along]
    if isinstance(size, int):
        return list(op.Split(x, [size // num_split] * num_split, axis=along, outputs=num_split))
    return list(op.Split(x, axis=along, num_outputs=num_split, outputs=num_split))


@tf_op("SplitV", ignored=["num_split"])
def split_v(op: Builder, x: Value, sizes: Value, axis: Value) -> list[Value]:
    along = op.axis(op.number(axis, "axis"), x)
    parts: list[Any] = list(op.ints(sizes, "sizes"))
    if len(parts) == 1:
        return [op.Identity(x)]
    if -1 in parts:
        whole = op.shape_of(x)[along]
        if not isinstance(whole, int):
            raise UnsupportedError("a split whose last part is the rest of an axis that varies")
        parts[parts.index(-1)] = whole - sum(part for part in parts if part != -1)
    return list(op.Split(x, parts, axis=along, outputs=len(parts)))


@tf_op("Tile")
def tile(op: Builder, x: Value, multiples: Value) -> Value:
    return op.Tile(x, op.sizes(multiples))


@tf_op("BroadcastTo")
def broadcast_to(op: Builder, x: Value, wanted: Value) -> Value:
    return op.Expand(x, op.sizes(wanted))


@tf_op("BroadcastArgs")
def broadcast_args(op: Builder, a: Value, b: Value) -> Value:
    from porter.converters.frontends.tensorflow.shapes import broadcast

    first, second = op.content(a), op.content(b)
    both = broadcast(list(first), list(second)) if first is not None and second is not None else [None]
    if any(size is None for size in both):
        raise UnsupportedError("shapes that broadcast to one that is not known")
    return op.cast(op.dims([size for size in both if size is not None]), a.dtype)


@tf_op("Fill", ignored=["index_type"])
def fill(op: Builder, dims: Value, number: Value) -> Value:
    return op.Expand(number, op.sizes(dims))


@tf_op("ZerosLike")
def zeros_like(op: Builder, x: Value) -> Value:
    return op.Expand(op.like(0, x), op.Shape(x))


@tf_op("OnesLike")
def ones_like(op: Builder, x: Value) -> Value:
    return op.Expand(op.like(1, x), op.Shape(x))


@tf_op("Range")
def range_(op: Builder, start: Value, limit: Value, delta: Value) -> Value:
    return op.Range(start, limit, delta)


@tf_op("LinSpace")
def linspace(op: Builder, start: Value, stop: Value, num: Value) -> Value:
    """Exactly the last number at the end."""
    count = op.number(num, "number of steps")
    if count == 1:
        return op.Reshape(start, [1])
    share = op.tensor((np.arange(count) / (count - 1)).astype(start.dtype.numpy()))
    return op.Add(op.Mul(op.Sub(op.like(1, start), share), start), op.Mul(share, stop))


@tf_op("ReverseV2")
def reverse(op: Builder, x: Value, axes: Value) -> Value:
    along = [op.axis(axis, x) for axis in op.ints(axes, "axes")]
    if not along:
        return op.Identity(x)
    count = len(along)
    return op.Slice(x, [-1] * count, [-(1 << 62)] * count, along, [-1] * count)


@tf_op("ReverseSequence")
def reverse_sequence(op: Builder, x: Value, lengths: Value, *, seq_dim: int, batch_dim: int) -> Value:
    """ONNX reverses along one of the first two axes, with the batch on the other."""
    rest = [axis for axis in range(op.rank(x)) if axis not in (seq_dim, batch_dim)]
    order = [batch_dim, seq_dim, *rest]
    done = op.ReverseSequence(op.permute(x, order), op.cast(lengths, INT64), batch_axis=0, time_axis=1)
    return op.permute(done, [int(axis) for axis in np.argsort(order)])


@tf_op("Roll")
def roll(op: Builder, x: Value, shift: Value, axis: Value) -> Value:
    for amount, along in zip(op.ints(shift, "shift"), op.ints(axis, "axis"), strict=True):
        along = op.axis(along, x)
        size = op.shape_of(x)[along]
        if amount == 0:
            continue
        if isinstance(size, int):
            amount %= max(size, 1)
            if amount == 0:
                continue
        head = op.Slice(x, [-amount], [np.iinfo(np.int64).max], [along], [1])
        x = op.Concat(head, op.Slice(x, [0], [-amount], [along], [1]), axis=along)
    return x


# ---- padding ----


def _pads(op: Builder, paddings: Value, x: Value) -> list[Any]:
    rank = op.rank(x)
    found = op.content(paddings)
    if found is None:
        found = list(op.ints(paddings, "padding"))
    return [*(found[2 * axis] for axis in range(rank)), *(found[2 * axis + 1] for axis in range(rank))]


@tf_op("Pad")
def pad(op: Builder, x: Value, paddings: Value) -> Value:
    return op.Pad(x, op.dims(_pads(op, paddings, x)), op.like(0, x), mode="constant")


@tf_op("PadV2")
def pad_v2(op: Builder, x: Value, paddings: Value, number: Value) -> Value:
    return op.Pad(x, op.dims(_pads(op, paddings, x)), number, mode="constant")


@tf_op("MirrorPad")
def mirror_pad(op: Builder, x: Value, paddings: Value, *, mode: str) -> Value:
    """REFLECT leaves the edge out, SYMMETRIC repeats it: a strip of the image itself, turned around."""
    pads = _pads(op, paddings, x)
    if mode == "REFLECT":
        return op.Pad(x, op.dims(pads), None, mode="reflect")
    count = op.rank(x)
    for axis in range(count):
        begin, end = pads[axis], pads[axis + count]
        if not isinstance(begin, int) or not isinstance(end, int):
            raise UnsupportedError("symmetric padding of an amount that varies")
        parts = [x]
        if begin:
            parts.insert(0, op.Slice(x, [begin - 1], [-(1 << 62)], [axis], [-1]))
        if end:
            parts.append(op.Slice(x, [-1], [-end - 1], [axis], [-1]))
        x = op.Concat(*parts, axis=axis) if len(parts) > 1 else x
    return x


# ---- blocks ----


@tf_op("DepthToSpace")
def depth_to_space(op: Builder, x: Value, *, block_size: int, data_format: str) -> Value:
    return _blocks(op, x, data_format, lambda y: op.DepthToSpace(y, blocksize=block_size, mode="DCR"))


@tf_op("SpaceToDepth")
def space_to_depth(op: Builder, x: Value, *, block_size: int, data_format: str) -> Value:
    return _blocks(op, x, data_format, lambda y: op.SpaceToDepth(y, blocksize=block_size))


def _blocks(op: Builder, x: Value, data_format: str, apply: Any) -> Value:
    if data_format == "NCHW_VECT_C":
        raise UnsupportedError("the data format NCHW_VECT_C")
    if data_format == "NCHW":
        return apply(x)
    return op.Transpose(apply(op.Transpose(x, perm=[0, 3, 1, 2])), perm=[0, 2, 3, 1])


@tf_op("SpaceToBatchND")
def space_to_batch(op: Builder, x: Value, block_shape: Value, paddings: Value) -> Value:
    """Every block's place becomes a part of the batch, the place before the batch."""
    blocks, pads = op.ints(block_shape, "block shape"), op.ints(paddings, "padding")
    count, rank = len(blocks), op.rank(x)
    tail = [0] * (rank - 1 - count)
    full = [0, *pads[0::2], *tail, 0, *pads[1::2], *tail]
    x = op.Pad(x, full, op.like(0, x), mode="constant") if any(full) else x
    sizes = op.shape_of(x)
    inner = [part for axis, block in enumerate(blocks) for part in (_part(op, x, sizes, axis + 1, block), block)]
    rest = [_size(op, x, sizes, axis) for axis in range(count + 1, rank)]
    y = op.Reshape(x, op.dims([_size(op, x, sizes, 0), *inner, *rest]))
    places, images = [2 * axis + 2 for axis in range(count)], [2 * axis + 1 for axis in range(count)]
    y = op.Transpose(y, perm=[*places, 0, *images, *range(2 * count + 1, rank + count)])
    return op.Reshape(y, op.dims([-1, *inner[0::2], *rest]))


@tf_op("BatchToSpaceND")
def batch_to_space(op: Builder, x: Value, block_shape: Value, crops: Value) -> Value:
    blocks, cut = op.ints(block_shape, "block shape"), op.ints(crops, "crops")
    count, rank = len(blocks), op.rank(x)
    sizes = op.shape_of(x)
    images = [_size(op, x, sizes, axis) for axis in range(1, count + 1)]
    rest = [_size(op, x, sizes, axis) for axis in range(count + 1, rank)]
    y = op.Reshape(x, op.dims([*blocks, -1, *images, *rest]))
    pairs = [axis for place in range(count) for axis in (count + 1 + place, place)]
    y = op.Transpose(y, perm=[count, *pairs, *range(2 * count + 1, rank + count)])
    large = [_times(op, image, block) for image, block in zip(images, blocks, strict=True)]
    y = op.Reshape(y, op.dims([-1, *large, *rest]))
    if not any(cut):
        return y
    ends = [-end if end else np.iinfo(np.int64).max for end in cut[1::2]]
    return op.Slice(y, cut[0::2], ends, list(range(1, count + 1)), [1] * count)


def _size(op: Builder, x: Value, sizes: list[Any], axis: int) -> Any:
    return sizes[axis] if sizes[axis] is not None else op.Squeeze(op.Shape(x, start=axis, end=axis + 1), [0])


def _part(op: Builder, x: Value, sizes: list[Any], axis: int, block: int) -> Any:
    from porter.converters.frontends.tensorflow.dims import divide

    size = _size(op, x, sizes, axis)
    return op.Div(size, op.constant(block, INT64)) if isinstance(size, Value) else divide(size, block)


def _times(op: Builder, size: Any, block: int) -> Any:
    from porter.converters.frontends.tensorflow.dims import multiply

    return op.Mul(size, op.constant(block, INT64)) if isinstance(size, Value) else multiply(size, block)
