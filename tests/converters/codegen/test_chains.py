"""Chains of layers: groups that repeat are loops, layers keep the source's numbers, a whole model needs no class."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import keras
import numpy as np
import pytest
import torch
from torch import nn

import porter
from porter import checkpoints
from tests.converters.targets.keras.modules import check_module, noise, randomized


def vgg(*stages: tuple[int, int], norm: bool = True) -> nn.Sequential:
    """Stages of (width, convolutions), each with a pool behind it."""
    layers: list[nn.Module] = []
    channels = 3
    for width, convolutions in stages:
        for _ in range(convolutions):
            layers += [nn.Conv2d(channels, width, 3, padding=1), *([nn.BatchNorm2d(width)] if norm else []), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


def discriminator() -> nn.Sequential:
    """Padded convolutions of stride 2, for which Keras needs a layer more."""
    layers: list[nn.Module] = [nn.Conv2d(3, 4, 4, 2, 1), nn.LeakyReLU(0.25)]
    for channels in (4, 8, 16):
        layers += [
            nn.Conv2d(channels, 2 * channels, 4, 2, 1, bias=False),
            nn.BatchNorm2d(2 * channels),
            nn.LeakyReLU(0.25),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, 4, 3, 2, 1))


# name -> (chain, size of the image, headers of the loops)
CHAINS = {
    "counts that differ": (vgg((4, 1), (6, 2), (8, 3)), 16, [
        "for filters, count in ((4, 1), (6, 2), (8, 3)):", "for _ in range(count):"]),
    "one count": (vgg((4, 2), (6, 2), (8, 2), (10, 2)), 16, [
        "for filters in (4, 6, 8, 10):", "for _ in range(2):"]),
    "counts alone": (vgg((4, 3), (4, 2), (4, 1), norm=False), 16, [
        "for count in (3, 2, 1):", "for _ in range(count):"]),
    "equal stages": (vgg((4, 1), (4, 1), (4, 1)), 16, ["for _ in range(3):"]),
    "added layers between": (discriminator(), 32, ["for filters in (8, 16, 32):"]),
    "two stages are written out": (vgg((4, 1), (6, 1)), 16, []),
    "too much differs": (
        nn.Sequential(*(layer for width, kernel in ((4, 1), (6, 3), (8, 5)) for layer in (
            nn.LazyConv2d(width, kernel, padding=kernel // 2, bias=width == 6), nn.Dropout(width / 100)))), 8, []),
}  # fmt: skip


@pytest.mark.parametrize(("chain", "size", "loops"), CHAINS.values(), ids=CHAINS)
def test_groups_that_repeat_are_loops(chain: nn.Sequential, size: int, loops: list[str]) -> None:
    chain(torch.zeros(1, 3, size, size))
    source = check_module(chain, noise(2, 3, size, size), rtol=1e-9, atol=1e-9)
    classes = source[: source.index("def build")]
    assert [line.strip() for line in classes.splitlines() if line.strip().startswith("for ")] == loops


class Held(nn.Module):
    def __init__(self, chain: nn.Module) -> None:
        super().__init__()
        self.chain = chain

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.chain(x)


class Chain(nn.Sequential):
    """A class of the author's that is nothing but a chain."""

    def __init__(self, stride: int) -> None:
        super().__init__(nn.Conv2d(3, 3, 3, stride, 1), nn.BatchNorm2d(3), nn.ReLU())


def source_paths(module: nn.Module) -> set[str]:
    """The modules that hold tensors."""
    return {name.rpartition(".")[0] for name in module.state_dict()}


NUMBERED = {
    "a Sequential": Held(discriminator()),
    "a whole model": discriminator(),
    "chains of an author's class": Held(nn.Sequential(Chain(2), Chain(1), Chain(2))),
    "a list of chains": Held(nn.Sequential(nn.Sequential(Chain(2), nn.MaxPool2d(3, 2, 1)), Chain(1))),
}


@pytest.mark.parametrize("module", NUMBERED.values(), ids=NUMBERED)
def test_layers_keep_the_numbers_of_the_source(module: nn.Module, tmp_path: Path) -> None:
    """In the weight map, in the manifest, and where porter and the port look variables up."""
    module, x = randomized(module), noise(2, 3, 32, 32).float()
    port = porter.port(module, (x,), out=tmp_path / "port")
    assert {name.rpartition(".")[0] for name in port.weight_map} == source_paths(module)
    assert all(entry["path"] == entry["target"] for entry in port.manifest["modules"])
    model, state = port.load(), {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    for name, entry in port.weight_map.items():
        (source,) = porter.converters.weights.from_json(entry["expression"]).sources()
        found = keras.ops.convert_to_numpy(checkpoints.variable(model, name))
        np.testing.assert_allclose(np.sort(found.ravel()), np.sort(state[source].ravel()), err_msg=name)
        assert name.rpartition(".")[0] == source.rpartition(".")[0]
    assert porter.verify(module, port, (x,), draws=1).passed


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.fc(x)


WHOLE = {
    "layers": (nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 3)), noise(2, 4).float()),
    "blocks": (nn.Sequential(Residual(), Residual(), nn.Sequential(nn.Tanh(), nn.Linear(4, 3))), noise(2, 4).float()),
    "whole numbers": (nn.Sequential(nn.Embedding(9, 4), Residual(), nn.ReLU()), torch.randint(0, 9, (2, 5))),
    "an author's class": (Chain(2), noise(2, 3, 8, 8).float()),
}


@pytest.mark.parametrize(("module", "x"), WHOLE.values(), ids=WHOLE)
def test_a_model_that_is_a_chain_is_one_in_keras(module: nn.Module, x: torch.Tensor, tmp_path: Path) -> None:
    module = randomized(module)
    port = porter.port(module, (x,), out=tmp_path / "port")
    assert "(keras.Model)" not in port.source and "    model = keras.Sequential(" in port.source
    assert porter.verify(module, port, (x,), draws=1).passed
    model, given = port.load(), port.to_target((x,))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(given[0], verbose=0), model.predict(given[0], verbose=0))
    assert len(port.module().build(weights=False).weights) == len(model.weights)


def test_a_chain_with_names_or_frozen_layers_keeps_its_class(tmp_path: Path) -> None:
    named = nn.Sequential(OrderedDict(first=nn.Linear(4, 5), act=nn.ReLU(), last=nn.Linear(5, 3)))
    port = porter.port(named.eval(), (noise(2, 4).float(),), out=tmp_path / "named")
    assert {name.partition(".")[0] for name in port.weight_map} == {"first", "last"}
    frozen = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    frozen[0].requires_grad_(False)
    model = porter.port(frozen.eval(), (noise(2, 4).float(),), out=tmp_path / "frozen").load()
    assert len(model.trainable_variables) == 2
