"""Shapes: reshaping, joining, cutting, repeating, padding."""

from __future__ import annotations

from math import ceil
from typing import Any

from porter.converters.codegen.nodes import Expr, Literal, Ref, Size, call, wrap
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import new
from porter.converters.targets.torch.permute import permuted
from porter.converters.targets.types import Dims, Ints, Number, Tensor

_UNBOUNDED = 2**31 - 1


def _untold(size: int | str, x: Tensor) -> bool:
    """Whether a size of a result depends on data, or was made up by ONNX's shape inference, for all that `x` tells."""
    return size == "?" or (isinstance(size, str) and size.startswith("unk__") and size not in x.shape)


def sizes_of(value: Tensor, x: Tensor | None = None) -> tuple[int | Size, ...]:
    """The sizes of a value that is made from `x`, as arguments.

    Raises:
        CannotBind: a size is known at run time only.
    """
    if any(_untold(size, x or value) for size in value.shape):
        raise CannotBind(f"the shape {value.shape} depends on data")
    return tuple(Size(size) if isinstance(size, str) else size for size in value.shape)


def target_shape(x: Tensor, out: Tensor) -> tuple[int | Size, ...]:
    """The arguments of `reshape`: one size is left to PyTorch, best one that has to be computed.

    Raises:
        CannotBind: two sizes are known at run time only.
    """
    symbolic = [axis for axis, size in enumerate(out.shape) if isinstance(size, str)]
    untold = [axis for axis in symbolic if _untold(out.shape[axis], x)]
    if len(untold) > 1:
        raise CannotBind(f"the shape {out.shape} depends on data")
    computed = [axis for axis in symbolic if out.shape[axis] not in x.shape]
    left = next(iter([*untold, *computed, *symbolic]), None)
    sizes = [Size(size) if isinstance(size, str) else size for size in out.shape]
    return tuple(-1 if axis == left else size for axis, size in enumerate(sizes))


# ***** the same elements in another shape *****


@torch_op("Reshape", layout="fixed")
def reshape(x: Tensor, shape: Tensor, *, allowzero: int, out: Tensor) -> Expr:
    """By the shape of the result, in which `allowzero` and copied sizes are already worked out."""
    sizes = target_shape(x, out)
    return merged(x, out) or call(".reshape", x, *(sizes or ((),)))


def merged(x: Tensor, out: Tensor) -> Expr | None:
    """A run of axes that becomes one, at the end or in the middle; None when it is more than that."""
    gone = x.rank - out.rank
    start = next((i for i, (a, b) in enumerate(zip(x.shape, out.shape, strict=False)) if a != b or a == "?"), None)
    if gone < 1 or not start:
        return None
    tail = out.shape[start + 1 :]
    if tail != x.shape[x.rank - len(tail) :] or "?" in tail:
        return None
    return call(".flatten", x, start, *([start + gone] if tail else []))


@torch_op("Reshape", layout="fixed")
def reshape_computed(x: Tensor, shape: Tensor, *, allowzero: int) -> Expr:
    return call(".reshape", x, call(".tolist", shape))


@torch_op("Flatten", layout="fixed")
def flatten(x: Tensor, *, axis: int, out: Tensor) -> Expr:
    axis += x.rank if axis < 0 else 0
    if axis == 1 and x.rank > 1:
        return call(".flatten", x, 1)
    if axis in (0, x.rank):
        return call(".reshape", x, *((1, -1) if axis == 0 else (-1, 1)))
    return call(".flatten", call(".flatten", x, axis), 0, axis - 1)


@torch_op("Transpose", layout="fixed")
def transpose(x: Tensor, *, perm: Ints) -> Expr:
    return permuted(x, perm)


@torch_op("Squeeze", layout="fixed")
def squeeze(x: Tensor, axes: Ints | None = None) -> Expr:
    """A size that must be one and is not known to be is read at its only place."""
    gone = (
        sorted(axis % x.rank for axis in axes)
        if axes is not None
        else [i for i, size in enumerate(x.shape) if size == 1]
    )
    if not gone:
        return x
    return call(".squeeze", x, gone[0] if len(gone) == 1 else tuple(gone))


@torch_op("Unsqueeze", layout="fixed")
def unsqueeze(x: Tensor, axes: Ints) -> Expr:
    """One axis by its method, several by indexing."""
    rank = x.rank + len(axes)
    if len(axes) == 1:
        return call(".unsqueeze", x, axes[0])
    added = {axis % rank for axis in axes}
    items = [None if axis in added else slice(None) for axis in range(max(added) + 1)]
    return x[tuple(items)]


# ***** joining and cutting *****


@torch_op("Concat", axes=["axis"], data=None)
def concat(*xs: Tensor, axis: int) -> Expr:
    if len(xs) == 1:
        return xs[0]
    slices = [_unsqueezed(x, axis) for x in xs]
    if all(part is not None for part in slices):
        return call("torch.stack", slices, dim=axis)
    return call("torch.cat", list(xs), dim=axis)


def _unsqueezed(x: Tensor, axis: int) -> Tensor | None:
    """What `x` is with an axis of size one put in at `axis`: concatenating such tensors is stacking."""
    producer = x.value.producer()
    if producer is None or producer.op_type != "Unsqueeze":
        return None
    axes = constant_of(producer.inputs[1])
    added = axes is not None and [int(a) % x.rank for a in axes.reshape(-1)] == [axis % x.rank]
    return Ref(producer.inputs[0]) if added else None


@torch_op("Split", axes=["axis"])
def split(x: Tensor, sizes: Dims | None = None, *, outs: list[Tensor], axis: int, num_outputs: int = 0) -> Expr:
    """A number of equal parts, or their sizes."""
    if len(outs) == 1:
        return x
    total, count = x.shape[axis], len(outs)
    if sizes is None and not isinstance(total, int):
        return call("split_evenly", x, count, axis)
    if sizes is None and isinstance(total, int) and total % count:
        part = ceil(total / count)
        sizes = Dims(tuple(max(min(part, total - part * index), 0) for index in range(count)))
    if sizes is None or len(set(sizes)) == 1:
        return call(".chunk", x, count, dim=axis)
    return call(".split", x, list(sizes), dim=axis)


@torch_op("Split", axes=["axis"])
def split_computed(x: Tensor, sizes: Tensor, *, axis: int, num_outputs: int = 0) -> Expr:
    return call(".split", x, call(".tolist", sizes), dim=axis)


def _bound(value: int | Size, *, start: bool, size: int | str) -> int | Size | None:
    """One end of a Python slice; None where it is the end of the axis anyway."""
    if isinstance(value, Size):
        return None if not start and value.expression == size else value
    whole = size if isinstance(size, int) else _UNBOUNDED
    at_end = value == 0 or value <= -whole if start else value >= whole
    return None if at_end else value


def _from_behind(value: int | Size) -> int | Expr:
    """A position counted on the flipped axis."""
    return Literal(-1) - value if isinstance(value, Size) else -1 - value


@torch_op("Slice", axes=["axes"])
def slice_(x: Tensor, starts: Dims, ends: Dims, axes: Ints | None = None, steps: Ints | None = None) -> Expr:
    """Python's slices are ONNX's. PyTorch takes no negative steps: these count on the flipped axis."""
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(axes)
    items: list[Expr] = [Literal(slice(None))] * x.rank
    flipped = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis %= x.rank
        size = x.shape[axis]
        first: Any = _bound(start, start=True, size=size) if step > 0 else start
        last: Any = _bound(end, start=False, size=size) if step > 0 else end
        if step < 0:
            flipped.append(axis)
            whole = size if isinstance(size, int) else _UNBOUNDED
            first = None if isinstance(start, int) and (start == -1 or start >= whole - 1) else _from_behind(start)
            last = None if isinstance(end, int) and end < -whole else _from_behind(end)
        items[axis] = slice_of(first, last, abs(step))
    used = [axis for axis, item in enumerate(items) if item != Literal(slice(None))]
    turned: Expr = call(".flip", x, flipped[0] if len(flipped) == 1 else tuple(sorted(flipped))) if flipped else x
    return turned[tuple(items[: used[-1] + 1])] if used else turned


def slice_of(start: int | Expr | None, stop: int | Expr | None, step: int = 1) -> Expr:
    """`start:stop:step` with what is 0 or the end left out."""
    return wrap(slice(start, stop, None if step == 1 else step))


@torch_op("Slice", axes=["axes"])
def slice_computed(
    x: Tensor, starts: Tensor, ends: Tensor, axes: Ints | None = None, steps: Ints | None = None
) -> Expr:
    axes = axes if axes is not None else tuple(range(int(starts.shape[0])))
    steps = steps if steps is not None else (1,) * len(axes)
    if min(steps) < 0:
        raise CannotBind("negative steps between bounds that are computed")
    items: list[Expr] = [Literal(slice(None))] * x.rank
    for index, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        items[axis % x.rank] = slice_of(starts[index], ends[index], step)
    return x[tuple(items[: max(axis % x.rank for axis in axes) + 1])]


# ***** repeating *****


@torch_op("Expand", layout="fixed")
def expand(x: Tensor, shape: Tensor, *, out: Tensor) -> Expr:
    """To the shape of the result: ONNX broadcasts both ways. An expanded number is a constant tensor."""
    sizes = sizes_of(out, x)
    if x.shape == out.shape:
        return x
    number = constant_of(x.value)
    if number is not None and number.size == 1:
        return filled(sizes, number.reshape(-1)[0].item(), out)
    before = out.rank - x.rank
    kept = [axis >= before and x.shape[axis - before] == out.shape[axis] for axis in range(out.rank)]
    return call(".expand", x, *(-1 if same else size for same, size in zip(kept, sizes, strict=True)))


@torch_op("Expand", layout="fixed")
def expand_computed(x: Tensor, shape: Tensor) -> Expr:
    """Where the shape holds 1, `x` keeps its size."""
    return x.__class__(x.value) if x.rank == 0 and shape.shape == (0,) else call("expand", x, shape)


def filled(sizes: tuple | Expr, number: Number, out: Tensor) -> Expr:
    """A tensor of one number, in the type that the class computes in where ONNX says float32."""
    arguments = list(sizes) if isinstance(sizes, tuple) and sizes else [sizes]
    if number in (0, 1):
        return call(f"torch.{'ones' if number else 'zeros'}", *arguments, **new(out.dtype))
    return call("torch.full", sizes, number, **new(out.dtype))


@torch_op("Tile", vectors=["repeats"])
def tile(x: Tensor, repeats: Dims) -> Expr:
    return x if set(repeats) <= {1} else call(".repeat", x, *repeats)


@torch_op("Tile", vectors=["repeats"])
def tile_computed(x: Tensor, repeats: Tensor) -> Expr:
    return call(".repeat", x, call(".tolist", repeats))


# ***** padding *****

_MODES = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@torch_op("Pad", vectors=["pads"])
def pad(x: Tensor, pads: Dims, value: Tensor | None = None, axes: Ints | None = None, *, mode: str) -> Expr:
    """Counted from the last axis; negative numbers crop. What is no number pads images alone."""
    count = len(pads) // 2
    pairs: list[tuple[int | Size, int | Size]] = [(0, 0)] * x.rank
    for axis, begin, end in zip(axes if axes is not None else range(x.rank), pads[:count], pads[count:], strict=True):
        pairs[axis] = (begin, end)
    used = [axis for axis, pair in enumerate(pairs) if pair != (0, 0)]
    if not used:
        return x
    flat = tuple(side for axis in range(x.rank - 1, used[0] - 1, -1) for side in pairs[axis])
    if mode == "constant":
        number = constant_of(value.value) if value is not None else None
        filling = (
            None if value is None else number.reshape(-1)[0].item() if number is not None else call(".item", value)
        )
        return call("F.pad", x, flat, value=None if isinstance(filling, int | float) and filling == 0 else filling)
    inner = x.rank - used[0]
    whole = all(not isinstance(side, int) or side >= 0 for side in flat)
    if whole and inner <= 3 and x.rank in (inner + 1, inner + 2) and x.dtype.is_floating_point():
        return call("F.pad", x, flat, mode=_MODES[mode])
    return call("pad_axes", x, [list(pair) for pair in pairs], mode)
