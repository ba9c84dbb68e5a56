"""Resize with everything that ONNX can tell it, where `resize` has no shorter form: one function for all."""

from __future__ import annotations

from typing import Any

from porter.converters.codegen.nodes import Expr, Ref, call
from porter.converters.numbers import shortest
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Dims, Floats, Ints, Str, Tensor


@keras_op("Resize", layout="spatial")
def resize_any_axes(
    x: Tensor, roi: Floats | None = None, scales: Floats | None = None, sizes: Dims | None = None, *, out: Ref,
    mode: Str = "nearest", coordinate_transformation_mode: Str = "half_pixel", nearest_mode: Str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75, antialias: int = 0, exclude_outside: int = 0, axes: Ints | None = None,
    keep_aspect_ratio_policy: Str = "stretch", extrapolation_value: float = 0.0,
) -> Expr:  # fmt: skip
    """Batch and channels, a region of interest, a kept aspect ratio, antialiasing in any coordinates."""
    return _along(
        x, out, roi or None, scales or None, sizes or None, axes, mode, coordinate_transformation_mode, nearest_mode,
        cubic_coeff_a, antialias, exclude_outside, keep_aspect_ratio_policy, extrapolation_value,
    )  # fmt: skip


@keras_op("Resize", layout="spatial")
def resize_any_axes_by_computed_numbers(
    x: Tensor, roi: Tensor | None = None, scales: Tensor | None = None, sizes: Tensor | None = None, *, out: Ref,
    mode: Str = "nearest", coordinate_transformation_mode: Str = "half_pixel", nearest_mode: Str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75, antialias: int = 0, exclude_outside: int = 0, axes: Ints | None = None,
    keep_aspect_ratio_policy: Str = "stretch", extrapolation_value: float = 0.0,
) -> Expr:  # fmt: skip
    """The same with a region, factors or sizes that are numbers of the run."""
    region, factors, lengths = (
        value if value is not None and value.shape != (0,) else None for value in (roi, scales, sizes)
    )
    return _along(
        x, out, region, factors, lengths, axes, mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a,
        antialias, exclude_outside, keep_aspect_ratio_policy, extrapolation_value,
    )  # fmt: skip


def _along(
    x: Tensor, out: Ref, roi: Any, scales: Any, sizes: Any, axes: Ints | None, mode: str, coordinates: str,
    rounding: str, a: float, antialias: int, exclude_outside: int, aspect_ratio: str, extrapolation: float,
) -> Expr:  # fmt: skip
    if scales is None and sizes is None:
        raise CannotBind("neither scales nor sizes")
    cropped = coordinates == "tf_crop_and_resize"
    if cropped and roi is None:
        raise CannotBind("tf_crop_and_resize without a region of interest")
    if mode == "nearest" and antialias:
        raise CannotBind("antialiased nearest neighbours")
    stored = _stored(x.rank, axes)
    changed = list(range(len(stored)))
    if scales is not None or aspect_ratio == "stretch":
        entire = [not cropped or (isinstance(roi, tuple) and roi[n :: len(stored)] == (0, 1)) for n in changed]
        same = [_keeps(x.shape[axis], out.shape[axis], scales, n) for n, axis in enumerate(stored)]
        changed = [n for n in changed if not (entire[n] and same[n])]
    if not changed:
        return x
    whole = x.dtype.is_integer()
    facts: dict[str, Any] = {
        "size": _entries(sizes, changed) if scales is None else None,
        "scale": _entries(scales, changed),
        "mode": mode if mode != "nearest" else None,
        "coordinates": None if cropped or coordinates == "half_pixel" else coordinates,
        "rounding": rounding if mode == "nearest" and rounding != "round_prefer_floor" else None,
        "a": a if mode == "cubic" and a != -0.75 else None,
        "antialias": bool(antialias) or None,
        "exclude_outside": True if exclude_outside and mode != "nearest" else None,
        "roi": _entries(roi, [*changed, *(len(stored) + n for n in changed)]) if cropped else None,
        "extrapolation": (round(extrapolation) if whole else extrapolation) if cropped and extrapolation else None,
        "aspect_ratio": aspect_ratio if scales is None and aspect_ratio != "stretch" else None,
    }
    return call("resize_along", x, tuple(stored[n] for n in changed), **facts)


def _entries(given: Any, numbers: list[int]) -> Any:
    """Some of the entries of a vector; all of one that is computed stay the vector."""
    if given is None or (isinstance(given, Ref) and given.shape == (len(numbers),)):
        return given
    picked = (given[number] for number in numbers)
    return tuple(shortest(entry) if isinstance(entry, float) else entry for entry in picked)


def _keeps(before: int | str, after: int | str, scales: Any, number: int) -> bool:
    """Whether an axis stays as it is, by its factor where there are any."""
    if scales is not None:
        return isinstance(scales, tuple) and scales[number] == 1
    return before == after != "?"


def _stored(rank: int, axes: Ints | None) -> tuple[int, ...]:
    """The axes of channels-last data, by ONNX's numbers of them."""
    numbered = range(rank) if axes is None else [axis % rank for axis in axes]
    return tuple(axis if rank < 3 or axis == 0 else rank - 1 if axis == 1 else axis - 1 for axis in numbered)
