"""Changes of spatial size: interpolation, sampling, and blocks of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from porter.converters.codegen.nodes import Expr, Ref, Size, call, layer
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind, shortest
from porter.converters.targets.types import Array, Dims, Floats, Ints, Str, Tensor

# Up to this factor a mean over repeated pixels is as fast as interpolation; its cost is the factor's square.
_FEW_PIXELS = 4
_COORDINATES = {"half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric", "half_pixel_symmetric"}


@dataclass(frozen=True)
class Sampling:
    """How Resize finds and weighs the elements that a sample is made of, under ONNX's names."""

    mode: str
    coordinates: str
    rounding: str
    a: float
    antialias: int
    exclude_outside: int

    def check(self, x: Tensor, aspect_ratio: str) -> None:
        """Refuse what only the general function does (`resize_axes`)."""
        if self.coordinates not in _COORDINATES or aspect_ratio != "stretch":
            raise CannotBind(f"{self.coordinates} coordinates, {aspect_ratio} aspect ratio")
        if self.mode != "nearest" and x.dtype.is_integer():
            raise CannotBind("whole numbers between whole numbers")
        plain = self.coordinates == "half_pixel" and self.exclude_outside and self.mode != "nearest"
        if self.antialias and not plain:
            raise CannotBind(f"antialias with {self.coordinates}, exclude_outside={self.exclude_outside}")

    def repeats(self, factors: Ints) -> bool:
        """Whether sampling by whole factors repeats every element that often.

        The float32 reciprocals of 41, 47 and others are too small: with them torch repeats unevenly.
        """
        if self.mode != "nearest" or max(factors) > 32:
            return False
        if self.coordinates == "asymmetric":
            return self.rounding == "floor"
        return self.coordinates == "half_pixel" and self.rounding in ("round_prefer_floor", "round_prefer_ceil")

    def interpolates(self) -> bool:
        """Whether a sample is made of its two neighbours, whatever the sizes are."""
        return self.mode == "linear" and self.coordinates == "half_pixel" and not self.antialias

    def of(self, x: Tensor, **given: Any) -> Expr:
        """The samples, by a function of the port."""
        if self.antialias:
            return call("resize_antialiased", x, **given, a=self.a if self.mode == "cubic" else None)
        given["coordinates"] = _unless(self.coordinates, "half_pixel")
        if self.mode == "nearest":
            return call("resize_nearest", x, **given, rounding=_unless(self.rounding, "round_prefer_floor"))
        if self.mode == "linear":
            return call("resize_linear", x, **given)
        given["exclude_outside"] = _unless(bool(self.exclude_outside), False)
        return call("resize_cubic", x, **given, a=_unless(self.a, -0.75))


@keras_op("DepthToSpace", layout="spatial")
def depth_to_space(x: Tensor, *, blocksize: int, mode: Str = "DCR") -> Expr:
    """Channels are (row, column, depth) in DCR, TensorFlow's order, and (depth, row, column) in CRD, torch's."""
    return call({"DCR": "depth_to_space", "CRD": "pixel_shuffle"}[mode], x, blocksize)


@keras_op("SpaceToDepth", layout="spatial")
def space_to_depth(x: Tensor, *, blocksize: int) -> Expr:
    return call("space_to_depth", x, blocksize)


@keras_op("Resize", layout="spatial")
def resize(
    x: Tensor,
    roi: Array | None = None,
    scales: Floats | None = None,
    sizes: Dims | None = None,
    *,
    out: Ref,
    mode: Str = "nearest",
    coordinate_transformation_mode: Str = "half_pixel",
    nearest_mode: Str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    antialias: int = 0,
    exclude_outside: int = 0,
    axes: Ints | None = None,
    keep_aspect_ratio_policy: Str = "stretch",
    extrapolation_value: float = 0.0,
) -> Expr:
    """Layers for whole factors, Keras' own only for nearest neighbours.

    Its other modes compute in float32 and cannot follow sizes that vary, so they are code of the port. With
    aligned corners the size of the result counts, not the scale, as in torch and ONNX Runtime.
    """
    sampling = Sampling(mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, antialias, exclude_outside)
    sampling.check(x, keep_aspect_ratio_policy)
    found_scales, found_sizes = _spatial(x, scales, sizes, axes)
    if all(entry is None for entry in found_scales or found_sizes or ()):
        return x
    factors = _whole_factors(x, out, found_scales)
    if factors and sampling.repeats(factors):
        size: Any = factors[0] if len(factors) == 1 else factors
        return layer(f"UpSampling{len(factors)}D", size=size)(x)
    square = factors is not None and len(factors) == 2 and factors[0] == factors[1] <= _FEW_PIXELS
    if factors and found_scales and square and sampling.interpolates():
        return layer("bilinear_upsampling", factor=factors[0])(x)
    return sampling.of(x, size=found_sizes, scale=found_scales)


@keras_op("Resize", layout="spatial")
def resize_to_computed_sizes(
    x: Tensor,
    roi: Array | None = None,
    scales: Floats | None = None,
    sizes: Tensor | None = None,
    *,
    out: Ref,
    mode: Str = "nearest",
    coordinate_transformation_mode: Str = "half_pixel",
    nearest_mode: Str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    antialias: int = 0,
    exclude_outside: int = 0,
    axes: Ints | None = None,
    keep_aspect_ratio_policy: Str = "stretch",
    extrapolation_value: float = 0.0,
) -> Expr:
    """To sizes that are numbers of the run: floor(1.5 · height) and the like."""
    sampling = Sampling(mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, antialias, exclude_outside)
    sampling.check(x, keep_aspect_ratio_policy)
    numbered = tuple(range(x.rank)) if axes is None else tuple(axis % x.rank for axis in axes)
    kept = (x.shape[0], x.shape[-1]) == (out.shape[0], out.shape[-1])
    if sizes is None or scales or x.rank < 3 or (min(numbered) < 2 and not kept):
        raise CannotBind("a resize of batch or channels to computed sizes")
    size = tuple(sizes[numbered.index(axis)] if axis in numbered else None for axis in range(2, x.rank))
    return sampling.of(x, size=size, scale=None)


def _unless(value: Any, default: Any) -> Any:
    """None, which `call` leaves out, for what the function assumes anyway."""
    return None if value == default else value


def _spatial(
    x: Tensor, scales: Floats | None, sizes: tuple[Any, ...] | None, axes: Ints | None
) -> tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]:
    """Factors or sizes of the spatial axes alone, None for an axis that keeps its size."""
    rank = x.rank
    if rank < 3:
        raise CannotBind(f"a resize of {rank} axes: none of them is spatial")
    given = scales if scales else sizes
    if not given:
        raise CannotBind("neither scales nor sizes")
    numbered = range(rank) if axes is None else [axis % rank for axis in axes]
    by_axis: dict[int, Any] = dict(zip(numbered, given, strict=True))
    for axis, stored in ((0, 0), (1, rank - 1)):
        if axis in by_axis and not _keeps(by_axis[axis], x.shape[stored], by_scale=bool(scales)):
            raise CannotBind(f"a resize of axis {axis}, batch or channels")
    entries = tuple(
        None
        if axis not in by_axis or _keeps(by_axis[axis], x.shape[axis - 1], by_scale=bool(scales))
        else by_axis[axis]
        for axis in range(2, rank)
    )
    return (tuple(None if s is None else shortest(s) for s in entries), None) if scales else (None, entries)


def _keeps(entry: Any, size: int | str, *, by_scale: bool) -> bool:
    if by_scale:
        return bool(entry == 1)
    return bool(entry.expression == size if isinstance(entry, Size) else entry == size)


def _whole_factors(x: Tensor, out: Ref, scales: tuple[Any, ...] | None) -> tuple[int, ...] | None:
    """By what each spatial axis grows, when that is a whole number on all of them."""
    if x.rank > 5:
        return None
    if scales is not None:
        factors = [1 if scale is None else scale for scale in scales]
        return tuple(int(factor) for factor in factors) if all(factor == int(factor) for factor in factors) else None
    pairs = list(zip(x.shape[1:-1], out.shape[1:-1], strict=True))
    if not all(a == b or (isinstance(a, int) and isinstance(b, int) and a and b % a == 0) for a, b in pairs):
        return None
    return tuple(1 if a == b else int(b) // int(a) for a, b in pairs)


@keras_op("GridSample", layout="spatial")
def grid_sample(
    x: Tensor, grid: Tensor, *, mode: Str = "linear", padding_mode: Str = "zeros", align_corners: int = 0
) -> Expr:
    if x.rank not in (4, 5) or (mode == "cubic" and x.rank != 4):
        raise CannotBind(f"{mode} samples of {x.rank - 2} spatial axes")
    function = {"linear": "grid_sample", "nearest": "grid_sample_nearest", "cubic": "grid_sample_cubic"}[mode]
    return call(
        function, x, grid, padding=_unless(padding_mode, "zeros"), align_corners=_unless(bool(align_corners), False)
    )


@keras_op("AffineGrid", layout="fixed")
def affine_grid(theta: Tensor, size: Dims, *, align_corners: int = 0) -> Expr:
    return call("affine_grid", theta, tuple(size[2:]), align_corners=_unless(bool(align_corners), False))
