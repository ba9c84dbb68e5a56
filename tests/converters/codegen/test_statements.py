"""Statements that are shorter than what they come from."""

from __future__ import annotations

import torch
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise, port_of, randomized


class Classifier(nn.Module):
    """A global pool and a flatten, as networks end."""

    def __init__(self, pool: nn.Module, flatten: nn.Module) -> None:
        super().__init__()
        self.conv, self.pool, self.flatten, self.fc = nn.Conv2d(3, 4, 1), pool, flatten, nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.flatten(self.pool(self.conv(x))))


class Pooled(nn.Module):
    """A pool in a class of its own, which gives what its source gives."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3), keepdim=True)


def test_a_global_pool_and_its_flatten_are_one_mean() -> None:
    net = Classifier(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    source = check_module(net, noise(2, 3, 5, 6), others=[(noise(2, 3, 4, 9),)])
    assert "ops.mean(self.function_conv(x), axis=(1, 2))" in source.replace("self.conv", "self.function_conv")
    assert "reshape" not in source and "keepdims" not in source


def test_it_is_two_where_a_class_gives_the_one() -> None:
    source = check_module(Classifier(Pooled(), nn.Flatten()), noise(2, 3, 5, 6), others=[(noise(2, 3, 4, 9),)])
    assert "keepdims=True" in source


def test_it_is_two_where_something_else_reads_the_pool() -> None:
    class Both(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pooled = x.mean((2, 3), keepdim=True)
            return torch.flatten(pooled, 1)[:, :, None, None] + pooled

    assert "keepdims=True" in check_module(Both(), noise(2, 3, 5, 6))


def test_a_flatten_that_keeps_an_axis_more_is_no_mean() -> None:
    class Rows(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(3, keepdim=True).flatten(1)

    check_module(Rows(), noise(2, 3, 5, 6), dynamic="none")
    check_module(Rows(), noise(2, 3, 1, 6), dynamic="none")


class Positions(nn.Module):
    """Numbers that count on, and some that do not."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 3)
        for name, numbers in {
            "row": torch.arange(12)[None],
            "column": torch.arange(2, 14)[:, None],
            "steps": torch.arange(30, 6, -2),
            "broken": torch.tensor([0, 1, 2, 4, 5, 6]),
        }.items():
            self.register_buffer(name, numbers, persistent=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = (self.row[:, : x.shape[1]], self.column, self.steps, self.broken)
        return tuple(self.table(part) * x.mean() for part in parts)


def test_positions_are_counted() -> None:
    source = check_module(Positions(), noise(2, 5), others=[(noise(2, 9),)])
    for written in ("ops.arange(12, ", "ops.arange(2, 14, ", "ops.arange(30, 6, -2, ", "ops.array([0, 1, 2, 4, 5, 6]"):
        assert written in source, source


def test_training_is_handed_on_by_keras_alone() -> None:
    """Blocks have no such argument; the model has, since fit() looks for it."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.drop(self.norm(x))

    net, x = randomized(nn.Sequential(nn.Sequential(Block(), nn.ReLU()), Block(), nn.Linear(4, 4))), noise(64, 4)
    port, generated = port_of(net, [x.float()], native=True, dynamic="none")
    assert "training" not in generated.source
    given = x.numpy()
    still, again = port(given), port(given)
    assert ((again - still).numpy() == 0).all()
    first, second = port(given, training=True), port(given, training=True)
    assert ((first - still).numpy() != 0).any() and ((second - first).numpy() != 0).any()
