"""Gathers and scatters by ONNX's rules: negative indices count from the end, repeated ones are combined."""

from __future__ import annotations

import math

from keras import ops


def without_padding_gradient(vectors, indices, padding_index):
    """Embedded `indices`, with no gradient to the vector of `padding_index`."""
    padding = ops.expand_dims(ops.equal(indices, padding_index), -1)
    return ops.where(padding, ops.stop_gradient(vectors), vectors)


def gather_nd(x, indices, batch_dims=0):
    """The elements or slices of `x` at `indices`, whose last axis holds one position for each of the first axes of `x`.

    The first `batch_dims` axes of both belong together.
    """
    shape, batch = ops.shape(x), ops.shape(x)[:batch_dims]
    depth = indices.shape[-1]
    sizes, rest = shape[batch_dims : batch_dims + depth], shape[batch_dims + depth :]
    positions = flat_positions(indices, sizes)
    if batch_dims:
        rows = ops.reshape(
            ops.arange(math.prod(batch), dtype=positions.dtype), (*batch, *[1] * (len(positions.shape) - batch_dims))
        )
        positions = positions + rows * ops.cast(math.prod(sizes), positions.dtype)
    return ops.take(ops.reshape(x, (-1, *rest)), positions, axis=0)


def flat_positions(indices, sizes):
    """Rows of positions as positions in the flattened axes that have `sizes`."""
    flat = 0
    for axis, size in enumerate(sizes):
        position = indices[..., axis]
        size = ops.cast(size, position.dtype)
        flat = flat * size + ops.where(ops.less(position, 0), position + size, position)
    return flat


def scatter_nd(x, indices, updates, reduction=None):
    """`x` with `updates` written, or combined with what is there, at `indices` (see `gather_nd`)."""
    shape, depth = ops.shape(x), indices.shape[-1]
    rest = shape[depth:]
    positions = ops.reshape(flat_positions(indices, shape[:depth]), (-1, 1))
    flat, updates = ops.reshape(x, (-1, *rest)), ops.reshape(updates, (-1, *rest))
    return ops.reshape(ops.scatter_update(flat, positions, updates, reduction), shape)


def scatter_elements(x, indices, updates, axis=0, reduction=None):
    """`x` with each of `updates` written, or combined, at its own place, but where `indices` says along `axis`."""
    shape = ops.shape(indices)
    grid = [
        ops.broadcast_to(
            ops.reshape(ops.arange(size, dtype=indices.dtype), [-1 if i == at else 1 for i in range(len(shape))]), shape
        )
        for at, size in enumerate(shape)
    ]
    grid[axis] = indices
    return scatter_nd(x, ops.stack(grid, axis=-1), updates, reduction)


def unique(x, axis=None, in_order=False):
    """The distinct elements (or slices along `axis`), sorted or in order of appearance; where each occurs first, where
    each element went, and how often it occurs, as int64.
    """
    values, first, inverse, counts = ops.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = ops.reshape(inverse, (-1,))
    if in_order:
        order = ops.argsort(first)
        values, first, counts = ops.take(values, order, axis=axis or 0), ops.take(first, order), ops.take(counts, order)
        inverse = ops.take(ops.argsort(order), inverse)
    return values, *(ops.cast(part, "int64") for part in (first, inverse, counts))
