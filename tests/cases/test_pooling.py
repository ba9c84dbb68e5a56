"""Pooling: what the border holds, and what an average is divided by."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.cases.families import RANKS, images
from tests.converters.targets.keras.modules import Each, check_module, noise

MAX = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVERAGE = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
# kernel, stride, padding
WINDOWS = [(3, 2, 1), (2, 2, 0), (2, 2, 1), (3, 1, 1), (3, 3, 1), (4, 3, 2), (2, 3, 1), (5, 2, 1)]
BATCH = {"x": {0: "batch"}}


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("rank", RANKS)
def test_averages_divide_by_what_the_window_covers(rank: int, include: bool) -> None:
    """With ceil_mode the last window was divided by its whole area instead of by what lies within the padded edge, and
    torch counts the padding where ONNX's default is not to.
    """
    for size in (4, 7) if rank < 3 else (7,):
        windows = [(k, s, p) for k, s, p in (WINDOWS if rank < 3 else WINDOWS[:3]) if size + 2 * p >= k]
        pools = [AVERAGE[rank](*w, ceil_mode=c, count_include_pad=include) for w in windows for c in (True, False)]
        check_module(
            Each(*pools), images(rank, size), others=[[images(rank, size, batch=5)]], dynamic=BATCH, gradients=size == 4
        )


def test_the_last_average_of_a_counted_edge() -> None:
    """The corner of 1 … 16 under a 3x3 window came out as 1.78 where torch says 4."""
    x = torch.arange(1.0, 17.0, dtype=torch.float64).reshape(1, 1, 4, 4)
    pool = nn.AvgPool2d(3, 2, 1, ceil_mode=True)
    assert pool(x)[0, 0, 0, 2] == 2 and pool(x)[0, 0, 2, 2] == 4
    check_module(pool, x, dynamic="none")


def test_a_divisor_of_ones_own() -> None:
    """A divisor that the author gives replaces the area of the window."""
    pools = [nn.AvgPool2d(3, 2, 1, divisor_override=override) for override in (1, 5)]
    check_module(Each(*pools), images(2, 9), others=[[images(2, 10, batch=1)]])


@pytest.mark.parametrize("rank", RANKS)
def test_maxima_of_negative_numbers(rank: int) -> None:
    """A border of zeros won over every negative number."""
    pools = [MAX[rank](*w, ceil_mode=c) for w in (WINDOWS if rank < 3 else WINDOWS[:3]) for c in (True, False)]
    x, y = (-images(rank, 9, batch=batch).abs() - 3 for batch in (2, 5))
    check_module(Each(*pools), x, others=[[y]], dynamic=BATCH, gradients=rank == 2)


@pytest.mark.parametrize("size", [(4, 4, 4, 4), (2, 3, 9, 8)])
def test_pools_at_sizes_known_only_at_run_time(size: tuple[int, ...]) -> None:
    """The padding was computed for the size that was traced."""
    x, y = -noise(*size).abs(), -noise(3, size[1], size[2] + 1, size[3] + 2).abs()
    maxima = [MAX[2](*w) for w in WINDOWS[:6]]
    means = [AVERAGE[2](*w, count_include_pad=include) for w in WINDOWS[:6] for include in (True, False)]
    check_module(Each(*maxima, *means), x, others=[[y]])


def test_maxima_of_plus_infinity() -> None:
    """An infinity reaches every window that holds it."""
    x = noise(2, 3, 6, 6)
    x[0, 0, :3, :3] = float("inf")
    check_module(Each(nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(3, 1, 1)), x, gradients=False)


@pytest.mark.parametrize("special", ["-inf", "nan"])
@pytest.mark.xfail(
    strict=True, reason="TensorFlow's max pooling passes over NaN, and gives the least finite number for -inf alone"
)
def test_maxima_of_what_is_no_number(special: str) -> None:
    x = noise(2, 3, 6, 6)
    x[0, 0, :3, :3] = float(special)
    check_module(nn.MaxPool2d(2), x, gradients=False)


# kernel, stride, padding, dilation
DILATED = [(3, 1, 0, 2), (3, 2, 1, 2), (2, 2, 1, 3), (4, 3, 2, 2), (5, 1, 2, 1), (7, 2, 3, 1), (3, 1, 1, 3)]


@pytest.mark.parametrize("rank", RANKS)
def test_dilated_maxima(rank: int) -> None:
    """Dilation was refused, or the window padded as if there were none."""
    pools = [MAX[rank](k, s, p, d) for k, s, p, d in (DILATED if rank < 3 else DILATED[:2])]
    x, y = (-images(rank, 12, batch=batch).abs() - 3 for batch in (2, 3))
    check_module(Each(*pools), x, others=[[y]], dynamic=BATCH, gradients=rank == 2)


def test_a_pool_without_dilation_is_a_plain_one() -> None:
    """Every max pool became a slow gather because some pools are dilated."""
    pools = [nn.MaxPool1d(3, 2, 1), nn.MaxPool1d(2, 2), nn.MaxPool1d(2, 1, 0, 2)]
    assert check_module(nn.Sequential(*pools), images(1, 30)).count("layers.MaxPooling1D(") == 2
    pools = [nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2, 2), nn.MaxPool2d(2, 1, 0, 2)]
    assert check_module(nn.Sequential(*pools), images(2, 30)).count("layers.MaxPooling2D(") == 2


@pytest.mark.parametrize("rank", RANKS)
def test_adaptive_pools_have_overlapping_bins(rank: int) -> None:
    """Where the output does not divide the input, workarounds with one stride are off by 1e-3; bin i covers
    floor(i · in / out) … ceil((i + 1) · in / out).
    """
    means = {1: nn.AdaptiveAvgPool1d, 2: nn.AdaptiveAvgPool2d, 3: nn.AdaptiveAvgPool3d}[rank]
    maxima = {1: nn.AdaptiveMaxPool1d, 2: nn.AdaptiveMaxPool2d, 3: nn.AdaptiveMaxPool3d}[rank]
    bins = [(3,) * rank, (1,) * rank, (4, 2, 5)[:rank], (7, 7, 7)[:rank]]
    x, y = (noise(batch, 5, *[5, 7, 6][:rank]) for batch in (2, 3))
    check_module(
        Each(*[kind(b) for b in bins for kind in (means, maxima)]), x, others=[[y]], dynamic=BATCH, gradients=rank == 2
    )


@pytest.mark.parametrize("size", [12, 13])
def test_a_pyramid_of_adaptive_averages(size: int) -> None:
    """Export failed at the bins 1, 2, 3, 6 and 7 of segmentation heads when they do not divide the image."""
    pools = [nn.AdaptiveAvgPool2d(bins) for bins in (7, 1, 2, 3, 6, (5, 13), (None, 4))]
    check_module(Each(*pools), noise(2, 4, size, size), dynamic=BATCH, gradients=False)


def test_a_global_average_at_any_size() -> None:
    """One bin is a mean, whatever the size."""
    net = nn.Sequential(nn.Conv2d(4, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4))
    source = check_module(net, noise(4, 4, 4, 4), others=[[noise(1, 4, 5, 7)]])
    assert "axis=(1, 2)" in source and "ops.transpose(" not in source, source
