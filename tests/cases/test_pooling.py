"""Pooling: what the border holds, and what an average is divided by."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.cases.pairs import Each, check, noise, port

MAX = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVERAGE = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
ADAPTIVE = {1: nn.AdaptiveAvgPool1d, 2: nn.AdaptiveAvgPool2d, 3: nn.AdaptiveAvgPool3d}
# kernel, stride, padding
WINDOWS = [(3, 2, 1), (2, 2, 0), (2, 2, 1), (3, 1, 1), (3, 3, 1), (4, 3, 2), (2, 3, 1), (5, 2, 1)]


def images(rank: int, size: int, *, batch: int = 2, channels: int = 3) -> torch.Tensor:
    return noise(batch, channels, *[size, size + 1, size - 1][:rank])


def fixed_but_batch(*names: str) -> dict[str, dict[int, str]]:
    return {name: {0: "batch"} for name in names or ("x",)}


class Pools(Each):
    """Every pool on the same images."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:  # type: ignore[override]
        return super().forward(x)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("size", [4, 7, 8])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_averages_divide_by_what_the_window_covers(rank: int, size: int, include: bool) -> None:
    """With ceil_mode the last window was divided by its whole area, not by what lies within the padded edge."""
    windows = [(k, s, p) for k, s, p in (WINDOWS if rank < 3 else WINDOWS[:3]) if size + 2 * p >= k]
    pools = [AVERAGE[rank](*w, ceil_mode=c, count_include_pad=include) for w in windows for c in (True, False)]
    pair = port(Pools(*pools), images(rank, size), dynamic=fixed_but_batch())
    pair.check([images(rank, size)], [images(rank, size, batch=5)])


def test_the_last_average_of_a_counted_edge() -> None:
    """The corner of 1 … 16 under a 3x3 window came out as 1.78 where torch says 4."""
    x = torch.arange(1.0, 17.0, dtype=torch.float64).reshape(1, 1, 4, 4)
    pair = port(nn.AvgPool2d(3, 2, 1, ceil_mode=True), x.expand(2, 1, 4, 4), dynamic={"input": {0: "batch"}})
    pair.check([x.expand(2, 1, 4, 4)], [x])
    assert pair.exact(x)[0, 0, 0, 2] == 2 and pair.exact(x)[0, 0, 2, 2] == 4


@pytest.mark.parametrize("override", [1, 5])
def test_a_divisor_of_ones_own(override: int) -> None:
    """A divisor that the author gives replaces the area of the window."""
    check(nn.AvgPool2d(3, 2, 1, divisor_override=override), images(2, 9), others=[[images(2, 10, batch=1)]])


@pytest.mark.parametrize("ceil", [True, False])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_maxima_of_negative_numbers(rank: int, ceil: bool) -> None:
    """A border of zeros won over every negative number."""
    windows = WINDOWS if rank < 3 else WINDOWS[:3]
    x, y = (-images(rank, 9).abs() - 3, -images(rank, 9, batch=5).abs() - 3)
    pair = port(Pools(*[MAX[rank](*w, ceil_mode=ceil) for w in windows]), x, dynamic=fixed_but_batch())
    pair.check([x], [y])


@pytest.mark.parametrize("size", [(4, 4, 4, 4), (2, 3, 9, 8)])
def test_maxima_at_sizes_known_only_at_run_time(size: tuple[int, ...]) -> None:
    """The padding was computed for the traced size."""
    x, y = -noise(*size).abs(), -noise(3, size[1], size[2] + 1, size[3] + 2).abs()
    check(Pools(*[MAX[2](*w) for w in WINDOWS[:6]]), x, others=[[y]])
    check(Pools(*[AVERAGE[2](*w) for w in WINDOWS[:6]]), x, others=[[y]])
    check(Pools(*[AVERAGE[2](*w, count_include_pad=False) for w in WINDOWS[:6]]), x, others=[[y]])


def test_maxima_of_infinities_and_nans() -> None:
    """A window that holds nothing but -inf stays -inf, and one with a NaN is NaN."""
    x = noise(2, 3, 6, 6)
    x[0, 0, :3, :3], x[1, 2, 4, 4], x[0, 1, 2, 2] = -float("inf"), float("nan"), float("inf")
    check(Pools(nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(3, 1, 1)), x)


# kernel, stride, padding, dilation
DILATED = [(3, 1, 0, 2), (3, 2, 1, 2), (2, 2, 1, 3), (4, 3, 2, 2), (5, 1, 2, 1), (7, 2, 3, 1), (3, 1, 1, 3)]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_dilated_maxima(rank: int) -> None:
    """Dilation was refused, or the window padded as if there were none."""
    x, y = -images(rank, 12).abs() - 3, -images(rank, 12, batch=3).abs() - 3
    windows = DILATED if rank < 3 else DILATED[:2]
    pair = port(Pools(*[MAX[rank](k, s, p, d) for k, s, p, d in windows]), x, dynamic=fixed_but_batch())
    pair.check([x], [y])


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_pool_without_dilation_is_a_plain_one(rank: int) -> None:
    """Every max pool became a slow gather since one of them was dilated."""
    source = check(nn.Sequential(MAX[rank](3, 2, 1), MAX[rank](2, 2)), images(rank, 12))
    assert source.count(f"layers.MaxPooling{rank}D(") == 2, source
    source = check(nn.Sequential(MAX[rank](3, 2, 1, 2)), images(rank, 12))
    assert f"layers.MaxPooling{rank}D(" not in source, source


@pytest.mark.parametrize("size", [12, 13])
def test_adaptive_averages_of_overlapping_bins(size: int) -> None:
    """Where the output does not divide the input, workarounds with one stride are off by 1e-3."""
    pools = [nn.AdaptiveAvgPool2d(bins) for bins in (7, 1, 2, 3, 6, (5, 13), (None, 4))]
    x, y = noise(2, 4, size, size), noise(3, 4, size, size)
    port(Pools(*pools), x, dynamic=fixed_but_batch()).check([x], [y])


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_pools_of_every_rank(rank: int) -> None:
    """Bins along one axis must not follow another one's size."""
    x, y = noise(2, 5, *[5, 7, 6][:rank]), noise(3, 5, *[5, 7, 6][:rank])
    bins = [(3,) * rank, (1,) * rank, (4, 2, 5)[:rank], (7, 7, 7)[:rank]]
    maxima = {1: nn.AdaptiveMaxPool1d, 2: nn.AdaptiveMaxPool2d, 3: nn.AdaptiveMaxPool3d}[rank]
    port(Pools(*[ADAPTIVE[rank](b) for b in bins]), x, dynamic=fixed_but_batch()).check([x], [y])
    port(Pools(*[maxima(b) for b in bins]), -x.abs(), dynamic=fixed_but_batch()).check([-x.abs()], [-y.abs()])


def test_a_global_average_at_any_size() -> None:
    """One bin is a mean, whatever the size."""
    net = nn.Sequential(nn.Conv2d(4, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4))
    assert "GlobalAveragePooling2D" in check(net, noise(4, 4, 4, 4), others=[[noise(1, 4, 5, 7)]])
