"""Resizing and shuffling of pixels: where a sample lies, and which channel it goes to."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.families import images
from tests.converters.targets.keras.modules import Each, check_module, noise

RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
# Up and down, at ratios that are no integers, in a chain.
SIZES = [(7, 11, 5), (12, 9, 8), (5, 5, 5), (16, 15, 4), (3, 4, 7), (9, 10, 6)]
STATIC: dict[str, Any] = {"dynamic": "none", "gradients": False}


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", ["linear", "bilinear", pytest.param("trilinear", marks=pytest.mark.sweep), "bicubic"])
def test_resizes_in_a_chain(mode: str, corners: bool) -> None:
    """One resize without half-pixel centres looks close, and six of them moved the logits of a MobileViT."""

    def chain(x: torch.Tensor) -> torch.Tensor:
        for size in SIZES if mode == "bilinear" else SIZES[:3]:
            x = F.interpolate(x, size=size[: RANKS[mode]], mode=mode, align_corners=corners)
        return x

    check_module(chain, images(RANKS[mode], 8), **STATIC)


@pytest.mark.parametrize("rank", [pytest.param(1, marks=pytest.mark.sweep), 2])
def test_nearest_and_area(rank: int) -> None:
    """ "nearest" rounds down from the corner, "nearest-exact" from the pixel's centre, and "area" is an average."""
    modes = ("nearest", "nearest-exact", "area")
    check_module(
        lambda x: [F.interpolate(x, size=size[:rank], mode=mode) for size in SIZES[:3] for mode in modes],
        images(rank, 8),
        **STATIC,
    )


@pytest.mark.parametrize("again", [None, True])
def test_scales_that_are_no_integers(again: bool | None) -> None:
    """The coordinates follow the scale that was given, not the ratio of the rounded sizes, unless that is asked for."""
    scales: list[Any] = [1.7, (0.5, 1.3)]
    modes = ("nearest", "nearest-exact", "bilinear", "bicubic")

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        options = [{"scale_factor": scale, "mode": mode} for scale in scales for mode in modes]
        return [F.interpolate(x, recompute_scale_factor=again, **given) for given in options]

    check_module(every, noise(2, 3, 7, 9), **STATIC)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_scales_at_sizes_known_only_at_run_time(mode: str) -> None:
    """A size that the tracer saw was written down."""
    corners = [] if mode == "nearest" else [nn.Upsample(scale_factor=2, mode=mode, align_corners=True)]
    layers = [nn.Upsample(scale_factor=2, mode=mode), nn.Upsample(scale_factor=3, mode=mode), *corners]
    check_module(Each(*layers), noise(4, 4, 4, 4), others=[[noise(3, 4, 6, 5)]], gradients=False)


def test_a_resize_to_the_size_of_another_tensor() -> None:
    """The size of a skip connection was a number in the port."""

    def like(x: torch.Tensor) -> torch.Tensor:
        return x + F.interpolate(F.avg_pool2d(x, 2), size=x.shape[2:], mode="bilinear", align_corners=False)

    check_module(like, noise(3, 3, 7, 9), others=[[noise(1, 3, 8, 11)]])


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing_is_kept(mode: str) -> None:
    """The flag was dropped; with it, torch's cubic kernel also has -0.5 for -0.75."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        sizes = [(24, 24), (8, 8), (5, 23)]
        return [F.interpolate(x, size=size, antialias=flag, mode=mode) for size in sizes for flag in (False, True)]

    check_module(every, noise(2, 2, 12, 12), **STATIC)


def test_antialiasing_with_aligned_corners() -> None:
    """ONNX places no samples so: the weights are porter's own."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        modes = ("bilinear", "bicubic")
        return [F.interpolate(x, (5, 4), mode=mode, align_corners=True, antialias=True) for mode in modes]

    check_module(every, noise(2, 2, 8, 8), others=[[noise(3, 2, 9, 6)]])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_sampling_on_a_grid(padding: str) -> None:
    """Samples outside the image; and the last axis of a grid is (x, y) where an array's is (row, column)."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        grid = torch.stack([x[:, 0] * 0.9, x[:, 1] * 1.3], dim=-1)
        pairs = [("bilinear", True), ("bilinear", False), ("nearest", False)]
        return [F.grid_sample(x, grid, mode, padding, align_corners=corners) for mode, corners in pairs]

    check_module(every, noise(3, 3, 3, 3), others=[[noise(2, 3, 5, 4)]], gradients=False)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixel_shuffles_keep_the_channel_order(channels: int) -> None:
    """The shape was right and the channels were interleaved wrongly: torch orders channel, row, column where
    depth_to_space has row, column, channel. With one channel nobody sees it.
    """
    for factor in (2, 3):
        square = factor * factor
        net = nn.Sequential(
            nn.PixelUnshuffle(factor), nn.Conv2d(square * channels, square * channels, 1), nn.PixelShuffle(factor)
        )
        check_module(
            net, noise(2, channels, 4 * factor, 5 * factor), others=[[noise(1, channels, 4 * factor, 5 * factor)]]
        )


def test_pixels_of_a_range() -> None:
    """The order of a range of numbers shows any other one."""
    x = torch.arange(12.0, dtype=torch.float64).reshape(1, 3, 2, 2)
    assert F.pixel_unshuffle(x, 2).flatten().tolist() == x.flatten().tolist()
    check_module(nn.PixelUnshuffle(2), x.expand(2, 3, 2, 2))
    check_module(nn.PixelShuffle(2), torch.arange(2 * 12 * 2 * 3.0, dtype=torch.float64).reshape(2, 12, 2, 3))


def test_channel_shuffles() -> None:
    """Groups of channels are exchanged, not pixels."""
    net = nn.Sequential(nn.Conv2d(6, 6, 1), nn.ChannelShuffle(3))
    check_module(net, noise(6, 6, 6, 6), others=[[noise(1, 6, 3, 5)]])


def test_patches_there_and_back() -> None:
    """Patches are ordered channel, row, column, and folding adds what overlaps."""
    check_module(nn.Unfold(3, padding=1, stride=2), noise(4, 4, 4, 4), others=[[noise(2, 4, 6, 5)]])
    given: list[Any] = [(3, 1, 0, 2), ((2, 3), (2, 1), (1, 0), (1, 4)), (2, 1, 0, 3), (3, 2, 2, 2)]

    def back(x: torch.Tensor) -> list[torch.Tensor]:
        return [F.fold(F.unfold(x, *window), x.shape[2:], *window) for window in given]

    check_module(back, noise(2, 2, 9, 8), others=[[noise(3, 2, 7, 10)]], gradients=False)
