"""Pooling that Keras lacks. Tensors are channels last."""

from __future__ import annotations

from keras import ops


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
