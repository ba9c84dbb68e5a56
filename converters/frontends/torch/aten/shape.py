"""Shapes: views, permutations, joining and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.dtypes import from_torch
from porter.converters.frontends.torch.table import aten
from porter.errors import UnsupportedError

Value = ir.Value
_END = 2**63 - 1


@aten(
    "alias", "contiguous", "clone", "lift_fresh_copy", "lift_fresh", "resolve_conj",
    "resolve_neg", "positive", "lift",
)  # fmt: skip
def same(op: Builder, x: Value, **_: Any) -> Value:
    """Memory layout has no meaning in ONNX."""
    return x


@aten("_to_copy", "to.dtype", "to.device", "to.dtype_layout", "type_as", "to.other", "_autocast_to_full_precision")
def to_dtype(op: Builder, x: Value, *_: Any, **__: Any) -> Value:
    return op.cast(x, op.dtype)


@aten(
    "view", "reshape", "_unsafe_view", "view_as", "reshape_as", "unflatten.int", "flatten.using_ints", "_reshape_alias"
)
def reshape(op: Builder, x: Value, *_: Any) -> Value:
    """To the size that torch worked out, whatever the operator's own way of saying it."""
    return op.Reshape(x, op.shape_of_output())


@aten("view.dtype")
def view_dtype(op: Builder, x: Value, dtype: Any) -> Value:
    """The same bits read as another type have no counterpart."""
    if x.dtype != from_torch(dtype):
        raise UnsupportedError(f"the bits of a tensor viewed as {dtype}; convert it with .to() if its values are meant")
    return x


@aten("expand", "expand_as", "broadcast_to", "expand_copy")
def expand(op: Builder, x: Value, *_: Any, **__: Any) -> Value:
    return op.Expand(x, op.shape_of_output())


@aten("squeeze")
def squeeze_all(op: Builder, x: Value) -> Value:
    return op.Squeeze(x, [axis for axis, size in enumerate(x.shape) if size == 1])


@aten("squeeze.dim", "squeeze.dims")
def squeeze(op: Builder, x: Value, dim: Any) -> Value:
    axes = [axis % max(len(x.shape), 1) for axis in ([dim] if isinstance(dim, int) else dim)]
    axes = [axis for axis in axes if x.shape[axis] == 1]
    return op.Squeeze(x, axes) if axes else x


@aten("unsqueeze")
def unsqueeze(op: Builder, x: Value, dim: int) -> Value:
    return op.Unsqueeze(x, [dim])


@aten("transpose.int", "swapaxes", "t")
def transpose(op: Builder, x: Value, dim0: int = 0, dim1: int = 1) -> Value:
    rank = len(x.shape)
    if rank < 2:
        return x
    perm = list(range(rank))
    perm[dim0], perm[dim1] = perm[dim1], perm[dim0]
    return op.Transpose(x, perm=perm)


@aten("numpy_T")
def transpose_all(op: Builder, x: Value) -> Value:
    return op.Transpose(x, perm=list(reversed(range(len(x.shape)))))


@aten("mT", "adjoint")
def transpose_last(op: Builder, x: Value) -> Value:
    rank = len(x.shape)
    return op.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])


@aten("permute")
def permute(op: Builder, x: Value, dims: Sequence[int]) -> Value:
    return op.Transpose(x, perm=[dim % len(x.shape) for dim in dims])


@aten("movedim.int", "movedim.intlist")
def movedim(op: Builder, x: Value, source: Any, destination: Any) -> Value:
    rank = len(x.shape)
    sources = [d % rank for d in ([source] if isinstance(source, int) else source)]
    targets = [d % rank for d in ([destination] if isinstance(destination, int) else destination)]
    rest = iter(axis for axis in range(rank) if axis not in sources)
    perm = [sources[targets.index(axis)] if axis in targets else next(rest) for axis in range(rank)]
    return op.Transpose(x, perm=perm)


@aten("cat", "concat", "concatenate")
def cat(op: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    """torch leaves out empty vectors of any other rank."""
    kept = [t for t in tensors if not (len(t.shape) == 1 and t.shape[0] == 0)]
    cast = [op.cast(t, op.dtype) for t in kept]
    return cast[0] if len(cast) == 1 else op.Concat(*cast, axis=dim)


@aten("stack")
def stack(op: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    return op.Concat(*(op.Unsqueeze(op.cast(t, op.dtype), [dim]) for t in tensors), axis=dim)


def _split(op: Builder, x: Value, sizes: list[Any], dim: int) -> tuple[Value, ...]:
    if len(sizes) == 1:
        return (x,)
    return op.Split(x, op.vector(sizes), axis=dim, outputs=len(sizes))


@aten(
    "split.Tensor",
    "split.sizes",
    "split_with_sizes",
    "chunk",
    "tensor_split.sections",
    "unsafe_chunk",
    "unsafe_split.Tensor",
)
def split(op: Builder, x: Value, sizes: Any, dim: int = 0) -> tuple[Value, ...]:
    """Into the pieces that torch worked out, whatever the operator's own way of saying it."""
    return _split(op, x, op.output_sizes(dim), dim)


@aten("unbind.int")
def unbind(op: Builder, x: Value, dim: int = 0) -> tuple[Value, ...]:
    return tuple(op.Gather(x, op.constant(index, ir.DataType.INT64), axis=dim) for index in range(int(x.shape[dim])))


@aten("slice.Tensor")
def slice_(op: Builder, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Value:
    start = 0 if start is None else start
    end = _END if end is None else end
    if isinstance(start, int) and start == 0 and isinstance(end, int) and end >= _END and step == 1:
        return x
    return op.Slice(x, op.vector([start]), op.vector([end]), [dim], [step])


@aten("narrow")
def narrow(op: Builder, x: Value, dim: int, start: Any, length: Any) -> Value:
    end = (
        start + length
        if isinstance(start, int) and isinstance(length, int)
        else op.Add(op.vector([start]), op.vector([length]))
    )
    return op.Slice(x, op.vector([start]), end if isinstance(end, ir.Value) else [end], [dim], [1])


@aten("select.int")
def select(op: Builder, x: Value, dim: int, index: Any) -> Value:
    return op.Gather(x, op.constant(index, ir.DataType.INT64) if isinstance(index, int) else index, axis=dim)


@aten("flip")
def flip(op: Builder, x: Value, dims: Sequence[int]) -> Value:
    dims = list(dims)
    return op.Slice(x, [-1] * len(dims), [-_END] * len(dims), dims, [-1] * len(dims))


@aten("roll")
def roll(op: Builder, x: Value, shifts: Any, dims: Any = ()) -> Value:
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    if not dims:
        flat = op.Reshape(x, [-1])
        return op.Reshape(_rolled(op, flat, shifts[0], 0), op.shape_of_output())
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(op, x, shift, dim)
    return x


def _rolled(op: Builder, x: Value, shift: int, dim: int) -> Value:
    """The tail before the head; where they part is worked out when the size is known."""
    size = x.shape[dim] if x.shape is not None else None
    if isinstance(size, int):
        start = -shift % size if size else 0
        if start == 0:
            return x
        cut = op.vector([start])
    else:
        dim %= len(op.shape or [1])
        cut = op.Mod(op.constant([-shift], ir.DataType.INT64), op.Shape(x, start=dim, end=dim + 1))
    shape = x.shape
    rolled = op.Concat(op.Slice(x, cut, [_END], [dim], [1]), op.Slice(x, [0], cut, [dim], [1]), axis=dim)
    rolled.shape = shape
    return rolled


@aten("repeat", "tile")
def repeat(op: Builder, x: Value, repeats: Sequence[Any]) -> Value:
    missing = len(repeats) - len(x.shape)
    if missing > 0:
        x = op.Unsqueeze(x, list(range(missing)))
    elif missing < 0:
        repeats = [1] * -missing + list(repeats)
    return op.Tile(x, op.vector(list(repeats)))


@aten("repeat_interleave.self_int")
def repeat_interleave(op: Builder, x: Value, repeats: int, dim: int | None = None, output_size: Any = None) -> Value:
    if dim is None:
        x, dim = op.Reshape(x, [-1]), 0
    rank = len(op.shape or [])
    dim %= rank
    wide = op.Tile(op.Unsqueeze(x, [dim + 1]), [1] * (dim + 1) + [repeats] + [1] * (rank - dim - 1))
    return op.Reshape(wide, op.shape_of_output())


@aten("constant_pad_nd")
def constant_pad(op: Builder, x: Value, pad: Sequence[Any], value: float = 0) -> Value:
    return _pad(op, x, pad, "constant", op.constant(value, x))


@aten("pad")
def pad(op: Builder, x: Value, pad: Sequence[Any], mode: str = "constant", value: float | None = None) -> Value:
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return _pad(op, x, pad, modes[mode], op.constant(value or 0, x) if mode == "constant" else None)


def _padding(mode: str, name: str) -> None:
    def rule(op: Builder, x: Value, padding: Sequence[Any]) -> Value:
        return _pad(op, x, padding, mode, None)

    aten(*(f"{name}_pad{rank}d" for rank in (1, 2, 3)))(rule)


_padding("reflect", "reflection")
_padding("edge", "replication")


def _pad(op: Builder, x: Value, pad: Sequence[Any], mode: str, fill: Value | None) -> Value:
    """torch lists (begin, end) from the last axis backwards; negative numbers crop, which is a Slice of its own."""
    rank = len(x.shape)
    count = len(pad) // 2
    begins = [0] * (rank - count) + [pad[2 * i] for i in reversed(range(count))]
    ends = [0] * (rank - count) + [pad[2 * i + 1] for i in reversed(range(count))]
    pairs = enumerate(zip(begins, ends, strict=True))
    axes = [axis for axis, pair in pairs if any(isinstance(size, int) and size < 0 for size in pair)]
    if axes:
        starts = [max(-begins[axis], 0) if isinstance(begins[axis], int) else 0 for axis in axes]
        stops = [ends[axis] if isinstance(ends[axis], int) and ends[axis] < 0 else _END for axis in axes]
        x = op.Slice(x, starts, stops, axes, [1] * len(axes))
    sizes = [max(size, 0) if isinstance(size, int) else size for size in [*begins, *ends]]
    if all(isinstance(size, int) and size == 0 for size in sizes):
        return x
    return op.Pad(x, op.vector(sizes), fill, mode=mode)


@aten("pixel_shuffle")
def pixel_shuffle(op: Builder, x: Value, upscale_factor: int) -> Value:
    rank = len(x.shape)
    if rank == 4:
        return op.DepthToSpace(x, blocksize=upscale_factor, mode="CRD")
    images = op.Reshape(x, op.Concat(op.vector([-1]), op.Shape(x, start=rank - 3), axis=0))
    return op.Reshape(op.DepthToSpace(images, blocksize=upscale_factor, mode="CRD"), op.shape_of_output())


@aten("pixel_unshuffle")
def pixel_unshuffle(op: Builder, x: Value, downscale_factor: int) -> Value:
    """ONNX's SpaceToDepth orders channels by block first, torch by channel first: so blocks are moved behind."""
    r = downscale_factor
    rank = len(x.shape)
    x = x if rank == 4 else op.Reshape(x, op.Concat(op.vector([-1]), op.Shape(x, start=rank - 3), axis=0))
    blocks = op.SpaceToDepth(x, blocksize=r)
    apart = [op.Shape(x, start=0, end=1), op.vector([r * r]), op.Shape(x, start=1, end=2), op.Shape(blocks, start=2)]
    moved = op.Transpose(op.Reshape(blocks, op.Concat(*apart, axis=0)), perm=[0, 2, 1, 3, 4])
    return op.Reshape(moved, op.shape_of_output())


@aten("channel_shuffle")
def channel_shuffle(op: Builder, x: Value, groups: int) -> Value:
    channels = int(x.shape[1])
    apart = op.Reshape(
        x, op.Concat(op.Shape(x, start=0, end=1), op.vector([groups, channels // groups]), op.Shape(x, start=2), axis=0)
    )
    perm = [0, 2, 1, *range(3, len(x.shape) + 1)]
    return op.Reshape(op.Transpose(apart, perm=perm), op.shape_of_output())


@aten("unfold")
def unfold(op: Builder, x: Value, dimension: int, size: int, step: int) -> Value:
    """Windows along an axis, the window's own axis last."""
    rank = len(x.shape)
    dimension %= rank
    length = op.Shape(x, start=dimension, end=dimension + 1)
    stop = op.Squeeze(op.Sub(length, op.vector([size - 1])), [0])
    zero = op.constant(0, ir.DataType.INT64)
    starts = op.Range(zero, stop, op.constant(step, ir.DataType.INT64))
    offsets = op.Range(zero, op.constant(size, ir.DataType.INT64), op.constant(1, ir.DataType.INT64))
    windows = op.Gather(x, op.Add(op.Unsqueeze(starts, [1]), offsets), axis=dimension)
    perm = [axis for axis in range(rank + 1) if axis != dimension + 1] + [dimension + 1]
    return op.Transpose(windows, perm=perm)


@aten("meshgrid", "meshgrid.indexing")
def meshgrid(op: Builder, tensors: Sequence[Value], indexing: str = "ij") -> tuple[Value, ...]:
    count = len(tensors)
    order = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else list(range(count))
    sizes = op.Concat(*(op.Shape(tensors[i]) for i in order), axis=0)
    grids = []
    for i, tensor in enumerate(tensors):
        position = order.index(i)
        apart = op.Unsqueeze(tensor, [axis for axis in range(count) if axis != position])
        grids.append(op.Expand(apart, sizes))
    return tuple(grids)


@aten("diagonal")
def diagonal(op: Builder, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    rank = len(x.shape)
    dim1, dim2 = dim1 % rank, dim2 % rank
    perm = [axis for axis in range(rank) if axis not in (dim1, dim2)] + [dim1, dim2]
    moved = op.Transpose(x, perm=perm) if perm != list(range(rank)) else x
    joined = op.Reshape(moved, op.Concat(op.Shape(moved, start=0, end=rank - 2), op.vector([-1]), axis=0))
    length = (op.shape or [0])[-1]
    if isinstance(length, int) and isinstance(x.shape[dim2], int):
        width = int(x.shape[dim2])
        flat = [(i - min(offset, 0)) * width + i + max(offset, 0) for i in range(length)]
        return op.Gather(joined, op.tensor(np.asarray(flat, dtype=np.int64)), axis=rank - 2)
    count = op.constant(length, ir.DataType.INT64) if isinstance(length, int) else op.size(length)
    columns = op.Squeeze(op.Shape(moved, start=rank - 1, end=rank), [0])
    one, zero = op.constant(1, ir.DataType.INT64), op.constant(0, ir.DataType.INT64)
    along = op.Mul(op.Range(zero, count, one), op.Add(columns, one))
    below, right = (op.constant(abs(bound), ir.DataType.INT64) for bound in (min(offset, 0), max(offset, 0)))
    begin = op.Add(op.Mul(columns, below), right)
    return op.Gather(joined, op.Add(along, begin), axis=rank - 2)
