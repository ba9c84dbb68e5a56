"""Images: resizing, and what is made of it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import each, in_dtype, rank, to_back, to_front
from porter.converters.frontends.keras.rules.conv import channels_last
from porter.converters.frontends.keras.rules.shape import padded
from porter.converters.frontends.keras.table import keras_layer, keras_operation
from porter.errors import UnsupportedError

Value = ir.Value

# How ONNX says what TensorFlow does: pixels are areas, and what lies outside the image does not count.
_MODES: dict[str, dict[str, Any]] = {
    "nearest": {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
    "bilinear": {"mode": "linear"},
    "bicubic": {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
}


@keras_operation("Resize")
def resize(
    op: Builder,
    images: Value,
    *,
    size: Any,
    interpolation: str,
    antialias: bool,
    crop_to_aspect_ratio: bool,
    pad_to_aspect_ratio: bool,
    fill_mode: str,
    fill_value: float,
    data_format: str | None,
) -> Value:
    if interpolation not in _MODES:
        raise UnsupportedError(f"resizing with {interpolation!r}; use nearest, bilinear or bicubic")
    height, width = (int(n) for n in size)
    last = channels_last(data_format)
    x = op.Unsqueeze(images, [0]) if rank(images) == 3 else images
    if x.shape is None:
        x.shape = ir.Shape([1, *images.shape])
    x = to_front(op, x, last)
    if not x.dtype.is_floating_point() and interpolation != "nearest":
        x = op.cast(x, ir.DataType.FLOAT)
    if crop_to_aspect_ratio:
        x = _cropped(op, x, height, width)
    elif pad_to_aspect_ratio:
        x = _extended(op, x, height, width, fill_mode, fill_value)
    how = {**_MODES[interpolation], "coordinate_transformation_mode": "half_pixel"}
    if antialias and interpolation != "nearest":
        how |= {"antialias": 1, "exclude_outside": 1}
    y = op.Resize(x, None, None, [height, width], axes=[2, 3], **how)
    y = to_back(op, y, last, 4)
    if not images.dtype.is_floating_point() and interpolation != "nearest" and not op.dtype.is_floating_point():
        y = op.Round(y)
    return op.Squeeze(y, [0]) if rank(images) == 3 else y


def _known_sides(x: Value, what: str) -> tuple[int, int]:
    height, width = x.shape[2], x.shape[3]
    if not isinstance(height, int) or not isinstance(width, int):
        raise UnsupportedError(f"{what} of images whose sizes vary; fix them with --static")
    return height, width


def _cropped(op: Builder, x: Value, height: int, width: int) -> Value:
    """The largest part in the middle that has the wanted proportions."""
    h, w = _known_sides(x, "crop_to_aspect_ratio")
    kept_h = min(int(float(w * height) / width), h)
    kept_w = min(int(float(h * width) / height), w)
    top, left = int(float(h - kept_h) / 2), int(float(w - kept_w) / 2)
    return op.Slice(x, [top, left], [top + kept_h, left + kept_w], [2, 3], [1, 1])


def _extended(op: Builder, x: Value, height: int, width: int, mode: str, value: float) -> Value:
    """The smallest image around it that has the wanted proportions."""
    if mode != "constant":
        raise UnsupportedError(f"pad_to_aspect_ratio with fill_mode={mode!r}; only constant works")
    h, w = _known_sides(x, "pad_to_aspect_ratio")
    whole_h = max(int(float(w * height) / width), h)
    whole_w = max(int(float(h * width) / height), w)
    top, left = int(float(whole_h - h) / 2), int(float(whole_w - w) / 2)
    return padded(op, x, [(0, 0), (0, 0), (top, top), (left, left)], "constant", value)


@keras_layer("UpSampling1D", "UpSampling2D", "UpSampling3D")
def upsampling(op: Builder, layer: Any, inputs: Value) -> Value:
    """Whole factors: every pixel becomes a block, or its neighbours are mixed."""
    factors = each(layer.size, rank(inputs) - 2)
    interpolation = getattr(layer, "interpolation", "nearest")
    if interpolation not in _MODES:
        raise UnsupportedError(f"UpSampling with {interpolation!r}; use nearest, bilinear or bicubic")
    how = {**_MODES[interpolation], "coordinate_transformation_mode": "half_pixel"}
    if interpolation == "nearest":
        how = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    last = channels_last(getattr(layer, "data_format", "channels_last"))
    x = to_front(op, inputs, last)
    scales = in_dtype(op, op.vector([1, 1, *factors]), ir.DataType.FLOAT)
    return to_back(op, op.Resize(x, None, scales, **how), last, rank(inputs))


@keras_operation("RGBToGrayscale")
def grayscale(op: Builder, images: Value, *, data_format: str | None) -> Value:
    """The luminance that TensorFlow weighs."""
    import numpy as np

    axis = rank(images) - (1 if channels_last(data_format) else 3)
    shape = [3 if a == axis else 1 for a in range(rank(images))]
    weights = op.cast(op.tensor(np.asarray([0.2989, 0.5870, 0.1140], np.float64).reshape(shape)), images.dtype)
    return op.ReduceSum(op.Mul(images, weights), [axis], keepdims=1)
