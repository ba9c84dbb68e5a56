"""Shapes: flattening behind images, products that look like others, and sizes that a tracer writes down."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise

BETWEEN: dict[str, Callable[[int], list[nn.Module]]] = {
    "nothing": lambda n: [],
    "dropout": lambda n: [nn.Dropout(0.5)],
    "batch norm": lambda n: [nn.BatchNorm1d(n)],
    "activation": lambda n: [nn.ReLU(), nn.Dropout(0.1)],
}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_flatten_before_a_linear_layer(name: str) -> None:
    """LeNet fell from near 100 % to 10 %, and VGG was fine: behind a map larger than 1x1 the rows of the first Linear
    are ordered by channel, row, column.
    """
    for channels, size in ((2, 6), (3, 3)):
        count = channels * size * size
        net = nn.Sequential(
            nn.Conv2d(3, channels, 3, padding=1), nn.Flatten(), *BETWEEN[name](count), nn.Linear(count, 5)
        )
        source = check_module(net, noise(2, 3, size, size), gradients=False)
        assert "ops.transpose(" not in source, source


def test_flattens_in_every_spelling() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.lines = nn.Conv2d(3, 4, 1), nn.Conv1d(3, 4, 1)
            self.heads = nn.ModuleList(nn.Linear(48, 2) for _ in range(4))
            self.head = nn.Linear(20, 2)

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            y = self.conv(x)
            flat = [y.view(y.size(0), -1), y.view(-1, 48), torch.flatten(y, 1), y.reshape(y.shape[0], 4 * 3 * 4)]
            lines = self.lines(F.pad(x.mean(2), (0, 1))).flatten(1)
            return [*(head(each) for head, each in zip(self.heads, flat, strict=True)), self.head(lines)]

    check_module(Net(), noise(2, 3, 3, 4), others=[[noise(5, 3, 3, 4)]], gradients=False)


def test_images_out_of_a_linear_layer() -> None:
    """The way back: a generator's first Linear becomes an image."""

    class Generator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.up = nn.Linear(5, 3 * 4 * 2), nn.ConvTranspose2d(3, 2, 4, 2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.up(self.fc(x).view(-1, 3, 4, 2).relu())

    source = check_module(Generator(), noise(2, 5), others=[[noise(3, 5)]])
    assert "ops.transpose(" not in source, source


def test_products_are_products() -> None:
    """A matmul of two square matrices silently became their elementwise product; a Linear on (1, 20, 300) failed."""

    def every(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        equal = [torch.matmul(x, y), x @ y, x * y, torch.bmm(x, y), x @ y.mT, torch.einsum("bij,bjk->bik", x, y)]
        uneven = [
            x[0] @ y[1],
            x[0, 0] @ y,
            x @ y[0, 0],
            torch.einsum("bij,bkj->bik", x, y),
            torch.outer(x[0, 0], y[0, 1]),
        ]
        return [*equal, *uneven, torch.tensordot(x, y, dims=([2], [1])), torch.baddbmm(x, x, y, beta=0.5, alpha=2)]

    check_module(every, noise(4, 4, 4), noise(4, 4, 4, seed=2))
    net = nn.Sequential(nn.Linear(6, 6), nn.Unflatten(-1, (2, 3)), nn.Linear(3, 2))
    check_module(net, noise(2, 20, 6), others=[[noise(1, 7, 6)]])
    check_module(
        nn.Bilinear(3, 4, 2), noise(2, 5, 3), noise(2, 5, 4, seed=2), others=[[noise(1, 2, 3), noise(1, 2, 4)]]
    )


def test_sizes_are_read_and_never_written_down() -> None:
    """A model worked at the traced batch only, or at 2 and not at 3."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        b, c, h, w = x.shape
        shuffled = x.reshape(b, c // 2, 2, h, w).transpose(1, 2).reshape(b, c, h, w)
        tokens = x.flatten(2).transpose(1, 2)
        windows = F.pad(x, (0, -w % 2, 0, -h % 2))
        windows = windows.unfold(2, 2, 2).unfold(3, 2, 2)
        grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")).to(x.dtype)
        half = x[:, :, : h // 2, w // 2 :]
        ones = torch.ones(b, h, dtype=x.dtype) * torch.linspace(0, 1, 5, dtype=x.dtype).sum()
        return [shuffled, tokens, windows, grid + x[:, :1], half, ones, x.new_zeros(b, w), x.mean((2, 3)) / (h * w)]

    check_module(every, noise(2, 4, 5, 6), others=[[noise(1, 4, 8, 3)], [noise(8, 4, 5, 7)]], gradients=False)


def test_positions_follow_the_length() -> None:
    """Position embeddings of the traced length were a constant."""

    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.learned = nn.Parameter(torch.zeros(1, 12, 4))
            self.table = nn.Embedding(12, 4)
            self.register_buffer("rows", torch.arange(12)[None])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time = x.size(1)
            made = torch.arange(time, device=x.device).unsqueeze(0).expand(x.size(0), -1)
            mask = (x[..., 0] > 0).int()
            counted = torch.cumsum(mask, dim=1).type_as(mask) * mask
            return x + self.learned[:, :time] + self.table(made) + self.table(self.rows[:, :time]) + self.table(counted)

    check_module(Positions(), noise(2, 5, 4), others=[[noise(3, 9, 4)], [noise(1, 12, 4)]], gradients=False)


def test_negative_axes_and_axes_of_size_one() -> None:
    """Axes counted from the end, in the layout of images; `squeeze` of the sizes that are one."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 1)

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            x = self.conv(x)
            moved = [x.sum(-1), x.softmax(-3), x.flip(-2), x.roll(1, -1), x.transpose(-1, -2), x.movedim(1, -1)]
            cut = [x.chunk(2, -3)[1], x.narrow(-1, 1, 2), x[..., 0], x[:, -1], x.select(-2, 1), x.unbind(-3)[2]]
            joined = [torch.cat([x, x], -2), torch.stack([x, x], -1), x.unsqueeze(-3).squeeze(-3), x.cumsum(-1)]
            pooled = [x.mean((-1, -2)), x.amax(-3, keepdim=True).squeeze(1), x.norm(dim=-3), x.std((-2, -1))]
            return moved + cut + joined + pooled

    for size in ((4, 4, 4, 4), (2, 4, 3, 5)):
        check_module(Net(), noise(*size), others=[[noise(3, 4, 6, 4)]], gradients=False)
