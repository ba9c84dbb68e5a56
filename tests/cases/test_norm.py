"""Normalisation: over which axes, with which epsilon, with which momentum."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.cases.families import RANKS
from tests.converters.targets.keras.modules import Each, check_module, noise, port_of

BATCH = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
INSTANCE = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}
# The second has every dimension equal.
SIZES = [(2, 6, 5, 7, 4), (4, 4, 4, 4, 4)]


def test_batch_norm_keeps_epsilon_and_momentum() -> None:
    """Large networks drifted: Keras' defaults 1e-3 and 0.99 had leaked into the port. Momentum counts the other way
    round there, and a momentum of 1 never moves.
    """
    numbers = [(1e-5, 0.1), (1e-3, 0.01), (1e-12, 0.3), (0.5, 1.0)]
    norms = Each(*[nn.BatchNorm2d(4, eps=eps, momentum=momentum) for eps, momentum in numbers])
    source = check_module(norms, noise(2, 4, 4, 4) * 1e-2, others=[[noise(5, 4, 3, 6) * 1e-6]], rtol=1e-11)
    model, _ = port_of(norms, [noise(2, 4, 4, 4).float()], native=True, dynamic="auto")
    layers = model.children
    assert [(layer.epsilon, round(1 - layer.momentum, 12)) for layer in layers] == numbers, source


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rank", RANKS)
def test_norms_of_channels(rank: int, size: tuple[int, ...]) -> None:
    """With as many channels as rows and columns, InstanceNorm's axes were picked by trial, and picked wrongly."""
    x, y = noise(*size[: rank + 2]), noise(1, size[1], *[s + 1 for s in size[2 : rank + 2]])
    norms = [kind[rank](size[1], affine=affine, eps=1e-4) for kind in (BATCH, INSTANCE) for affine in (True, False)]
    norms.append(INSTANCE[rank](size[1], affine=True, track_running_stats=True))
    norms += [nn.GroupNorm(groups, size[1], affine=affine) for groups, affine in [(1, True), (2, True), (2, False)]]
    check_module(Each(*norms), x * 1e-1, others=[[y * 1e-2]], rtol=1e-11)


def test_norms_of_features() -> None:
    """A BatchNorm1d or GroupNorm without spatial axes."""
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.GroupNorm(2, 4))
    check_module(net, noise(4, 4), others=[[noise(7, 4)]])


def test_batch_norm_without_statistics_uses_those_of_the_batch() -> None:
    """A layer that tracks nothing normalises by its batch in inference too."""
    check_module(nn.BatchNorm2d(4, track_running_stats=False), noise(4, 4, 4, 4), others=[[noise(3, 4, 2, 5)]])


def test_norms_between_convolutions_need_no_transpose() -> None:
    norms = [nn.BatchNorm2d(4), nn.InstanceNorm2d(4, affine=True), nn.GroupNorm(2, 4)]
    net = nn.Sequential(nn.Conv2d(4, 4, 1), *norms, nn.Conv2d(4, 4, 1))
    source = check_module(net, noise(4, 4, 4, 4), others=[[noise(2, 4, 3, 7)]])
    assert "ops.transpose(" not in source, source


def test_layer_norm_keeps_epsilon() -> None:
    """Every block of a language model had 1e-5 for 1e-12, which only an input of low variance shows."""
    numbers = (1e-12, 1e-5, 1e-3, 0.25)
    norms = Each(*[nn.LayerNorm(16, eps=eps) for eps in numbers], *[nn.RMSNorm(16, eps=eps) for eps in numbers])
    check_module(norms, noise(2, 5, 16) * 1e-4, others=[[noise(3, 1, 16) * 1e-7]], rtol=1e-11, gradients=False)


def test_layer_norm_forms() -> None:
    """Over several axes, without scale, without shift, and on inputs of every rank."""
    x = noise(4, 4, 4, 4)
    plain = [nn.LayerNorm(4), nn.LayerNorm(4, elementwise_affine=False), nn.LayerNorm(4, bias=False)]
    check_module(Each(*plain, nn.LayerNorm((4, 4)), nn.LayerNorm((4, 4, 4))), x, others=[[noise(3, 4, 4, 4)]])
    check_module(Each(*plain, nn.RMSNorm(4, eps=1e-6, elementwise_affine=False)), noise(3, 4), others=[[noise(2, 4)]])
    check_module(nn.Sequential(nn.Conv2d(4, 4, 1), nn.LayerNorm((4, 4, 4))), x, others=[[noise(1, 4, 4, 4)]])


def test_one_large_channel() -> None:
    """An outlier of 1e4 must not hide an error in the other channels."""
    x = noise(2, 4, 8)
    x[..., 3] *= 1e4
    check_module(nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, eps=1e-6), nn.Linear(8, 8)), x, others=[[-x]])


@pytest.mark.parametrize("size", [(4, 4, 4, 4), (2, 6, 5, 7)])
def test_norms_over_space_and_then_channels(size: tuple[int, ...]) -> None:
    """ConvNeXt's global response norm failed at its last multiplication: a norm over height and width, a mean over
    channels, and parameters along the channels.
    """

    class ResponseNorm(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.conv = nn.Conv2d(channels, channels, 1)
            self.w, self.b = (nn.Parameter(torch.ones(1, channels, 1, 1)) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.conv(x)
            norm = torch.norm(x, 2, (2, 3), keepdim=True)
            scaled = norm / (norm.mean(1, keepdim=True) + 1e-6)
            return self.w * (x * scaled) + self.b + x

    source = check_module(ResponseNorm(size[1]), noise(*size), others=[[noise(1, *size[1:])]])
    assert "ops.transpose(" not in source, source
