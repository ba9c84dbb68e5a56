"""Pooling that Keras lacks. Tensors are channels last."""

from __future__ import annotations

import math

from keras import ops

from porter.converters.targets.keras.helpers.shapes import largest_size


def pool_3d(pool, x, pool_size, strides, padding="valid"):
    """`pool` (`ops.max_pool` or `ops.average_pool`) over volumes: within planes first, then along the depth.

    TensorFlow's own 3-D pooling stops at float32.
    """
    _, depth, height, width, channels = ops.shape(x)
    x = ops.reshape(x, (-1, height, width, channels))
    x = pool(x, tuple(pool_size[1:]), tuple(strides[1:]), padding)
    _, height, width, _ = ops.shape(x)
    x = ops.reshape(x, (-1, depth, height * width, channels))
    x = pool(x, (pool_size[0], 1), (strides[0], 1), padding)
    return ops.reshape(x, (-1, ops.shape(x)[1], height, width, channels))


def dilated_pool(combine, x, pool_size, strides, dilation_rate):
    """`combine` (`ops.maximum` or `ops.add`) over the elements of windows with holes, one axis after the other."""
    for axis in range(len(pool_size), 0, -1):
        size, stride, dilation = pool_size[axis - 1], strides[axis - 1], dilation_rate[axis - 1]
        reach = (size - 1) * dilation
        before = (slice(None),) * axis
        total = None
        for start in range(0, reach + 1, dilation):
            part = x[(*before, slice(start, (start - reach) or None, stride))]
            total = part if total is None else combine(total, part)
        x = total
    return x


def average_pool(x, pool_size, strides, padding, counted=None, dilation_rate=None):
    """The mean of each window over the elements inside the input and the `counted` part of its `padding`.

    Both paddings hold (begin, end) for each spatial axis.
    """

    def total(values):
        if dilation_rate is not None:
            return dilated_pool(ops.add, values, pool_size, strides, dilation_rate)
        if len(pool_size) == 3:
            return pool_3d(ops.average_pool, values, pool_size, strides)
        return ops.average_pool(values, tuple(pool_size), tuple(strides), "valid")

    counted = counted or ((0, 0),) * len(pool_size)
    rest = [(p[0] - c[0], p[1] - c[1]) for p, c in zip(padding, counted, strict=True)]
    ones = ops.ones_like(x[:1, ..., :1])
    ones = ops.pad(ones, ((0, 0), *counted, (0, 0)), constant_values=1)
    ones = ops.pad(ones, ((0, 0), *rest, (0, 0)))
    return total(ops.pad(x, ((0, 0), *padding, (0, 0)))) / total(ones)


def same_padding(x, reach, strides, lower=False):
    """(begin, end) for each spatial axis, so that a window of `reach` elements starts at every stride.

    An odd padding has its larger half behind, or with `lower` in front.
    """
    ends = []
    for length, extent, stride in zip(ops.shape(x)[1:-1], reach, strides, strict=True):
        total = largest_size((-(-length // stride) - 1) * stride + extent - length, 0)
        smaller = total // 2
        ends.append((total - smaller, smaller) if lower else (smaller, total - smaller))
    return ends


def pad_same(x, reach, strides, value=0.0, lower=False):
    """`value` around the spatial axes, so that a window of `reach` elements starts at every stride."""
    ends = same_padding(x, reach, strides, lower)
    return ops.pad(x, ((0, 0), *ends, (0, 0)), constant_values=value)


def max_pool_with_indices(x, pool_size, strides, padding, dilation_rate, least, column_major=False):
    """The maximum of each window and where it lies in the input as one channels-first row, the first of equal ones.

    `padding` holds (begin, end) for each spatial axis, filled with `least`; with `column_major` the spatial axes count
    in reverse order.
    """
    batch, *sizes, channels = ops.shape(x)
    padded = ops.pad(x, ((0, 0), *padding, (0, 0)), constant_values=least)
    reach = [(size - 1) * dilation for size, dilation in zip(pool_size, dilation_rate, strict=True)]
    values, indices = None, None
    for number in range(math.prod(pool_size)):
        starts = []
        for size, dilation in zip(reversed(pool_size), reversed(dilation_rate), strict=True):
            number, offset = divmod(number, size)
            starts.insert(0, offset * dilation)
        spans = zip(starts, reach, strides, strict=True)
        part = padded[(slice(None), *(slice(a, (a - end) or None, stride) for a, end, stride in spans))]
        place = 0
        axes = range(len(sizes))
        for axis in reversed(axes) if column_major else axes:
            along = ops.arange(ops.shape(part)[axis + 1], dtype="int32") * strides[axis] + (
                starts[axis] - padding[axis][0]
            )
            place = place * sizes[axis] + ops.reshape(along, (-1,) + (1,) * (len(sizes) - axis))
        place = ops.cast(ops.broadcast_to(place, ops.shape(part)), "int64")
        if values is None:
            values, indices = part, place
        else:
            better = part > values
            values, indices = ops.where(better, part, values), ops.where(better, place, indices)
    plane = math.prod(sizes)
    rows = ops.reshape(ops.arange(batch), (-1,) + (1,) * (len(sizes) + 1)) * channels + ops.arange(channels)
    return values, indices + ops.cast(rows * plane, "int64")
