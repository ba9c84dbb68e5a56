"""Interpolation and sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.errors import UnsupportedError

Value = ir.Value


def _resize(
    op: Builder, x: Value, size: Sequence[Any] | None, scales: Sequence[float | None] | None, **attributes: Any
) -> Value:
    """By scales when torch was given scales (they enter the coordinates), else to sizes.

    With aligned corners the scales only serve to find whole sizes; ONNX would use the sizes before rounding.
    """
    if scales is not None and all(scale is not None for scale in scales):
        if attributes["coordinate_transformation_mode"] != "align_corners":
            factors = op.tensor(np.asarray([1, 1, *scales], dtype=np.float32))
            return op.Resize(x, None, factors, **attributes)
        sizes = _scaled_sizes(op, x, [float(scale) for scale in scales if scale is not None])
    else:
        sizes = op.vector(list(size or []))
    return op.Resize(x, None, None, op.Concat(op.Shape(x, start=0, end=2), sizes, axis=0), **attributes)


def _scaled_sizes(op: Builder, x: Value, scales: list[float]) -> Value:
    sizes = list(op.shape or [])[2:]
    if all(isinstance(size, int) for size in sizes):
        return op.vector(sizes)
    before = op.Shape(x, start=2)
    if all(scale.is_integer() for scale in scales):
        return op.Mul(before, [int(scale) for scale in scales])
    after = op.Floor(op.Mul(op.cast(before, ir.DataType.DOUBLE), op.tensor(np.asarray(scales, dtype=np.float64))))
    return op.cast(after, ir.DataType.INT64)


def _nearest(rank: int) -> None:
    """Sampled at floor(i·in/out) ("asymmetric"); `exact` takes pixel centres."""

    def rule(op: Builder, x: Value, size: Sequence[Any] | None, *scales: float | None) -> Value:
        return _resize(
            op,
            x,
            size,
            scales or None,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )

    def exact(op: Builder, x: Value, size: Sequence[Any] | None, *scales: float | None) -> Value:
        return _resize(
            op,
            x,
            size,
            scales or None,
            mode="nearest",
            coordinate_transformation_mode="half_pixel",
            nearest_mode="round_prefer_ceil",
        )

    def vector(op: Builder, x: Value, size: Sequence[Any] | None, scales: Sequence[float] | None = None) -> Value:
        return rule(op, x, size, *(scales or ()))

    def exact_vector(op: Builder, x: Value, size: Sequence[Any] | None, scales: Sequence[float] | None = None) -> Value:
        return exact(op, x, size, *(scales or ()))

    aten(f"upsample_nearest{rank}d")(rule)
    aten(f"_upsample_nearest_exact{rank}d")(exact)
    aten(f"upsample_nearest{rank}d.vec")(vector)
    aten(f"_upsample_nearest_exact{rank}d.vec")(exact_vector)


def _smooth(name: str, mode: str, *, antialias: bool = False) -> None:
    """torch's cubic constant is -0.75, and -0.5 when it antialiases."""

    def attributes(align_corners: bool) -> dict[str, Any]:
        found: dict[str, Any] = {
            "mode": mode,
            "coordinate_transformation_mode": "align_corners"
            if align_corners
            else "half_pixel"
            if mode == "cubic"
            else "pytorch_half_pixel",
            "antialias": int(antialias),
        }
        if not align_corners and mode == "linear":
            found["coordinate_transformation_mode"] = "half_pixel"
        if mode == "cubic":
            found["cubic_coeff_a"] = -0.5 if antialias else -0.75
        if antialias:
            found["exclude_outside"] = 1
        return found

    def rule(op: Builder, x: Value, size: Sequence[Any] | None, align_corners: bool, *scales: float | None) -> Value:
        if antialias and align_corners:
            raise UnsupportedError(
                "antialias=True with align_corners=True, where torch places its samples as ONNX cannot; leave one of "
                "them out"
            )
        return _resize(op, x, size, scales or None, **attributes(align_corners))

    def vector(
        op: Builder, x: Value, size: Sequence[Any] | None, align_corners: bool, scales: Sequence[float] | None = None
    ) -> Value:
        return rule(op, x, size, align_corners, *(scales or ()))

    aten(name)(rule)
    aten(f"{name}.vec")(vector)


for _rank in (1, 2, 3):
    _nearest(_rank)
_smooth("upsample_linear1d", "linear")
_smooth("upsample_bilinear2d", "linear")
_smooth("upsample_trilinear3d", "linear")
_smooth("upsample_bicubic2d", "cubic")
_smooth("_upsample_bilinear2d_aa", "linear", antialias=True)
_smooth("_upsample_bicubic2d_aa", "cubic", antialias=True)


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(
    op: Builder, x: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    modes = {0: "linear", 1: "nearest", 2: "cubic"}
    paddings = {0: "zeros", 1: "border", 2: "reflection"}
    return op.GridSample(
        x, grid, mode=modes[interpolation_mode], padding_mode=paddings[padding_mode], align_corners=int(align_corners)
    )


@aten("affine_grid_generator")
def affine_grid(op: Builder, theta: Value, size: Sequence[Any], align_corners: bool) -> Value:
    return op.AffineGrid(theta, op.vector(list(size)), align_corners=int(align_corners))
