"""What Keras' convolutions lack."""

from __future__ import annotations

from keras import ops

from porter.converters.targets.keras.helpers.shapes import largest_size


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


def padded_for_windows(x, reach, counts, extra=None, upper=False):
    """Zeros around the spatial axes, so that windows of `reach` elements start at `counts` places.

    These are in the middle of all places where a window meets the input (and of `extra` more behind them); where that
    is not whole, the larger part is left out in front, or behind with `upper`. More places than there are go on behind.
    """
    for axis, (extent, count) in enumerate(zip(reach, counts, strict=True), start=1):
        length = ops.shape(x)[axis]
        left_out = largest_size(length + extent - 1 + (0 if extra is None else extra[axis - 1]) - count, 0)
        before = extent - 1 - (left_out // 2 if upper else left_out - left_out // 2)
        after = count + extent - 1 - length - before
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = (largest_size(before, 0), largest_size(after, 0))
        first = largest_size(-before, 0)
        x = ops.pad(x, widths)[(slice(None),) * axis + (slice(first, first + count + extent - 1),)]
    return x
