"""Changes of spatial size: interpolation, sampling, and blocks of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from porter.converters.codegen.nodes import Ambient, Expr, Ref, Size, call
from porter.converters.targets.table import CannotBind, shortest
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.window import unless
from porter.converters.targets.types import Array, Dims, Floats, Ints, Str, Tensor

_COORDINATES = {"half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric", "half_pixel_symmetric"}
_LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}


@dataclass(frozen=True)
class Sampling:
    """How Resize finds and weighs the elements that a sample is made of, under ONNX's names."""

    mode: str
    coordinates: str
    rounding: str
    a: float
    antialias: int
    exclude_outside: int

    def check(self, aspect_ratio: str) -> None:
        """Refuse what no function here does."""
        if self.coordinates not in _COORDINATES or aspect_ratio != "stretch":
            raise CannotBind(f"{self.coordinates} coordinates, {aspect_ratio} aspect ratio")
        plain = self.coordinates == "half_pixel" and self.exclude_outside and self.mode != "nearest"
        if self.antialias and not plain:
            raise CannotBind(f"antialias with {self.coordinates}, exclude_outside={self.exclude_outside}")

    def mode_of_torch(self, rank: int, factors: tuple[Any, ...]) -> dict[str, Any] | None:
        """The arguments with which `F.interpolate` does the same; None when it never does."""
        if self.mode == "nearest":
            if (self.coordinates, self.rounding) == ("asymmetric", "floor"):
                return {}
            whole = (
                all(isinstance(factor, int) or float(factor).is_integer() for factor in factors) if factors else False
            )
            exact = self.rounding == "round_prefer_ceil" or (self.rounding == "round_prefer_floor" and whole)
            return {"mode": "nearest-exact"} if self.coordinates == "half_pixel" and exact else None
        corners = {"half_pixel": None, "align_corners": True}.get(self.coordinates, False)
        if corners is False:
            return None
        named = {"align_corners": corners, "antialias": bool(self.antialias) or None}
        if self.mode == "linear" and rank in _LINEAR and (rank == 4 or not self.antialias):
            return {"mode": _LINEAR[rank], **named}
        usual = -0.5 if self.antialias else -0.75
        if self.mode == "cubic" and rank == 4 and self.a == usual and self.exclude_outside == self.antialias:
            return {"mode": "bicubic", **named}
        return None

    def of(self, x: Tensor, **given: Any) -> Expr:
        """The samples, by a function of the port."""
        if self.antialias:
            return call("resize_antialiased", x, **given, a=self.a if self.mode == "cubic" else None)
        given["coordinates"] = unless(self.coordinates, "half_pixel")
        if self.mode == "nearest":
            return call("resize_nearest", x, **given, rounding=unless(self.rounding, "round_prefer_floor"))
        if self.mode == "linear":
            return call("resize_linear", x, **given)
        given["exclude_outside"] = unless(bool(self.exclude_outside), False)
        return call("resize_cubic", x, **given, a=unless(self.a, -0.75))


@torch_op("DepthToSpace", layout="spatial")
def depth_to_space(x: Tensor, *, blocksize: int, mode: Str = "DCR") -> Expr:
    """Channels are (row, column, depth) in DCR, TensorFlow's order, and (depth, row, column) in CRD, PyTorch's."""
    return call({"DCR": "depth_to_space", "CRD": "F.pixel_shuffle"}[mode], x, blocksize)


@torch_op("SpaceToDepth", layout="spatial")
def space_to_depth(x: Tensor, *, blocksize: int) -> Expr:
    return call("space_to_depth", x, blocksize)


@torch_op("Resize", layout="spatial")
def resize_of_whole_numbers(
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
    """Pixels that are whole numbers before and after: many samples lie halfway between two, and the last bit says which
    of them such a sample becomes. So it is found as TensorFlow does, step by step, in float32 whatever the precision.
    """
    plain = (mode, coordinate_transformation_mode, antialias, keep_aspect_ratio_policy)
    _, found_sizes = _spatial(x, scales, sizes, axes)
    whole = _whole_numbers(x.value)
    if (
        plain != ("linear", "half_pixel", 0, "stretch")
        or found_sizes is None
        or whole is None
        or not _rounded(out.value)
    ):
        raise CannotBind("its samples are not rounded")
    return call(".to", call("resize_rounded", Ref(whole), found_sizes), Ambient("dtype"))


def _whole_numbers(value: ir.Value) -> ir.Value | None:
    """What a value was cast from, if that holds whole numbers."""
    node = value.producer()
    source = node.inputs[0] if node is not None and node.op_type == "Cast" else None
    return source if source is not None and source.dtype is not None and source.dtype.is_integer() else None


def _rounded(value: ir.Value) -> bool:
    """Whether a value is only rounded to whole numbers, its axes moved or not, if it is read at all."""
    return not value.is_graph_output() and all(
        node.op_type == "Round" or (node.op_type == "Transpose" and _rounded(node.outputs[0]))
        for node, _ in value.uses()
    )


@torch_op("Resize", layout="spatial")
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
    """`F.interpolate` where it finds the same samples, code of the port elsewhere.

    With aligned corners the size of the result counts, not the scale, as in PyTorch and ONNX Runtime.
    """
    sampling = Sampling(mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, antialias, exclude_outside)
    sampling.check(keep_aspect_ratio_policy)
    found_scales, found_sizes = _spatial(x, scales, sizes, axes)
    if all(entry is None for entry in found_scales or found_sizes or ()):
        return x
    factors = tuple(1 if scale is None else scale for scale in found_scales) if found_scales else _factors(x, out)
    torch = sampling.mode_of_torch(x.rank, factors)
    if torch is None or x.rank > 5:
        return sampling.of(x, size=found_sizes, scale=found_scales)
    if found_scales:
        return call("F.interpolate", x, scale_factor=factors[0] if len(set(factors)) == 1 else factors, **torch)
    whole = tuple(
        (Size(size) if isinstance(size := out.shape[axis], str) else size) if entry is None else entry
        for axis, entry in enumerate(found_sizes or (), 2)
    )
    return call("F.interpolate", x, size=whole, **torch)


def _factors(x: Tensor, out: Ref) -> tuple[Any, ...]:
    """By what each spatial axis grows, where that is known."""
    pairs = list(zip(x.shape[2:], out.shape[2:], strict=True))
    if not all(a == b or (isinstance(a, int) and isinstance(b, int) and a) for a, b in pairs):
        return ()
    return tuple(1 if a == b else int(b) / int(a) for a, b in pairs)


@torch_op("Resize", layout="spatial")
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
    sampling.check(keep_aspect_ratio_policy)
    numbered = tuple(range(x.rank)) if axes is None else tuple(axis % x.rank for axis in axes)
    kept = x.shape[:2] == out.shape[:2]
    if sizes is None or scales or x.rank < 3 or (min(numbered) < 2 and not kept):
        raise CannotBind("a resize of batch or channels to computed sizes")
    size = tuple(call(".item", sizes[numbered.index(axis)]) if axis in numbered else None for axis in range(2, x.rank))
    torch = sampling.mode_of_torch(x.rank, ())
    if torch is not None and x.rank <= 5 and None not in size:
        return call("F.interpolate", x, size=size, **torch)
    return sampling.of(x, size=size, scale=None)


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
    for axis in (0, 1):
        if axis in by_axis and not _keeps(by_axis[axis], x.shape[axis], by_scale=bool(scales)):
            raise CannotBind(f"a resize of axis {axis}, batch or channels")
    entries = tuple(
        None if axis not in by_axis or _keeps(by_axis[axis], x.shape[axis], by_scale=bool(scales)) else by_axis[axis]
        for axis in range(2, rank)
    )
    return (tuple(None if s is None else shortest(s) for s in entries), None) if scales else (None, entries)


def _keeps(entry: Any, size: int | str, *, by_scale: bool) -> bool:
    if by_scale:
        return bool(entry == 1)
    return bool(entry.expression == size if isinstance(entry, Size) else entry == size)


@torch_op("GridSample", layout="spatial")
def grid_sample(
    x: Tensor, grid: Tensor, *, mode: Str = "linear", padding_mode: Str = "zeros", align_corners: int = 0
) -> Expr:
    if x.rank not in (4, 5) or (mode == "cubic" and x.rank != 4):
        raise CannotBind(f"{mode} samples of {x.rank - 2} spatial axes")
    named = {"linear": None, "nearest": "nearest", "cubic": "bicubic"}[mode]
    padding = unless(padding_mode, "zeros")
    return call("F.grid_sample", x, grid, mode=named, padding_mode=padding, align_corners=bool(align_corners))


@torch_op("AffineGrid", layout="fixed")
def affine_grid(theta: Tensor, size: Dims, *, align_corners: int = 0) -> Expr:
    return call("F.affine_grid", theta, tuple(size), align_corners=bool(align_corners))
