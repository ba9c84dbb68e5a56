"""Branches: `torch.cond` as `ops.cond`, both branches taken, torch in float64 being right."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo
from torch import Tensor, nn
from torch.nn import functional as F

from tests.converters.targets.keras.modules import check_module, noise

pytestmark = pytest.mark.usefixtures("keras_double")


@pytest.fixture(autouse=True)
def fresh_compiler() -> None:
    """torch compiles a branch when it runs it, and gives up after some branches of one name."""
    torch._dynamo.reset()


class Block(nn.Module):
    """A child with a layer that trains and one that does not."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(width, width), nn.Dropout(0.25)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return self.drop(y).relu()


class Layers(nn.Module):
    """One layer in each branch."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.a(x), lambda x: self.b(x), (x,))


def test_short_branches_are_lambdas() -> None:
    source = check_module(Layers(), noise(3, 4).abs(), others=[[-noise(2, 4).abs()]])
    assert "ops.cond(ops.greater(ops.sum(x), 0.0), lambda: self.a(x), lambda: self.b(x))" in source


class Named(nn.Module):
    """Functions with names, children, lists of children, a parameter and a buffer, another branch inside."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.deep = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.3))
        self.blocks = nn.ModuleList([Block(), Block()])
        self.shift = nn.Parameter(torch.ones(4))
        self.register_buffer("scale", torch.ones(4))
        self.plain = Block()

    def forward(self, x: Tensor) -> Tensor:
        def deeper(x: Tensor) -> tuple[Tensor, Tensor]:
            y = self.deep(x)
            for block in self.blocks:
                y = block(y)
            return y * self.scale + self.shift, y.sum()

        def shallow(x: Tensor) -> tuple[Tensor, Tensor]:
            y = torch.cond(x.sum() < -9, lambda: self.plain(x) + 1, lambda: self.plain(x * 2))
            return y, x.sum()

        x, total = torch.cond(x.sum() > 0, deeper, shallow, (x,))
        return x + total


def test_functions_keep_their_names_children_and_loops() -> None:
    x = noise(3, 4).abs()
    source = check_module(Named(), x, others=[[-x[:2]], [-9 * x]])
    assert "        def deeper():" in source and "        def shallow():" in source
    assert "            for block in self.blocks:\n                y = block(y)" in source
    assert "y = self.deep(x)" in source
    assert "x, total = ops.cond(ops.greater(ops.sum(x), 0.0), deeper, shallow)" in source
    assert source.count("class Block(") == 1


class Gate(nn.Module):
    """The same class twice: its functions must be told apart from each other no more than its other statements."""

    def __init__(self, width: int, limit: float) -> None:
        super().__init__()
        self.linear = nn.Linear(4, width)
        self.back = nn.Linear(width, 4)
        self.limit = limit

    def forward(self, x: Tensor) -> Tensor:
        def taken(x: Tensor) -> Tensor:
            y = self.linear(x)
            return self.back(y.tanh()) * self.limit

        return torch.cond(x.sum() > 0, taken, lambda x: x * 0.5, (x,))


class Gates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Gate(6, 2.0), Gate(8, 3.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(-self.first(x))


def test_instances_with_branches_share_a_class() -> None:
    source = check_module(Gates(), noise(3, 4).abs(), others=[[-noise(2, 4).abs()]])
    assert source.count("class Gate(") == 1 and "Gate(6, 2.0)" in source and "Gate(8, 3.0)" in source


class Shadows(nn.Module):
    """Names that mean one thing outside of a branch and another inside."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        z = y * 2

        def first(y: Tensor, x: Tensor) -> Tensor:
            x = x + y
            y = x * z
            z2 = y - x
            return z2 + y

        def second(y: Tensor, x: Tensor) -> Tensor:
            y = y * x
            x = y + z
            return x

        x = torch.cond(y.sum() > 0, first, second, (x, y))
        return x + y + z


class Functions(nn.Module):
    """A value under the name of a function, and functions of one name after the other."""

    def forward(self, x: Tensor) -> Tensor:
        then_branch = x * 2
        for _ in range(2):
            x = torch.cond(
                x.sum() > 0, lambda x: (x - 1).sin().cos() * (x + 2).exp().sqrt() - x.tanh(), torch.neg, (x,)
            )
        return x + then_branch


@pytest.mark.parametrize("module", [Shadows, Functions])
def test_functions_read_what_they_read_in_the_source(module: type[nn.Module]) -> None:
    check_module(module(), noise(3, 4), others=[[-noise(3, 4)], [noise(2, 4).abs()]])


class Sized(nn.Module):
    """Sizes that vary, read in branches and around them."""

    def forward(self, x: Tensor) -> Tensor:
        def regrouped(x: Tensor) -> Tensor:
            y = x.reshape(x.shape[0] * 2, x.shape[1] // 2) * x.shape[0]
            return y.reshape(x.shape) + x.new_ones(x.shape[0], 1)

        def filled(x: Tensor) -> Tensor:
            return x.new_full((x.shape[0], x.shape[1]), 2.0) * x.shape[1] + x

        return torch.cond(x.sum() > 0, regrouped, filled, (x,)) / x.shape[0]


def test_sizes_in_branches_are_read() -> None:
    x = noise(3, 4).abs()
    check_module(Sized(), x, others=[[-x[:2]], [noise(5, 4).abs()]], dynamic={"x": {0: "batch"}})


class Kinds(nn.Module):
    """Results of all types, numbers, parameters and values that are only handed through."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 4))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        def one(x: Tensor) -> tuple[Tensor, ...]:
            return x.clone(), x > 0, x.argmax(1), torch.zeros_like(x[0, 0]), self.weight * 1

        def other(x: Tensor) -> tuple[Tensor, ...]:
            return (
                F.linear(x, self.weight) @ self.weight,
                x < 0,
                torch.ones(3, dtype=torch.int64),
                x.sum(),
                self.weight + x,
            )

        return torch.cond(x.sum() > 0, one, other, (x,))


def test_results_have_one_type_in_both_branches() -> None:
    check_module(Kinds(), noise(3, 4).abs(), others=[[-noise(3, 4).abs()]], dynamic="none", gradients=False)


class Bare(nn.Module):
    """Branches that are modules and functions of torch's own; a condition that is a number's."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Block(), nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cond(x.shape[0] > 2, self.a, self.b, (x,))
        return torch.cond((x > 0.5).any(), torch.sin, torch.cos, (x,))


def test_branches_that_are_modules() -> None:
    check_module(Bare(), noise(3, 4), dynamic="none")


# ***** layout *****


class Convolutions(nn.Module):
    """A branch of convolutions only."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cond(x.sum() > 0, lambda x: self.norm(self.a(x)), lambda x: self.b(x).relu() + x, (x,))
        return self.b(x)


@pytest.mark.parametrize("size", [(2, 3, 5, 6), (3, 3, 3, 3)])
def test_branches_of_convolutions_need_no_transposes(size: tuple[int, ...]) -> None:
    x = noise(*size).abs()
    source = check_module(Convolutions(), x, others=[[-x], [x[:1]]])
    assert "transpose(" not in source


class OneSided(nn.Module):
    """Channels last in one branch; the source's own order, a permutation or nothing at all in the other."""

    def __init__(self, other: str, channels: int = 4) -> None:
        super().__init__()
        self.conv, self.other = nn.Conv2d(channels, channels, 3, padding=1), other
        self.weight = nn.Parameter(torch.ones(channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        def second(x: Tensor) -> Tensor:
            match self.other:
                case "reshape":
                    return x.flatten(1).softmax(1).reshape(x.shape)
                case "permute":
                    return (x.permute(0, 2, 3, 1) @ self.weight).permute(0, 3, 1, 2).contiguous()
                case "twisted":
                    return x.transpose(2, 3).cumsum(3).contiguous()
            return x.clone()

        return torch.cond(x.sum() > 0, lambda x: self.conv(x).relu(), second, (x,)).amax(1)


@pytest.mark.parametrize("other", ["reshape", "permute", "twisted", "nothing"])
@pytest.mark.parametrize("first", [True, False])
def test_branches_meet_in_one_order(other: str, first: bool) -> None:
    """Four equal sizes: nothing can be told from them."""
    x = noise(4, 4, 4, 4).abs() * (1 if first else -1)
    check_module(OneSided(other), x, others=[[-x]])


class Flattening(nn.Module):
    """A flatten before a Linear, inside a branch and across its border."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.inner, self.outer = nn.Conv2d(2, 3, 1), nn.Linear(48, 5), nn.Linear(48, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        flat = x.flatten(1)
        return torch.cond(
            x.sum() > 0,
            lambda x, flat: self.inner(self.conv(x[:, :2]).flatten(1)),
            lambda x, flat: self.outer(flat),
            (x, flat),
        )


def test_flattening_in_branches() -> None:
    x = noise(2, 2, 4, 4)
    check_module(Flattening(), x, others=[[-x], [noise(3, 2, 4, 4, seed=3)]])


class Attending(nn.Module):
    """Composite layers inside a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return (self.attention(x, x, x)[0] + self.encoder(x)).contiguous()

        return torch.cond(x.sum() > 0, attend, lambda x: x * 0.5, (x,))


def test_composite_layers_in_branches() -> None:
    x = noise(2, 5, 8).abs()
    check_module(Attending(), x, others=[[-x]], dynamic="none")
