"""Loops: `while_loop`, `scan` and `map` of torch's in Keras, torch in float64 being right."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops import map as over
from torch._higher_order_ops import scan, while_loop

from tests.converters.targets.keras.modules import check_module, noise

pytestmark = pytest.mark.usefixtures("keras_double")
START = torch.zeros((), dtype=torch.int64)


class Cell(nn.Module):
    """What a turn does, as a module of its own."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(width, width), nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.linear(x)).tanh()


# ***** while *****


class Halting(nn.Module):
    """A count and a condition of the data."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        def going(i: Tensor, x: Tensor) -> Tensor:
            return (i < 6) & (x.abs().sum() < 12)

        def step(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            y = self.cell(x)
            return i + 1, x + y * i

        i, x = while_loop(going, step, (START, x))
        return x, i


def test_while_loops_run_as_often_as_in_the_source() -> None:
    """Some turns, all turns and none."""
    source = check_module(Halting(), noise(3, 4), others=[[noise(2, 4) * 1e-3], [noise(5, 4) * 99]], gradients=False)
    assert "        def step(i, x):\n            y = self.cell(x)" in source
    assert "i, x = ops.while_loop(" in source and "supports_jit" in source


class Turns(nn.Module):
    """What a loop may be made of: its condition, its step, and what it begins with."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.cell, self.weight = Cell(), nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Any:
        z = x * 2
        match self.kind:
            case "one value":
                return while_loop(lambda x: x.sum() < 9, lambda x: (x.abs() * 1.5 + self.cell(x),), (x,))[0]
            case "captured":
                return while_loop(lambda x: x.sum() < z.abs().sum() + 9, lambda x: (x + z.abs() + self.weight,), (x,))[
                    0
                ]
            case "parameter first":
                start = self.weight * 1
                return while_loop(lambda i, w: i < 3, lambda i, w: (i + 1, w * x.mean() + i), (START, start))[1]
            case "swapped":
                step = lambda i, x, z: (i + 1, z.clone(), x.clone())  # noqa: E731 - a function without a name
                return while_loop(lambda i, x, z: i < 3, step, (START, x, z))[1:]
            case "branch":

                def step(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
                    return i + 1, torch.cond(x.sum() > 0, lambda x: x - self.cell(x) - 1, lambda x: x * x + z, (x,))

                return while_loop(lambda i, x: i < 4, step, (START, x))[1]
            case "loop":

                def inner(j: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
                    return j + 1, x * 0.9 + self.cell(x)

                def outer(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
                    return i + 1, while_loop(lambda j, x: j < i, inner, (torch.zeros_like(i), x))[1]

                return while_loop(lambda i, x: i < 4, outer, (START, x))[1]
            case "types":
                flags = x > 0
                step = lambda i, f, x: (i + 1, ~f, torch.where(f, x + i, x))  # noqa: E731 - a function without a name
                return while_loop(lambda i, f, x: i < 3, step, (START, flags, x))[1:]
        raise AssertionError(self.kind)


@pytest.mark.parametrize("kind", ["one value", "captured", "parameter first", "swapped", "branch", "loop", "types"])
def test_while_loops(kind: str) -> None:
    check_module(Turns(kind), noise(3, 4), others=[[-noise(3, 4)], [noise(2, 4).abs() * 9]], gradients=False)


class Images(nn.Module):
    """Convolutions in a loop carry their image channels last."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, self.conv(x).relu()), (START, x))[1]
        return self.head(x)


@pytest.mark.parametrize("size", [(2, 3, 5, 6), (3, 3, 3, 3)])
def test_loops_of_convolutions_need_no_transposes(size: tuple[int, ...]) -> None:
    source = check_module(Images(), noise(*size), others=[[noise(1, 3, 7, 4)]], gradients=False)
    assert "transpose(" not in source


class Mixed(nn.Module):
    """A loop that begins in the source's order and convolves, or goes on in it."""

    def __init__(self, ends: str) -> None:
        super().__init__()
        self.conv, self.ends = nn.Conv2d(4, 4, 3, padding=1), ends

    def forward(self, x: Tensor) -> Tensor:
        def step(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            y = self.conv(x).relu()
            if self.ends == "reshape":
                y = y.flatten(1).softmax(1).reshape(x.shape)
            elif self.ends == "twisted":
                y = y.transpose(1, 3).cumsum(1).contiguous()
            return i + 1, y

        x = x.flatten(1).cumsum(1).reshape(x.shape)
        return while_loop(lambda i, x: i < 2, step, (START, x))[1].amax(1)


@pytest.mark.parametrize("ends", ["convolution", "reshape", "twisted"])
def test_every_turn_ends_in_the_order_in_which_it_began(ends: str) -> None:
    """Four equal sizes: nothing can be told from them."""
    check_module(Mixed(ends), noise(4, 4, 4, 4), gradients=False)


# ***** scans *****


class Scans(nn.Module):
    """Scans whose results are like the state, and others."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.cell, self.out = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Any:
        zeros = x.new_zeros(x.shape[1], 4)

        def step(h: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
            h = torch.tanh(self.cell(h) + t)
            return h, h * 2

        match self.kind:
            case "alike":
                return scan(step, zeros, x)
            case "backwards":
                return scan(step, zeros, x, reverse=True)
            case "second axis":
                return scan(step, x.new_zeros(x.shape[0], 4), x, dim=1)
            case "others":

                def others(state: Any, t: Tensor) -> Any:
                    h, c = state
                    h = torch.tanh(self.cell(h) + t)
                    return (h, c + h.sum(1)), (self.out(h), h.sum(0))

                (h, c), (y, total) = scan(others, (zeros, zeros.sum(1)), x)
                return h, c, y, total
            case "two sequences":
                return scan(lambda h, t: (h + t[0] * self.cell(t[1]), h.sum()), zeros, (x, x * x))
            case "branch":

                def either(h: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
                    h = torch.cond(t.sum() > 0, lambda h, t: h + self.cell(t), lambda h, t: h * t, (h, t))
                    return h, h.sin()

                return scan(either, zeros, x)
        raise AssertionError(self.kind)


@pytest.mark.parametrize("kind", ["alike", "backwards", "second axis", "others", "two sequences", "branch"])
def test_scans(kind: str) -> None:
    source = check_module(Scans(kind), noise(5, 3, 4), others=[[noise(1, 3, 4)], [noise(4, 2, 4)]])
    assert ("scan_results(" in source) == (kind in ("others", "two sequences"))


class Video(nn.Module):
    """A convolution over the frames of a film."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        def step(h: Tensor, frame: Tensor) -> tuple[Tensor, Tensor]:
            h = self.conv(h + frame).relu()
            return h, h + 1

        return scan(step, x[:, 0] * 0, x, dim=1)


@pytest.mark.parametrize("size", [(2, 4, 3, 5, 6), (3, 3, 3, 3, 3)])
def test_frames_are_stored_channels_last_before_the_scan(size: tuple[int, ...]) -> None:
    source = check_module(Video(), noise(*size), others=[[noise(2, 5, 3, 4, 4)]])
    turn = source[source.index("def step(") : source.index("ops.scan(")]
    assert "transpose(" not in turn


class Mapped(nn.Module):
    """The same of each slice."""

    def __init__(self, trains: bool) -> None:
        super().__init__()
        self.layer = Cell() if trains else nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        scale = x.sum()
        y = over(lambda t: self.layer(t) * scale, x)
        return y, over(lambda pair: (pair[0] * pair[1], pair[0].sum()), (x, y))


@pytest.mark.parametrize("trains", [False, True])
def test_maps(trains: bool) -> None:
    source = check_module(Mapped(trains), noise(5, 3, 4), others=[[noise(1, 3, 4)], [noise(2, 1, 4)]])
    assert ("scan_results(" in source) == trains and "ops.map(" in source
