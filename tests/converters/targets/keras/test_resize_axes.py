"""Resize with everything that ONNX can tell it, against ONNX's reference implementation in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference.ops.op_resize import Resize
from torch.nn import functional as F

from porter.errors import UnsupportedError
from tests.converters.targets.keras.modules import check_module, noise
from tests.converters.targets.keras.nodes import Case, check

pytestmark = pytest.mark.usefixtures("keras_double")
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
MODES = ("nearest", "linear", "cubic")
KNOWN = ("roi", "scales", "sizes")
IMAGES = (2, 3, 6, 8)


def case(
    shape: tuple[int, ...] = IMAGES,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    constants: tuple[str, ...] = KNOWN,
    **attributes: Any,
) -> Case:
    inputs = {
        "x": np.random.default_rng(1).normal(size=shape),
        "roi": None if roi is None else np.asarray(roi, np.float64),
        "scales": None if scales is None else np.asarray(scales, np.float64),
        "sizes": None if sizes is None else np.asarray(sizes, np.int64),
    }
    while inputs[next(reversed(inputs))] is None:
        inputs.pop(next(reversed(inputs)))
    given = tuple(name for name in constants if inputs.get(name) is not None)
    sized = tuple(name for name in KNOWN if inputs.get(name) is not None)
    return Case("Resize", inputs, attributes, constants=given, sized=sized)


def confirm(given: Case, **options: Any) -> str:
    """Against ONNX's reference, whose attributes are made float64 as its data are."""
    attributes = {
        "antialias": 0,
        "axes": None,
        "coordinate_transformation_mode": "half_pixel",
        "cubic_coeff_a": -0.75,
        "exclude_outside": 0,
        "extrapolation_value": 0.0,
        "keep_aspect_ratio_policy": "stretch",
        "mode": "nearest",
        "nearest_mode": "round_prefer_floor",
        **given.attributes,
    }
    operands = [given.inputs.get(name) for name in ("x", *KNOWN)]
    return check(given, right=list(Resize._run(None, *operands, **attributes)), **options)


# ***** regions of interest *****

REGION = [0.25, 0.125, 0.75, 1.0]
BEYOND = [-0.25, 0.5, 0.75, 1.5]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("roi", [REGION, BEYOND, [0.0, 1.0, 1.0, 0.0]])
@pytest.mark.parametrize("sizes", [[3, 5], [12, 11], [1, 7]])
@pytest.mark.parametrize("constants", [KNOWN, ("sizes",), ("roi",)])
def test_a_part_is_cut_out(mode: str, roi: list[float], sizes: list[int], constants: tuple[str, ...]) -> None:
    given = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "axes": [2, 3]}
    confirm(case(roi=roi, sizes=sizes, constants=constants, extrapolation_value=-3.5, **given), atol=1e-10)


@pytest.mark.parametrize("spatial", [False, True])
def test_a_part_of_every_axis(spatial: bool) -> None:
    given = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    roi = [0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 0.75, 1.0]
    confirm(case(roi=roi, sizes=[2, 3, 4, 9], **given), spatial=spatial, atol=1e-10)
    confirm(case(roi=[0.0, 0.5, *roi[2:]], sizes=[2, 5, 4, 9], **given), spatial=spatial, atol=1e-10)


# ***** aspect ratio *****


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [[9, 10], [3, 9], [12, 4]])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("constants", [KNOWN, ()])
def test_the_aspect_ratio_is_kept(
    policy: str, mode: str, sizes: list[int], dynamic: bool, constants: tuple[str, ...]
) -> None:
    given = {"mode": mode, "axes": [2, 3], "keep_aspect_ratio_policy": policy}
    confirm(case(sizes=sizes, constants=constants, **given), dynamic=dynamic, atol=1e-10)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_the_aspect_ratio_of_all_axes(policy: str) -> None:
    confirm(case(sizes=[2, 3, 12, 9], mode="linear", keep_aspect_ratio_policy=policy), atol=1e-10)


# ***** antialiasing *****


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude_outside", [0, 1])
@pytest.mark.parametrize("sizes", [[4, 3], [2, 13], [9, 5]])
def test_antialiased(coordinates: str, mode: str, exclude_outside: int, sizes: list[int]) -> None:
    given = {"mode": mode, "coordinate_transformation_mode": coordinates, "exclude_outside": exclude_outside}
    source = confirm(case(sizes=sizes, antialias=1, axes=[2, 3], cubic_coeff_a=-0.5, **given), atol=1e-10)
    assert ("resize_along" in source) == (coordinates != "half_pixel" or not exclude_outside)


@pytest.mark.parametrize("coordinates", ["half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners"])
@pytest.mark.parametrize("constants", [KNOWN, ()])
def test_antialiased_by_factors(coordinates: str, constants: tuple[str, ...]) -> None:
    """Factors that give whole sizes: with aligned corners ONNX's reference goes by sizes before they are rounded."""
    given = {"mode": "linear", "coordinate_transformation_mode": coordinates, "antialias": 1}
    confirm(case(scales=[1, 1, 0.5, 0.75], constants=constants, **given), atol=1e-10)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(5, 4), (3, 11), (1, 9), (12, 7)])
def test_antialiased_with_aligned_corners_in_torch(mode: str, size: tuple[int, int]) -> None:
    given = {"mode": mode, "antialias": True, "align_corners": True, "size": size}
    check_module(lambda x: F.interpolate(x, **given), noise(2, 3, 7, 8), others=[(noise(2, 3, 9, 6),)])
    scaled = {**given, "size": None, "scale_factor": 0.6}
    check_module(lambda x: F.interpolate(x, **scaled), noise(2, 3, 7, 8), others=[(noise(2, 3, 9, 6),)])


# ***** any axes *****


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("spatial", [False, True])
def test_batch_and_channels(mode: str, coordinates: str, spatial: bool) -> None:
    given = {"mode": mode, "coordinate_transformation_mode": coordinates}
    confirm(case(sizes=[3, 5, 4, 8], **given), spatial=spatial, atol=1e-10)
    confirm(case(sizes=[5, 7], axes=[1, 0], **given), spatial=spatial, atol=1e-10)


@pytest.mark.parametrize("shape", [(7,), (5, 6)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [[4, 9], [11, 3]])
def test_vectors_and_matrices(shape: tuple[int, ...], mode: str, sizes: list[int]) -> None:
    confirm(case(shape, sizes=sizes[: len(shape)], mode=mode), atol=1e-10)
    confirm(case(shape, scales=[1.5, 0.5][: len(shape)], mode=mode, constants=()), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
@pytest.mark.parametrize("mode", MODES)
def test_whole_numbers_are_rounded(dtype: type, mode: str) -> None:
    """Cubic samples overshoot the type's range; no linear one lies halfway between two numbers."""
    given = case(sizes=[11, 13], mode=mode, axes=[2, 3])
    numbers = np.random.default_rng(2).choice([-128, 8, 20, 124], size=IMAGES) + (0 if dtype is np.int8 else 128)
    given.inputs["x"] = numbers.astype(dtype)
    confirm(given)


def test_what_onnx_does_not_define_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="without a region"):
        check(case(sizes=[3, 5], axes=[2, 3], coordinate_transformation_mode="tf_crop_and_resize"), right=[])
