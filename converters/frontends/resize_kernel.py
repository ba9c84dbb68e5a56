"""ONNX Resize in float64: one matrix of weights per axis, as the standard defines coordinates and filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from porter.converters.frontends.kernels import Array, Attributes, kernel


@kernel
def Resize(
    attributes: Attributes, x: Array, roi: Array = None, scales: Array = None, sizes: Array = None
) -> tuple[np.ndarray, ...]:
    axes = list(attributes.get("axes", range(x.ndim)))
    if attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch" or (roi is not None and roi.size):
        raise NotImplementedError("a region of interest, or a kept aspect ratio")
    for position, axis in enumerate(axes):
        n = x.shape[axis]
        if sizes is not None and sizes.size:
            out = int(sizes[position])
            scale = out / n
        else:
            scale = float(scales[position])
            out = math.floor(n * scale)
        if out == n and scale == 1:
            continue
        weights = _weights(n, out, scale, attributes)
        x = np.moveaxis(np.tensordot(weights, x, axes=(1, axis)), 0, axis)
    return (x,)


def _weights(n: int, out: int, scale: float, attributes: Attributes) -> np.ndarray:
    """The (out, n) matrix that resizes one axis."""
    matrix = np.zeros((out, n))
    mode = attributes.get("mode", "nearest")
    for row in range(out):
        place = _place(row, n, out, scale, attributes.get("coordinate_transformation_mode", "half_pixel"))
        if mode == "nearest":
            matrix[row, min(max(_nearest(place, attributes.get("nearest_mode", "round_prefer_floor")), 0), n - 1)] = 1
            continue
        stretch = max(1.0, 1 / scale) if attributes.get("antialias") else 1.0
        support = stretch * (1 if mode == "linear" else 2)
        taps = np.arange(math.floor(place - support), math.ceil(place + support) + 1)
        distance = np.abs(taps - place) / stretch
        values = np.maximum(0, 1 - distance) if mode == "linear" else _cubic(distance, attributes)
        if attributes.get("exclude_outside"):
            values = np.where((taps >= 0) & (taps < n), values, 0)
        np.add.at(matrix[row], np.clip(taps, 0, n - 1), values / values.sum())
    return matrix


def _place(row: int, n: int, out: int, scale: float, mode: str) -> float:
    """The source coordinate of an output pixel."""
    if mode == "asymmetric":
        return row / scale
    if mode == "align_corners":
        return row * (n - 1) / (n * scale - 1) if out > 1 else 0.0
    if mode == "pytorch_half_pixel" and out == 1:
        return 0.0
    if mode not in ("half_pixel", "pytorch_half_pixel"):
        raise NotImplementedError(f"coordinate_transformation_mode {mode!r}")
    return (row + 0.5) / scale - 0.5


def _nearest(place: float, mode: str) -> int:
    floor = math.floor(place)
    return {
        "floor": floor,
        "ceil": math.ceil(place),
        "round_prefer_floor": math.ceil(place - 0.5),
        "round_prefer_ceil": math.floor(place + 0.5),
    }[mode]


def _cubic(distance: np.ndarray, attributes: Attributes) -> Any:
    a = attributes.get("cubic_coeff_a", -0.75)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))
