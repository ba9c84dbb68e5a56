"""What Keras' convolutions lack."""

from __future__ import annotations

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
