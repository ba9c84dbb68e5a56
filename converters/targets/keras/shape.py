"""Shapes: reshaping, joining, cutting, repeating, padding."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import ceil

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Literal, Ref, Size, call, layer, wrap
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.cast import dtype_argument, dtype_name
from porter.converters.targets.table import CannotBind
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
    """The argument of `reshape`: one size is left to Keras, best one that has to be computed.

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


@keras_op("Reshape", layout="fixed")
def reshape(x: Tensor, shape: Tensor, *, allowzero: int, out: Tensor) -> Expr:
    """By the shape of the result, in which `allowzero` and copied sizes are already worked out."""
    return call("ops.reshape", x, target_shape(x, out))


@keras_op("Reshape", layout="fixed")
def reshape_computed(x: Tensor, shape: Tensor, *, allowzero: int) -> Expr:
    return call("ops.reshape", x, shape)


@keras_op("Flatten", layout="fixed")
def flatten(x: Tensor, *, axis: int, out: Tensor) -> Expr:
    """A layer forgets what it can't multiply: a size that is known all the same must be said."""
    if axis == 1 and x.rank > 2 and (not isinstance(out.shape[1], int) or all(isinstance(d, int) for d in x.shape[1:])):
        return layer("Flatten")(x)
    if axis in (0, x.rank):
        return call("ops.reshape", x, (1, -1) if axis == 0 else (-1, 1))
    return call("ops.reshape", x, target_shape(x, out))


@keras_op("Transpose", layout="fixed")
def transpose(x: Tensor, *, perm: Ints) -> Expr:
    return call("ops.transpose", x, perm)


@keras_op("Squeeze", layout="fixed")
def squeeze(x: Tensor, axes: Ints | None = None) -> Expr:
    """Keras insists that a size is known to be one; where it is not, the only element is read."""
    gone = (
        sorted(axis % x.rank for axis in axes)
        if axes is not None
        else [i for i, size in enumerate(x.shape) if size == 1]
    )
    if any(x.shape[axis] != 1 for axis in gone):
        return x[tuple(Literal(0 if axis in gone else slice(None)) for axis in range(gone[-1] + 1))]
    return call("ops.squeeze", x, axis=gone[0] if len(gone) == 1 else tuple(gone)) if gone else x


@keras_op("Unsqueeze", layout="fixed")
def unsqueeze(x: Tensor, axes: Ints) -> Expr:
    return call("ops.expand_dims", x, axis=axes[0] if len(axes) == 1 else axes)


# ***** joining and cutting *****


@keras_op("Concat", axes=["axis"], data=None)
def concat(*xs: Tensor, axis: int) -> Expr:
    if len(xs) == 1:
        return xs[0]
    slices = [_unsqueezed(x, axis) for x in xs]
    if all(part is not None for part in slices):
        return call("ops.stack", slices, axis=axis)
    return call("ops.concatenate", list(xs), axis=axis)


def _unsqueezed(x: Tensor, axis: int) -> Tensor | None:
    """What `x` is with an axis of size one put in at `axis`: concatenating such tensors is stacking."""
    producer = x.value.producer()
    if producer is None or producer.op_type != "Unsqueeze":
        return None
    axes = constant_of(producer.inputs[1])
    added = axes is not None and [int(a) % x.rank for a in axes.reshape(-1)] == [axis % x.rank]
    return Ref(producer.inputs[0]) if added else None


@keras_op("Split", axes=["axis"])
def split(
    x: Tensor, sizes: Dims | None = None, *, outs: list[Tensor], axis: int, num_outputs: int = 0
) -> Expr | tuple[Expr, ...]:
    """Keras takes a number of equal parts or the places to cut, these only where it knows the size."""
    total = x.shape[axis]
    if sizes is None and isinstance(total, int):
        part = ceil(total / len(outs))
        sizes = Dims((*[part] * (len(outs) - 1), total - part * (len(outs) - 1)))
    if len(outs) == 1:
        return x
    if sizes is None or len(set(sizes)) == 1:
        return call("ops.split", x, len(outs), axis=axis)
    cuts = list(accumulate(sizes[:-1], lambda a, b: a + b))
    if isinstance(total, int):
        return call("ops.split", x, cuts, axis=axis)
    before = [Literal(slice(None))] * (axis % x.rank)
    return tuple(x[(*before, slice_of(a, b))] for a, b in pairwise([None, *cuts, None]))


@keras_op("Split", axes=["axis"])
def split_computed(x: Tensor, sizes: Tensor, *, outs: list[Tensor], axis: int, num_outputs: int = 0) -> Expr:
    """TensorFlow alone has pieces whose sizes data decide."""
    return call("tf.split", x, sizes, axis=axis, num=len(outs))


def _bound(value: int | Size, *, start: bool, step: int, size: int | str) -> int | Size | None:
    """One end of a Python slice; None where it is the end of the axis anyway."""
    if isinstance(value, Size):
        return None if not start and step > 0 and value.expression == size else value
    whole = size if isinstance(size, int) else _UNBOUNDED
    if step > 0:
        at_end = value == 0 or value <= -whole if start else value >= whole
    else:
        at_end = value == -1 or value >= whole - 1 if start else value < -whole
    return None if at_end else value


@keras_op("Slice", axes=["axes"])
def slice_(x: Tensor, starts: Dims, ends: Dims, axes: Ints | None = None, steps: Ints | None = None) -> Expr:
    """Python's slices are ONNX's, save that an end beyond the axis is written by leaving it out."""
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(axes)
    items: list[Expr] = [Literal(slice(None))] * x.rank
    flipped = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        first = _bound(start, start=True, step=step, size=x.shape[axis])
        last = _bound(end, start=False, step=step, size=x.shape[axis])
        items[axis % x.rank] = slice_of(first, last, step)
        if step == -1 and first is None and last is None:
            flipped.append(axis % x.rank)
    used = [axis for axis, item in enumerate(items) if item != Literal(slice(None))]
    if not used:
        return x
    if used == sorted(flipped):
        return call("ops.flip", x, axis=used[0] if len(used) == 1 else tuple(used))
    return x[tuple(items[: used[-1] + 1])]


def slice_of(start: int | Expr | None, stop: int | Expr | None, step: int = 1) -> Expr:
    """`start:stop:step` with what is 0 or the end left out."""
    return wrap(slice(start, stop, None if step == 1 else step))


@keras_op("Slice", axes=["axes"])
def slice_computed(
    x: Tensor, starts: Tensor, ends: Tensor, axes: Ints | None = None, steps: Ints | None = None
) -> Expr:
    axes = axes if axes is not None else tuple(range(int(starts.shape[0])))
    steps = steps if steps is not None else (1,) * len(axes)
    items: list[Expr] = [Literal(slice(None))] * x.rank
    for index, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        items[axis % x.rank] = slice_of(starts[index], ends[index], step)
    return x[tuple(items[: max(axis % x.rank for axis in axes) + 1])]


# ***** repeating *****


@keras_op("Expand", layout="fixed")
def expand(x: Tensor, shape: Tensor, *, out: Tensor) -> Expr:
    """To the shape of the result: ONNX broadcasts both ways. An expanded number is a constant tensor."""
    sizes = sizes_of(out, x)
    if x.shape == out.shape:
        return x
    number = constant_of(x.value)
    if number is not None and number.size == 1:
        return filled(sizes, number.reshape(-1)[0].item(), out)
    return call("ops.broadcast_to", x, sizes)


@keras_op("Expand", layout="fixed")
def expand_computed(x: Tensor, shape: Tensor) -> Expr:
    return call("expand", x, shape)


def filled(sizes: tuple | Expr, number: Number, out: Tensor) -> Expr:
    """A tensor of one number, in the type that the layer computes in where ONNX says float32.

    What a loop begins with and what a branch gives say so: they must be of one type with what the layer computes.
    """
    dtype = None if dtype_name(out.dtype) == "float32" and not _crosses(out.value) else dtype_argument(out.dtype)
    if number == 0:
        return call("ops.zeros", sizes, dtype=dtype)
    return call("ops.ones", sizes, dtype=dtype) if number == 1 else call("ops.full", sizes, number, dtype=dtype)


def _crosses(value: ir.Value) -> bool:
    """Whether a value goes into a loop or out of a branch as it is."""
    users = [node for node, _ in value.uses()]
    copies = [node.outputs[0] for node in users if node.op_type in ("Identity", "Transpose")]
    return (
        value.is_graph_output() or any(node.op_type in ("Loop", "Scan") for node in users) or any(map(_crosses, copies))
    )


@keras_op("Tile", vectors=["repeats"])
def tile(x: Tensor, repeats: Dims) -> Expr:
    return x if set(repeats) <= {1} else call("ops.tile", x, repeats)


@keras_op("Tile", vectors=["repeats"])
def tile_computed(x: Tensor, repeats: Tensor) -> Expr:
    """Keras wants to know the number of repeats."""
    return call("tf.tile", x, repeats)


# ***** padding *****

_MODES = {"constant": "ops.pad", "reflect": "ops.pad", "edge": "pad_edge", "wrap": "pad_wrap"}


def _negative(side: int | Size) -> int:
    """A padding that crops, else 0."""
    return side if isinstance(side, int) and side < 0 else 0


@keras_op("Pad", vectors=["pads"])
def pad(x: Tensor, pads: Dims, value: Tensor | None = None, axes: Ints | None = None, *, mode: str) -> Expr:
    """Negative numbers crop, which Keras leaves to slices."""
    count = len(pads) // 2
    pairs: list[tuple[int | Size, int | Size]] = [(0, 0)] * x.rank
    for axis, begin, end in zip(axes if axes is not None else range(x.rank), pads[:count], pads[count:], strict=True):
        pairs[axis] = (begin, end)
    cropped = [(_negative(begin), _negative(end)) for begin, end in pairs]
    kept: Expr = x
    if any(begin or end for begin, end in cropped):
        kept = x[tuple(Literal(slice(-begin or None, end or None)) for begin, end in cropped)]
        pairs = [(0 if _negative(begin) else begin, 0 if _negative(end) else end) for begin, end in pairs]
    if all(side == 0 for pair in pairs for side in pair):
        return kept
    if mode != "constant":
        return call(_MODES[mode], kept, pairs, **({"mode": mode} if mode == "reflect" else {}))
    number = constant_of(value.value) if value is not None else None
    plain = value is None or (number is not None and not number.reshape(-1)[0])
    return call("ops.pad", kept, pairs, constant_values=None if plain else value)
