"""Resizing and shuffling of pixels: where a sample lies, and which channel it goes to."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.pairs import Of, check, noise, port

RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
# Up and down, at ratios that are no integers, in a chain.
SIZES = [(7, 11, 5), (12, 9, 8), (5, 5, 5), (16, 15, 4), (3, 4, 7), (9, 10, 6)]


def images(rank: int, *, batch: int = 2, channels: int = 3) -> torch.Tensor:
    return noise(batch, channels, *[8, 9, 6][:rank])


def fixed(function: Any, *batches: torch.Tensor) -> None:
    """Compare at sizes known while porting and at two batch sizes."""
    port(Of(function), batches[0], dynamic={"x": {0: "batch"}}).check(*[[x] for x in batches])


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", RANKS)
def test_six_resizes_in_a_chain(mode: str, corners: bool) -> None:
    """One resize without half-pixel centres looks close, and six of them move the result."""

    def chain(x: torch.Tensor) -> torch.Tensor:
        for size in SIZES if mode != "trilinear" else SIZES[:3]:
            x = F.interpolate(x, size=size[: RANKS[mode]], mode=mode, align_corners=corners)
        return x

    fixed(chain, images(RANKS[mode]), images(RANKS[mode], batch=3))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_nearest_and_area(rank: int, mode: str) -> None:
    """"nearest" rounds down from the corner, "nearest-exact" from the pixel's centre, and "area" is an average."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        return [F.interpolate(x, size=size[:rank], mode=mode) for size in SIZES[:4]]

    fixed(every, images(rank), images(rank, batch=3))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("again", [None, True])
def test_scales_that_are_no_integers(mode: str, again: bool | None) -> None:
    """The coordinates follow the scale that was given, not the ratio of the rounded sizes, unless that is asked for."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        scales: list[Any] = [1.7, 0.6, 2.0, (0.5, 1.3)]
        return [F.interpolate(x, scale_factor=s, mode=mode, recompute_scale_factor=again) for s in scales]

    fixed(every, noise(2, 3, 7, 9), noise(3, 3, 7, 9))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(4, 4, 4, 4), (2, 3, 5, 6)])
def test_scales_at_sizes_known_only_at_run_time(mode: str, size: tuple[int, ...]) -> None:
    """A size that the tracer saw was written down."""
    corners = [] if mode == "nearest" else [nn.Upsample(scale_factor=2, mode=mode, align_corners=True)]
    for layer in [nn.Upsample(scale_factor=2, mode=mode), nn.Upsample(scale_factor=3, mode=mode), *corners]:
        check(layer, noise(*size), others=[[noise(3, size[1], size[2] + 2, size[3] + 1)]])


def test_a_resize_to_the_size_of_another_tensor() -> None:
    """The size of a skip connection is read at run time."""

    def like(x: torch.Tensor) -> torch.Tensor:
        return x + F.interpolate(F.avg_pool2d(x, 2), size=x.shape[2:], mode="bilinear", align_corners=False)

    check(Of(like), noise(3, 3, 7, 9), others=[[noise(1, 3, 8, 11)]])


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
def test_antialiasing_is_kept(mode: str, corners: bool) -> None:
    """The flag was dropped; with it, torch's cubic kernel also has -0.5 for -0.75."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        sizes = [(32, 32), (8, 8), (5, 23), (16, 7)]
        options: dict[str, Any] = {"mode": mode, "align_corners": corners}
        return [F.interpolate(x, size=size, antialias=flag, **options) for size in sizes for flag in (False, True)]

    fixed(every, noise(2, 2, 16, 16), noise(1, 2, 16, 16))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_sampling_on_a_grid(padding: str, corners: bool) -> None:
    """Coordinates outside the image, and the last axis of the grid being (x, y)."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        grid = torch.stack([x[:, 0] * 0.9, x[:, 1] * 1.3], dim=-1)
        return [F.grid_sample(x, grid, m, padding, align_corners=corners) for m in ("bilinear", "nearest")]

    check(Of(every), noise(3, 3, 3, 3), others=[[noise(2, 3, 5, 4)]])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("factor", [2, 3])
def test_pixel_shuffles_keep_the_channel_order(factor: int, channels: int) -> None:
    """depth_to_space orders row, column, channel, torch channel, row, column; with one channel nobody sees it."""
    square = factor * factor
    down, up = noise(2, square * channels, 4, 5), noise(2, channels, 4 * factor, 5 * factor)
    for net, x in [(nn.PixelShuffle(factor), down), (nn.PixelUnshuffle(factor), up)]:
        check(net, x, others=[[torch.cat([x, x], dim=2)[:1]]])
    both = nn.Sequential(nn.Conv2d(channels, square * channels, 1), nn.PixelShuffle(factor), nn.PixelUnshuffle(factor))
    check(both, noise(2, channels, 5, 4))


def test_pixels_of_a_range() -> None:
    """The order of a range of numbers, which shows any other one."""
    x = torch.arange(12.0, dtype=torch.float64).reshape(1, 3, 2, 2)
    pair = port(nn.PixelUnshuffle(2), x.expand(2, 3, 2, 2))
    pair.check([x.expand(2, 3, 2, 2)])
    assert pair.exact(x).flatten().tolist() == x.flatten().tolist()
    check(nn.PixelShuffle(2), torch.arange(2 * 12 * 8 * 8.0, dtype=torch.float64).reshape(2, 12, 8, 8))


def test_channel_shuffles() -> None:
    """Groups of channels are exchanged, not pixels."""
    check(nn.Sequential(nn.Conv2d(6, 6, 1), nn.ChannelShuffle(3)), noise(6, 6, 6, 6), others=[[noise(1, 6, 3, 5)]])


def test_unfolded_patches() -> None:
    """Patches are ordered channel, row, column, and folding adds what overlaps."""
    check(nn.Unfold(3, padding=1, stride=2), noise(4, 4, 4, 4), others=[[noise(2, 4, 6, 5)]])
    fixed(lambda x: F.fold(F.unfold(x, 3, stride=2), (9, 7), 3, stride=2), noise(2, 2, 9, 7), noise(3, 2, 9, 7))
