"""Resizing and patches of images, channels last."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.dims import divide, multiply
from porter.converters.frontends.tensorflow.ops.windows import back, channels_first, paddings
from porter.converters.frontends.tensorflow.table import tf_op
from porter.errors import UnsupportedError

Value = ir.Value
INT64 = ir.DataType.INT64


def _resize(op: Builder, images: Value, size: Value, align_corners: bool, half_pixel: bool, **settings: Any) -> Value:
    """Both sizes in one step; the coordinates as TensorFlow takes them."""
    mode = "align_corners" if align_corners else "half_pixel" if half_pixel else "asymmetric"
    x = channels_first(op, images, "NHWC")
    shape = op.shape_of(x)
    content = op.content(size)
    head = [s if s is not None else op.Squeeze(op.Shape(x, start=i, end=i + 1), [0]) for i, s in enumerate(shape[:2])]
    sizes = (
        op.dims([*head, *content]) if content is not None else op.Concat(op.dims(head), op.cast(size, INT64), axis=0)
    )
    y = op.Resize(x, None, None, sizes, coordinate_transformation_mode=mode, **settings)
    return back(op, y, "NHWC")


@tf_op("ResizeBilinear")
def resize_bilinear(op: Builder, images: Value, size: Value, *, align_corners: bool, half_pixel_centers: bool) -> Value:
    images = op.cast(images, op.dtype)
    return _resize(op, images, size, align_corners, half_pixel_centers, mode="linear")


@tf_op("ResizeNearestNeighbor")
def resize_nearest(op: Builder, images: Value, size: Value, *, align_corners: bool, half_pixel_centers: bool) -> Value:
    """With half pixels TensorFlow takes floor(x + 0.5 of the source's grid), with aligned corners it rounds."""
    rounding = "round_prefer_ceil"
    if not half_pixel_centers:
        rounding = "round_prefer_ceil" if align_corners else "floor"
    return _resize(op, images, size, align_corners, half_pixel_centers, mode="nearest", nearest_mode=rounding)


@tf_op("ResizeBicubic")
def resize_bicubic(op: Builder, images: Value, size: Value, *, align_corners: bool, half_pixel_centers: bool) -> Value:
    """Half pixels use Keys' cubic with a = -0.5 and leave what lies outside out; the old forms use a = -0.75."""
    _refuse_rounded_weights(op, images, size, align_corners, half_pixel_centers)
    images = op.cast(images, op.dtype)
    coefficient = -0.5 if half_pixel_centers else -0.75
    return _resize(
        op,
        images,
        size,
        align_corners,
        half_pixel_centers,
        mode="cubic",
        cubic_coeff_a=coefficient,
        exclude_outside=int(half_pixel_centers),
    )


def _refuse_rounded_weights(op: Builder, images: Value, size: Value, align_corners: bool, half_pixel: bool) -> None:
    """TensorFlow takes cubic weights from a table of 1024 steps: exact only where all distances are such steps."""
    for given, wanted in zip(op.shape_of(images)[1:3], op.content(size) or [None, None], strict=True):
        ratio = None
        if isinstance(given, int) and isinstance(wanted, int):
            shorter = align_corners and wanted > 1
            ratio = Fraction(given - 1, wanted - 1) if shorter else Fraction(given, wanted)
        elif given is not None and wanted is not None and not align_corners:
            factor = divide(wanted, given)
            ratio = Fraction(1, factor) if isinstance(factor, int) and multiply(given, factor) == wanted else None
        if ratio is None or _STEPS % (ratio.denominator * (2 if half_pixel else 1)):
            raise UnsupportedError(
                f"bicubic resizing from {given} to {wanted}: TensorFlow rounds its weights to steps of 1/{_STEPS}, "
                "which no other framework does; resize by a power of two, or bilinearly"
            )


_STEPS = 1024


@tf_op("ExtractImagePatches")
def patches(
    op: Builder, images: Value, *, ksizes: list[int], strides: list[int], rates: list[int], padding: str
) -> Value:
    """One convolution with a kernel of ones and zeros: every place of the window becomes channels."""
    channels = op.shape_of(images)[-1]
    if not isinstance(channels, int):
        raise UnsupportedError("patches of images whose number of channels varies")
    height, width = ksizes[1:3]
    kernel = np.zeros((height, width, channels, height, width, channels), dtype=images.dtype.numpy())
    for row in range(height):
        for column in range(width):
            kernel[row, column, range(channels), row, column, range(channels)] = 1
    weight = kernel.reshape(height, width, channels, -1).transpose(3, 2, 0, 1)
    x = channels_first(op, images, "NHWC")
    pads = paddings(padding, [], "NHWC", op.shape_of(x)[2:], [height, width], strides[1:3], rates[1:3])
    y = op.Conv(
        x,
        np.ascontiguousarray(weight),
        kernel_shape=[height, width],
        strides=strides[1:3],
        dilations=rates[1:3],
        **pads,
    )
    return back(op, y, "NHWC")


@tf_op("RGBToHSV")
def rgb_to_hsv(op: Builder, images: Value) -> Value:
    """Hue as a part of the circle, saturation, value; grey has hue 0."""
    r, g, b = op.Split(images, [1, 1, 1], axis=-1, outputs=3)
    high, low = op.ReduceMax(images, [-1], keepdims=1), op.ReduceMin(images, [-1], keepdims=1)
    spread = op.Sub(high, low)
    zero, one, sixth = op.like(0, images), op.like(1, images), op.like(1 / 6, images)
    grey, dark = op.Equal(spread, zero), op.Greater(high, zero)
    norm = op.Div(sixth, op.Where(grey, one, spread))
    from_red = op.Mul(norm, op.Sub(g, b))
    from_green = op.Add(op.Mul(norm, op.Sub(b, r)), op.like(2 / 6, images))
    from_blue = op.Add(op.Mul(norm, op.Sub(r, g)), op.like(4 / 6, images))
    hue = op.Where(op.Equal(r, high), from_red, op.Where(op.Equal(g, high), from_green, from_blue))
    hue = op.Where(grey, zero, op.Where(op.Less(hue, zero), op.Add(hue, one), hue))
    saturation = op.Where(dark, op.Div(spread, op.Where(dark, high, one)), zero)
    return op.Concat(hue, saturation, high, axis=-1)


@tf_op("HSVToRGB")
def hsv_to_rgb(op: Builder, images: Value) -> Value:
    h, s, v = op.Split(images, [1, 1, 1], axis=-1, outputs=3)
    zero, one = op.like(0, images), op.like(1, images)

    def ramp(shift: float, sign: float) -> Value:
        apart = op.Abs(op.Sub(op.Mul(h, op.like(6, images)), op.like(shift, images)))
        return op.Clip(
            op.Add(op.Mul(apart, op.like(sign, images)), op.like(-1.0 if sign > 0 else 2.0, images)), zero, one
        )

    shades = op.Concat(ramp(3, 1), ramp(2, -1), ramp(4, -1), axis=-1)
    return op.Mul(op.Add(op.Sub(one, s), op.Mul(s, shades)), v)


@tf_op("NonMaxSuppressionV3")
def non_max_suppression(op: Builder, boxes: Value, scores: Value, count: Value, iou: Value, score: Value) -> Value:
    """The indices of the boxes that stay, best first."""
    picked = op.NonMaxSuppression(
        op.Unsqueeze(boxes, [0]),
        op.Unsqueeze(scores, [0, 1]),
        op.Reshape(op.cast(count, INT64), [1]),
        op.Reshape(iou, [1]),
        op.Reshape(score, [1]),
        center_point_box=0,
    )
    return op.Squeeze(op.Slice(picked, [2], [3], [1], [1]), [1])
