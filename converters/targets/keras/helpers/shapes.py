"""Paddings, broadcasts and arithmetic of sizes that Keras lacks."""

from __future__ import annotations

from keras import ops


def pad_edge(x, pad_width):
    """`x` with its outermost elements repeated; `pad_width` holds (before, after) of every axis."""
    for axis, (before, after) in enumerate(pad_width):
        positions = ops.arange(-before, ops.shape(x)[axis] + after)
        if not (isinstance(before, int) and isinstance(after, int) and before == after == 0):
            x = ops.take(x, ops.clip(positions, 0, ops.shape(x)[axis] - 1), axis=axis)
    return x


def pad_wrap(x, pad_width):
    """`x` continued periodically; `pad_width` holds (before, after) of every axis."""
    for axis, (before, after) in enumerate(pad_width):
        positions = ops.arange(-before, ops.shape(x)[axis] + after)
        if not (isinstance(before, int) and isinstance(after, int) and before == after == 0):
            x = ops.take(x, ops.mod(positions, ops.shape(x)[axis]), axis=axis)
    return x


def expand(x, shape):
    """`x` broadcast to `shape`, a tensor; where `shape` holds 1, `x` keeps its size."""
    return ops.where(ops.ones(shape, dtype="bool"), x, ops.zeros_like(x))


def largest_size(*sizes):
    """The largest of sizes that are numbers or, where they vary, tensors."""
    if all(isinstance(size, int) for size in sizes):
        return max(sizes)
    return ops.max(ops.stack([ops.cast(size, "int32") for size in sizes]))


def smallest_size(*sizes):
    """The smallest of sizes that are numbers or, where they vary, tensors."""
    if all(isinstance(size, int) for size in sizes):
        return min(sizes)
    return ops.min(ops.stack([ops.cast(size, "int32") for size in sizes]))
