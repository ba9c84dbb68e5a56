"""Arithmetic that Keras rounds or differentiates in another way."""

from __future__ import annotations

from keras import ops


def truncated_divide(x, y):
    """Integer division that rounds towards zero; `//` rounds down."""
    return ops.floor_divide(ops.subtract(x, ops.fmod(x, y)), y)


def l2_norm(x, axis=None, keepdims=False):
    """The Euclidean norm, with gradient 0 rather than NaN where it is 0."""
    squares = ops.sum(ops.square(x), axis=axis, keepdims=keepdims)
    zero = ops.equal(squares, 0)
    return ops.where(zero, 0, ops.sqrt(ops.where(zero, 1, squares)))


def exclusive_cumsum(x, axis):
    """The sum of all elements before each."""
    total = ops.cumsum(x, axis=axis)
    before = (slice(None),) * (axis % len(x.shape))
    return ops.concatenate([ops.zeros_like(total[(*before, slice(0, 1))]), total[(*before, slice(0, -1))]], axis=axis)


def top_k(x, k, axis=-1, largest=True):
    """The `k` largest or smallest elements along an axis, in order, and their int64 positions."""
    x = ops.swapaxes(x, axis, -1)
    if largest:
        values, indices = ops.top_k(x, k)
    else:
        indices = ops.argsort(x, axis=-1)[..., :k]
        values = ops.take_along_axis(x, indices, axis=-1)
    return ops.swapaxes(values, axis, -1), ops.cast(ops.swapaxes(indices, axis, -1), "int64")
