"""Interpolation along the spatial axes of channels-last tensors, at any sizes and precision.

`size` holds the new size of each spatial axis, or `scale` the factor; an entry None leaves the axis alone.
"""

from __future__ import annotations

import keras
from keras import layers, ops


def bilinear_upsampling(factor):
    """Images `factor` times as large, exactly as interpolated: the mean over a pixel's width of repeated pixels."""
    width = 2 * factor
    return keras.Sequential([layers.UpSampling2D(width), layers.AveragePooling2D(width, strides=2, padding="same")])


def resized_axes(x, size, scale):
    """(axis, old size, new size, step between samples) of every axis that is resized."""
    for axis, given in enumerate(size or scale, start=1):
        if given is None:
            continue
        old = ops.shape(x)[axis]
        new, step = given, None
        if scale:
            new = (
                int(old * given)
                if isinstance(old, int)
                else ops.cast(ops.floor(ops.cast(old, "float64") * given), "int32")
            )
            step = 1 / given
        yield axis, old, new, step


def source_positions(old, new, step, coordinates):
    """Where the samples of an axis of `new` elements lie on the axis of `old` elements that they are made of."""
    dtype = keras.config.floatx()
    position = ops.arange(new, dtype=dtype)
    old, new = ops.convert_to_tensor(old, dtype=dtype), ops.convert_to_tensor(new, dtype=dtype)
    if coordinates == "align_corners":
        return position * ((old - 1) / ops.maximum(new - 1, 1))
    if coordinates == "asymmetric":
        return position * (old / new if step is None else step)
    centre = (position + 0.5) * (old / new if step is None else step) - 0.5
    if coordinates == "pytorch_half_pixel":
        return ops.where(new > 1, centre, ops.zeros_like(centre))
    if coordinates == "half_pixel_symmetric" and step is not None:
        return centre + old / 2 * (1 - new * step / old)
    return centre


def along(weights, axis, rank):
    """A vector made ready for a broadcast along an axis."""
    return ops.reshape(weights, (-1,) + (1,) * (rank - 1 - axis))


def resize_nearest(x, size=None, scale=None, coordinates="half_pixel", rounding="round_prefer_floor"):
    """Each sample is its nearest neighbour. Halfway cases are found in float32, as torch does."""
    for axis, old, new, step in resized_axes(x, size, scale):
        if coordinates == "half_pixel" and rounding == "round_prefer_ceil":
            position = ops.floor(ops.cast(source_positions(old, new, step, "half_pixel") + 0.5, "float32"))
        else:
            position = ops.cast(source_positions(old, new, step, coordinates), "float32")
        if rounding == "floor":
            position = ops.floor(position)
        elif rounding == "ceil":
            position = ops.ceil(position)
        elif rounding == "round_prefer_floor":
            position = ops.ceil(position - 0.5)
        elif coordinates != "half_pixel":
            position = ops.floor(position + 0.5)
        x = ops.take(x, ops.clip(ops.cast(position, "int32"), 0, old - 1), axis=axis)
    return x


def resize_linear(x, size=None, scale=None, coordinates="half_pixel"):
    """Linear interpolation; beyond its ends an axis goes on as it ends."""
    for axis, old, new, step in resized_axes(x, size, scale):
        position = source_positions(old, new, step, coordinates)
        position = ops.clip(position, 0, ops.cast(old - 1, position.dtype))
        low = ops.floor(position)
        share = ops.cast(along(position - low, axis, len(x.shape)), x.dtype)
        low = ops.cast(low, "int32")
        high = ops.minimum(low + 1, old - 1)
        x = ops.take(x, low, axis=axis) * (1 - share) + ops.take(x, high, axis=axis) * share
    return x


def cubic_weight(distance, a):
    """Keys' kernel: the weight of a neighbour at a distance."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return ops.where(distance <= 1, near, ops.where(distance < 2, far, ops.zeros_like(far)))


def resize_cubic(x, size=None, scale=None, coordinates="half_pixel", a=-0.75, exclude_outside=False):
    """Cubic interpolation; neighbours beyond an end repeat it, or do not count."""
    for axis, old, new, step in resized_axes(x, size, scale):
        position = source_positions(old, new, step, coordinates)
        low = ops.floor(position)
        taps = [(low + offset, cubic_weight(ops.abs(position - low - offset), a)) for offset in (-1, 0, 1, 2)]
        last = ops.cast(old - 1, position.dtype)
        if exclude_outside:
            taps = [(at, ops.where((at >= 0) & (at <= last), weight, ops.zeros_like(weight))) for at, weight in taps]
            total = sum(weight for _, weight in taps)
            taps = [(at, weight / total) for at, weight in taps]
        parts = []
        for at, weight in taps:
            values = ops.take(x, ops.cast(ops.clip(at, 0, last), "int32"), axis=axis)
            parts.append(values * ops.cast(along(weight, axis, len(x.shape)), x.dtype))
        x = sum(parts[1:], parts[0])
    return x


def resize_antialiased(x, size=None, scale=None, a=None):
    """Linear interpolation, or cubic by `a`, with a kernel that widens as the axis shrinks.

    Neighbours beyond an end do not count.
    """
    for axis, old, new, step in resized_axes(x, size, scale):
        position = source_positions(old, new, step, "half_pixel")
        dtype = position.dtype
        ratio = ops.convert_to_tensor(old, dtype=dtype) / ops.convert_to_tensor(new, dtype=dtype)
        widening = ops.maximum(ratio if step is None else step, ops.ones_like(ratio))
        distance = ops.abs(ops.expand_dims(position, 1) - ops.arange(old, dtype=dtype)) / widening
        weights = ops.relu(1 - distance) if a is None else cubic_weight(distance, a)
        weights = ops.cast(weights / ops.sum(weights, axis=1, keepdims=True), x.dtype)
        x = ops.moveaxis(ops.tensordot(x, weights, axes=[[axis], [1]]), -1, axis)
    return x
