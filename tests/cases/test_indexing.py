"""Indexing: writes into views, scattered and gathered elements, and masks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise


def test_writes_into_a_slice_reach_the_tensor() -> None:
    """`x[:, 1:2, 16:25, 8::2].relu_()` vanished from the graph, for nothing read its result."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        slices, masked, rows, moved = x * 1, x * 1, x * 1, x * 1
        slices[:, 1:2, 2:5, 1::2].relu_()
        masked[masked > 0] += 1
        rows[:, 0] = 0.5
        rows[..., -1].mul_(2)
        moved.transpose(1, 2)[:, 0].add_(moved[:, :, 0] * 2)
        return [slices * 2, masked, rows, moved]

    check_module(every, noise(2, 3, 6, 5), others=[[noise(1, 3, 7, 8)]])


def test_writes_between_convolutions() -> None:
    """The same where height, width and channels have other places."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            y[:, 1:3, ::2].clamp_(min=0)
            y[:, 0] = y[:, 1] * 2
            y[:, :, 0, 0] += 1
            return self.last(y)

    for size in ((4, 3, 4, 4), (3, 3, 3, 3)):
        check_module(Net(), noise(*size), others=[[noise(1, 3, 5, 6)]], gradients=False)


def test_a_sequence_of_writes_and_reads() -> None:
    """What a view shows after its tensor has changed, and what a copy does not."""

    def order(x: torch.Tensor) -> list[torch.Tensor]:
        y = x.clone()
        view, copy = y[:, :2], y[:, :2].clone()
        y.mul_(2)
        before = view + 0
        view.zero_()
        y += 1
        flat = y.view(-1)
        flat[0] = 7
        y.unsqueeze(0)[0, 1].neg_()
        return [y, before, copy, view, flat[:3]]

    check_module(order, noise(3, 4))


def test_points_on_a_canvas() -> None:
    """Pillars of a point cloud were scattered to a canvas with another order of axes: 30000 against 3 elements."""

    class Canvas(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.points, self.image = nn.Linear(3, 4), nn.Conv2d(4, 2, 3, padding=1)

        def forward(self, points: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
            canvas = torch.zeros(1, 4, 6, 6, dtype=points.dtype)
            canvas[0, :, places[:, 0], places[:, 1]] = self.points(points).t()
            flat = torch.zeros(4, 36, dtype=points.dtype)
            flat[:, places[:, 0] * 6 + places[:, 1]] = self.points(points).t()
            return self.image(canvas + flat.view(1, 4, 6, 6))

    places = torch.tensor([[0, 1], [2, 3], [5, 5], [4, 0]])
    check_module(Canvas(), noise(4, 3), places, others=[[noise(2, 3), places[1:3]]], gradients=False)


def test_gathers_along_an_axis() -> None:
    """Indices that count from the end, indices per batch, and indices that repeat."""

    def every(x: torch.Tensor, index: torch.Tensor) -> list[torch.Tensor]:
        rows = torch.arange(x.size(0))
        wide = index[..., None].expand(-1, -1, x.size(2))
        picked = [x[:, index[0]], x[rows, index[:, 0]], x[rows[:, None], index], x[:, -1], x[:, [0, -1]], x[index]]
        along = [torch.gather(x, 1, wide), x.take_along_dim(wide, 1), x.index_select(1, index[0]), torch.take(x, index)]
        return [*picked, *along, F.embedding(index, x[0]), x[index[0, 0]]]

    index = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0]])
    check_module(every, noise(2, 4, 3), index, others=[[noise(2, 4, 3, seed=3), index.flip(0)]])


def test_sums_by_index() -> None:
    """Messages of a graph network, counted votes: repeated positions add up."""

    def every(x: torch.Tensor, index: torch.Tensor) -> list[torch.Tensor]:
        zeros = torch.zeros(5, x.size(1), dtype=x.dtype)
        wide = index[:, None].expand(-1, x.size(1))
        added = [zeros.index_add(0, index, x), zeros.scatter_add(0, wide, x), zeros.index_add(0, index, x, alpha=-2)]
        reduced = [zeros.scatter_reduce(0, wide, x, mode) for mode in ("sum", "mean", "amax", "amin", "prod")]
        alone = [zeros.scatter_reduce(0, wide, x, mode, include_self=False) for mode in ("sum", "mean", "amax")]
        put = zeros.index_put((index,), x, accumulate=True)
        return [*added, *reduced, *alone, put, zeros.index_fill(0, index[:2], 3.0), F.one_hot(index, 5).sum(0)]

    check_module(every, noise(4, 3), torch.tensor([1, 4, 1, 0]), others=[[noise(2, 3), torch.tensor([3, 3])]])


def test_masks_that_choose() -> None:
    """Elements under a mask, whose number is known at run time only, and values put under a mask."""

    def chosen(x: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        put = x.masked_scatter(mask, x.flip(0) * 10)
        filled = torch.where(mask, x, x.mean(1, keepdim=True))
        scaled = torch.where(mask, x, torch.tensor(0.5, dtype=x.dtype)) * mask
        return [put, filled, scaled, x.masked_fill(mask, 0), mask.any(1), mask.logical_not().all(), mask.sum(1)]

    mask = torch.tensor([[True, False, True], [False, False, True]])
    check_module(chosen, noise(2, 3), mask, others=[[noise(1, 3), mask[:1]]])


def test_triangles_ranges_and_bins() -> None:
    def every(x: torch.Tensor) -> list[torch.Tensor]:
        edges = torch.tensor([-1.0, -0.2, 0.4, 1.1], dtype=x.dtype)
        bins = [torch.bucketize(x, edges), torch.bucketize(x, edges, right=True), torch.searchsorted(edges, x)]
        shapes = [x.tril(), x.triu(1), x.diagonal(dim1=-2, dim2=-1), torch.diag_embed(x[:, 0])]
        return [*bins, *shapes, x.cumsum(1), x.diff(dim=1)]

    check_module(every, noise(2, 4, 4), others=[[noise(1, 5, 4)]], gradients=False, rtol=1e-11)
    running = noise(2, 4, 3)
    check_module(lambda x: [x.cumprod(2), x.logcumsumexp(1), x.cummax(1).values], running, dynamic="none", rtol=1e-11)
