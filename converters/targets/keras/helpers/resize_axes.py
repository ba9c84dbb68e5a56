"""Resizing along any axes with all that ONNX's Resize can be told; `resize` has the short forms of the usual cases."""

from __future__ import annotations

import keras
from keras import ops

from porter.converters.targets.keras.helpers.resize import along, cubic_weight, source_positions


def scaled_size(old, factor, rounding):
    """The size of an axis that grows by a factor, cut off behind `rounding` is added."""
    if isinstance(old, int) and isinstance(factor, (int, float)):
        return int(old * factor + rounding)
    return ops.cast(ops.floor(ops.cast(old, "float64") * ops.cast(factor, "float64") + rounding), "int32")


def common_factor(old, new, aspect_ratio):
    """The one factor for all axes that makes none larger than `new` ("not_larger") or none smaller."""
    pairs = list(zip(old, new, strict=True))
    if all(isinstance(before, int) and isinstance(after, int) for before, after in pairs):
        shares = [after / before for before, after in pairs]
        return min(shares) if aspect_ratio == "not_larger" else max(shares)
    shares = ops.stack([ops.cast(after, "float64") / ops.cast(before, "float64") for before, after in pairs])
    return ops.min(shares) if aspect_ratio == "not_larger" else ops.max(shares)


def steps_of_axes(x, axes, size, scale, aspect_ratio):
    """(old size, new size, step between samples) of every resized axis, the step None where sizes tell it."""
    old = [ops.shape(x)[axis] for axis in axes]
    rounding, factors = 0, scale
    if scale is None:
        new = [size[n] if isinstance(size[n], int) else ops.cast(size[n], "int32") for n in range(len(axes))]
        if aspect_ratio == "stretch":
            return [(before, after, None) for before, after in zip(old, new, strict=True)]
        rounding, factors = 0.5, [common_factor(old, new, aspect_ratio)] * len(axes)
    found = []
    for number, before in enumerate(old):
        step = 1 / factors[number]
        step = step if isinstance(step, float) else ops.cast(step, keras.config.floatx())
        found.append((before, scaled_size(before, factors[number], rounding), step))
    return found


def cropped_positions(old, new, start, end):
    """Where the samples lie that cut the part from `start` to `end` out of an axis, in shares of its length."""
    dtype = keras.config.floatx()
    last, start, end, count = (ops.convert_to_tensor(number, dtype=dtype) for number in (old - 1, start, end, new))
    position = (start + ops.arange(new, dtype=dtype) * (end - start) / ops.maximum(count - 1, 1)) * last
    return ops.where(count > 1, position, (start + end) / 2 * last)


def nearest_whole(position, rounding):
    """The whole number that a position is rounded to."""
    if rounding == "round_prefer_floor":
        return ops.ceil(position - 0.5)
    if rounding == "round_prefer_ceil":
        return ops.floor(position + 0.5)
    return ops.floor(position) if rounding == "floor" else ops.ceil(position)


def sample_weights(position, old, widening, a, exclude_outside):
    """What every element of an axis counts in every sample: (samples, elements), linearly or, by `a`, cubically.

    The kernel is wider by `widening`, if that is more than 1. Elements beyond an end repeat it, or do not count.
    """
    dtype = position.dtype
    reach = 2 if widening is None else 2 * old + 1
    taps = ops.arange(old, dtype=dtype) if exclude_outside else ops.arange(-reach, old + reach, dtype=dtype)
    distance = ops.abs(ops.expand_dims(position, 1) - taps)
    if widening is not None:
        distance = distance / ops.maximum(ops.convert_to_tensor(widening, dtype=dtype), 1)
    weights = ops.relu(1 - distance) if a is None else cubic_weight(distance, a)
    weights = weights / ops.sum(weights, axis=1, keepdims=True)
    if exclude_outside:
        return weights
    nearest = ops.clip(taps, 0, ops.cast(old - 1, dtype))
    return ops.matmul(weights, ops.cast(ops.expand_dims(nearest, 1) == ops.arange(old, dtype=dtype), dtype))


def resize_along(
    x, axes, size=None, scale=None, mode="nearest", coordinates="half_pixel", rounding="round_prefer_floor", a=-0.75,
    antialias=False, exclude_outside=False, roi=None, extrapolation=0.0, aspect_ratio="stretch",
):  # fmt: skip
    """Resize `axes` to `size` or by `scale`, with all that ONNX's Resize can be told.

    `roi` holds where the part begins that is cut out of each axis, then where it ends, in shares of the axis; samples
    that are not of the axis are `extrapolation`. Whole numbers are rounded and stay in the range of their type.
    """
    dtype, outside = keras.backend.standardize_dtype(x.dtype), None
    if mode != "nearest" and "int" in dtype:
        x = ops.cast(x, keras.config.floatx())
    for number, (old, new, step) in enumerate(steps_of_axes(x, axes, size, scale, aspect_ratio)):
        axis = axes[number]
        if roi is None:
            position = source_positions(old, new, step, coordinates)
        else:
            position = cropped_positions(old, new, roi[number], roi[len(axes) + number])
            last = ops.cast(old - 1, position.dtype)
            beyond = along((position < 0) | (position > last), axis, len(x.shape))
            outside = beyond if outside is None else outside | beyond
            position = ops.clip(position, 0, last)
        if mode == "nearest":
            index = ops.cast(nearest_whole(position, rounding), "int32")
            x = ops.take(x, ops.clip(index, 0, old - 1), axis=axis)
            continue
        widening = (old / new if step is None else step) if antialias else None
        weights = sample_weights(position, old, widening, a if mode == "cubic" else None, exclude_outside)
        x = ops.moveaxis(ops.tensordot(x, ops.cast(weights, x.dtype), axes=[[axis], [1]]), -1, axis)
    if outside is not None:
        x = ops.where(outside, ops.convert_to_tensor(extrapolation, dtype=x.dtype), x)
    return saturated(x, dtype) if mode != "nearest" and "int" in dtype else x


def saturated(x, dtype):
    """Rounded to whole numbers, in the range of a type of integers."""
    bits = int(dtype.lstrip("uint"))
    low, high = (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return ops.cast(ops.clip(ops.round(x), low, high), dtype)
