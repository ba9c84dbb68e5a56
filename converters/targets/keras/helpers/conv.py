"""What Keras' convolutions lack."""

from __future__ import annotations

import math

from keras import ops


def spread(x, strides):
    """`stride - 1` zeros between neighbours along each spatial axis of a channels-last tensor."""
    for axis, stride in enumerate(strides, start=1):
        shape = list(ops.shape(x))
        widths = [(0, 0)] * (len(shape) + 1)
        widths[axis + 1] = (0, stride - 1)
        x = ops.pad(ops.expand_dims(x, axis + 1), widths)
        x = ops.reshape(x, [-1, *shape[1:axis], shape[axis] * stride, *shape[axis + 1 :]])
        x = x[(slice(None),) * axis + (slice(0, shape[axis] * stride - stride + 1),)]
    return x


def fold(columns, size, kernel_size, strides, padding, dilation_rate):
    """Windows put back where they were cut out and added where they overlap, as torch's `fold` does.

    From (batch, channels · window, number of windows) to (batch, channels, *size); `padding` holds (begin, end) of every
    spatial axis.
    """
    reach = [(length - 1) * dilation + 1 for length, dilation in zip(kernel_size, dilation_rate, strict=True)]
    spans = zip(size, padding, reach, strides, strict=True)
    counts = [(length + sum(ends) - extent) // stride + 1 for length, ends, extent, stride in spans]
    places = [0]
    for length, dilation, extent in zip(kernel_size, dilation_rate, reach, strict=True):
        places = [place * extent + number * dilation for place in places for number in range(length)]
    window = len(places)
    kernel = ops.transpose(ops.one_hot(places, math.prod(reach), dtype=columns.dtype))
    windows = ops.moveaxis(ops.reshape(columns, (-1, window, *counts)), 1, -1)
    x = ops.conv_transpose(windows, ops.reshape(kernel, (*reach, 1, window)), tuple(strides))
    x = ops.pad(x, ((0, 0), *((0, stride) for stride in strides), (0, 0)))
    inside = (slice(begin, begin + length) for length, (begin, _) in zip(size, padding, strict=True))
    return ops.reshape(x[(slice(None), *inside, 0)], (-1, ops.shape(columns)[1] // window, *size))
