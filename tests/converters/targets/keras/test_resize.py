"""Interpolation, sampling and pixel blocks against torch in double precision, at sizes that the tracer never saw."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.converters.targets.keras.modules import OfOne, check_module, noise, port_of
from tests.converters.targets.keras.nodes import Case, check

LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def images(rank: int, size: int = 7) -> torch.Tensor:
    return noise(2, 3, *[size, size + 1, size - 1][:rank])


# (rank, what it is resized to): whole and broken factors, sizes that grow, shrink or both.
PLANE = [
    (2, {"scale_factor": 2}),
    (2, {"scale_factor": 3}),
    (2, {"scale_factor": (2, 4)}),
    (2, {"scale_factor": 1.5}),
    (2, {"scale_factor": 0.6}),
    (2, {"size": (5, 9)}),
    (2, {"size": (14, 16)}),
    (2, {"size": 1}),
]
LINES_AND_VOLUMES = [(1, {"scale_factor": 1.5}), (1, {"size": 5}), (3, {"scale_factor": 2}), (3, {"size": (5, 9, 4)})]


@pytest.mark.parametrize(("rank", "target"), PLANE + LINES_AND_VOLUMES)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest(rank: int, target: dict[str, Any], mode: str) -> None:
    check_module(lambda x: F.interpolate(x, mode=mode, **target), images(rank), others=[(images(rank, 10),)])


@pytest.mark.parametrize(("old", "new"), [(2, 41), (2, 82), (4, 94), (3, 123), (7, 5), (64, 100)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_rounds_as_torch_does(old: int, new: int, mode: str) -> None:
    """Halfway between two neighbours float32 decides; torch's double kernels differ among themselves."""
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    module, x = OfOne(lambda x: F.interpolate(x, size=(new, 3), mode=mode)), noise(2, 3, old, 3).float()
    port, generated = port_of(module, [x], native=False, dynamic="none")
    np.testing.assert_array_equal(port(keras.ops.convert_to_tensor(x.numpy())), module(x), err_msg=generated.source)


@pytest.mark.parametrize(("rank", "target"), PLANE + LINES_AND_VOLUMES)
@pytest.mark.parametrize("align_corners", [False, True])
def test_linear(rank: int, target: dict[str, Any], align_corners: bool) -> None:
    given = {"mode": LINEAR[rank], "align_corners": align_corners, **target}
    check_module(lambda x: F.interpolate(x, **given), images(rank), others=[(images(rank, 10),)])


@pytest.mark.parametrize(("rank", "target"), PLANE)
@pytest.mark.parametrize("align_corners", [False, True])
def test_cubic(rank: int, target: dict[str, Any], align_corners: bool) -> None:
    given = {"mode": "bicubic", "align_corners": align_corners, **target}
    check_module(lambda x: F.interpolate(x, **given), images(rank), others=[(images(rank, 10),)])


@pytest.mark.parametrize(("rank", "target"), PLANE)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased(rank: int, target: dict[str, Any], mode: str) -> None:
    given = {"mode": mode, "antialias": True, **target}
    check_module(lambda x: F.interpolate(x, **given), images(rank), others=[(images(rank, 10),)])


def test_resize_to_the_size_of_another() -> None:
    def like(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, size=y.shape[-2:], mode="bilinear") + y

    others = [(images(2, 8), images(2, 5)), (images(2, 5), images(2, 5))]
    check_module(like, images(2), images(2, 13), others=others)


def test_a_chain_of_resizes_stays_exact() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for size in ((9, 5), (4, 11), (13, 13), (6, 3), (8, 17), (7, 7)):
            x = F.interpolate(x, size=size, mode="bilinear")
        return x

    check_module(chain, images(2))


def test_whole_factors_are_a_layer() -> None:
    class Up(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.up = nn.Conv2d(3, 4, 1), nn.Upsample(scale_factor=2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.up(self.conv(x))

    assert "layers.UpSampling2D(2)" in check_module(Up(), images(2), others=[(images(2, 10),)])


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_bilinear_upsampling_is_a_mean_of_repeated_pixels(factor: int) -> None:
    """At every size, a single row included."""
    others = [(images(2, 10),), (noise(2, 3, 1, 5),)]
    source = check_module(nn.Upsample(scale_factor=factor, mode="bilinear"), images(2), others=others)
    assert f"bilinear_upsampling({factor})" in source


@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [[11, 5], [4, 16]])
def test_resize_as_onnx_defines_it(coordinates: str, mode: str, sizes: list[int]) -> None:
    """ONNX's reference rounds its factors to float32."""
    inputs = {"x": np.random.default_rng(1).normal(size=(2, 3, 6, 8)), "roi": None, "scales": None}
    inputs["sizes"] = np.array(sizes, np.int64)
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "axes": [2, 3]}
    check(Case("Resize", inputs, attributes, constants=("sizes",)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
def test_nearest_as_onnx_defines_it(rounding: str, coordinates: str) -> None:
    inputs = {"x": np.random.default_rng(1).normal(size=(2, 3, 6, 8)), "roi": None, "scales": None}
    inputs["sizes"] = np.array([12, 9], np.int64)
    attributes = {"mode": "nearest", "coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    attributes |= {"axes": [3, 2]}
    check(Case("Resize", inputs, attributes, constants=("sizes",)))


# ***** pixel blocks *****


@pytest.mark.parametrize("shape", [(2, 12, 8, 8), (2, 12, 12, 12), (3, 12, 5, 4)])
def test_pixel_shuffle(shape: tuple[int, ...]) -> None:
    x = torch.arange(int(np.prod(shape)), dtype=torch.float64).reshape(shape)
    check_module(nn.PixelShuffle(2), x, dynamic="none")
    between = nn.Sequential(nn.Conv2d(12, 12, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(3, 4, 1))
    assert "transpose(x, (0, 1, 4, 2, 5, 3))" in check_module(between, x, others=[(noise(2, 12, 6, 7),)], atol=1e-9)


def test_pixel_unshuffle() -> None:
    x = torch.arange(12, dtype=torch.float64).reshape(1, 3, 2, 2)
    check_module(nn.PixelUnshuffle(2), x, dynamic="none")
    between = nn.Sequential(nn.Conv2d(3, 4, 1), nn.PixelUnshuffle(2), nn.Conv2d(16, 4, 1))
    check_module(between, noise(2, 3, 8, 6), dynamic="none")


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    x = np.random.default_rng(1).normal(size=(2, 12, 4, 6))
    check(Case("DepthToSpace", {"x": x}, {"blocksize": 2, "mode": mode}), spatial=True)


def test_space_to_depth() -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 6))
    check(Case("SpaceToDepth", {"x": x}, {"blocksize": 2}), spatial=True)


# ***** sampling *****


@pytest.mark.parametrize(
    ("rank", "mode"), [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")]
)
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_sample(rank: int, mode: str, padding_mode: str, align_corners: bool) -> None:
    given = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    grid = noise(2, *(4, 5, 6)[:rank], rank) * 1.3
    others = [(images(rank, 8), noise(2, *(3, 5, 7)[:rank], rank) * 3)]
    check_module(lambda x, g: F.grid_sample(x, g, **given), images(rank, 5), grid, others=others, atol=1e-11)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grid(rank: int, align_corners: bool) -> None:
    def moved(theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        grid = F.affine_grid(theta, list(x.shape), align_corners=align_corners)
        return F.grid_sample(x, grid, align_corners=align_corners)

    check_module(moved, noise(2, rank, rank + 1), images(rank), dynamic="none", atol=1e-11)
    shape = [2, 3, *(4, 1, 6)[:rank]]
    check_module(lambda theta: F.affine_grid(theta, shape, align_corners=align_corners), noise(2, rank, rank + 1))
