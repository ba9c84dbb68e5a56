"""Normalisation: over which axes, with which epsilon, with which momentum."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.cases.pairs import check, noise, port
from tests.cases.steps import train

BATCH = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
INSTANCE = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}
# The second has every dimension equal.
SIZES = [(2, 6, 5, 7, 4), (4, 4, 4, 4, 4)]


@pytest.mark.parametrize(("eps", "momentum"), [(1e-5, 0.1), (1e-3, 0.01), (1e-12, 0.3), (0.5, 1.0)])
def test_batch_norm_keeps_epsilon_and_momentum(eps: float, momentum: float) -> None:
    """Keras' defaults 1e-3 and 0.99 leaked into the port, and momentum counts the other way round."""
    pair = port(nn.BatchNorm2d(4, eps=eps, momentum=momentum), noise(2, 4, 4, 4))
    pair.check([noise(2, 4, 4, 4) * 1e-2], [noise(5, 4, 3, 6) * 1e-6])
    (name,) = [name for name in pair.generated.variables if name.endswith("moving_mean")]
    layer = pair.variable(name.rpartition(".")[0])
    assert layer.epsilon == eps and abs(layer.momentum - (1 - momentum)) < 1e-15
    assert f"epsilon={eps!r}" in pair.classes or eps == 1e-3, pair.classes


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_batch_norm_of_every_rank(rank: int, size: tuple[int, ...]) -> None:
    """The channel axis is the second, also where all are equal."""
    x, y = noise(*size[: rank + 2]), noise(7, *size[1 : rank + 2])
    for affine in (True, False):
        check(BATCH[rank](size[1], affine=affine), x, others=[[y]])
    check(nn.Sequential(nn.Linear(size[1], size[1]), nn.BatchNorm1d(size[1])), x.flatten(2)[..., 0])


def test_batch_norm_without_statistics_uses_those_of_the_batch() -> None:
    """A layer that tracks nothing normalises by its batch in inference too."""
    norm = nn.BatchNorm2d(4, track_running_stats=False)
    check(norm, noise(4, 4, 4, 4), others=[[noise(3, 4, 2, 5)]])


@pytest.mark.parametrize("momentum", [0.1, 0.01, 0.5])
def test_statistics_move_as_in_the_source(momentum: float) -> None:
    """A momentum of 1 after the port kept the statistics where they were; no forward pass shows that."""
    net = nn.Sequential(nn.Conv2d(1, 2, 2, padding=1), nn.BatchNorm2d(2, momentum=momentum), nn.ReLU())
    train(port(net, noise(2, 1, 2, 2)), [[noise(4, 1, 2, 2, seed=s)] for s in range(5)], rate=0.01)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_statistics_of_every_rank(rank: int) -> None:
    """How many numbers a statistic is taken of: all but the channels'."""
    pair = port(BATCH[rank](4), noise(*SIZES[1][: rank + 2]))
    train(pair, [[noise(*SIZES[1][: rank + 2], seed=s) * 1e-1] for s in range(4)], rate=0.01)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_instance_norm_is_per_channel(rank: int, size: tuple[int, ...]) -> None:
    """With C = H = W the permutation was picked by trial, and picked wrongly."""
    x, y = noise(*size[: rank + 2]), noise(1, *[s + 1 if i else s for i, s in enumerate(size[1 : rank + 2])])
    for affine in (True, False):
        norm = INSTANCE[rank](size[1], affine=affine, eps=1e-4)
        check(norm, x * 1e-2, others=[[y * 1e-3]])


def test_instance_norm_between_convolutions() -> None:
    """In the port's own layout the axes are others."""
    net = nn.Sequential(nn.Conv2d(4, 4, 1), nn.InstanceNorm2d(4, affine=True), nn.Conv2d(4, 4, 1))
    source = check(net, noise(4, 4, 4, 4), others=[[noise(2, 4, 3, 7)]])
    assert "transpose" not in source, source


def test_instance_norm_with_statistics() -> None:
    """A layer that tracks statistics uses them in inference."""
    check(nn.InstanceNorm2d(4, affine=True, track_running_stats=True), noise(4, 4, 4, 4), others=[[noise(1, 4, 3, 5)]])


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("size", [(4, 4, 4, 4), (2, 4, 3, 5), (3, 4), (2, 4, 6)])
def test_group_norm(groups: int, size: tuple[int, ...]) -> None:
    """Groups are of neighbouring channels, and one group is a norm over everything but the batch."""
    for affine in (True, False):
        norm = nn.GroupNorm(groups, 4, eps=1e-4, affine=affine)
        check(norm, noise(*size), others=[[noise(5, *size[1:])]])


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 1e-3, 0.25])
def test_layer_norm_keeps_epsilon(eps: float) -> None:
    """Every block had 1e-5 for 1e-12, and only an input of low variance shows it."""
    pair = port(nn.LayerNorm(16, eps=eps), noise(2, 5, 16))
    pair.check([noise(2, 5, 16) * 1e-4], [noise(3, 1, 16) * 1e-7])
    assert f"epsilon={eps!r}" in pair.classes or eps == 1e-3, pair.classes


def test_layer_norm_forms() -> None:
    """Over several axes, without scale, without shift, and on inputs of every rank."""
    x = noise(4, 4, 4, 4)
    check(nn.LayerNorm(4), x, others=[[noise(2, 3, 5, 4)]])
    check(nn.LayerNorm((4, 4)), x, others=[[noise(2, 3, 4, 4)]])
    check(nn.LayerNorm((4, 4, 4)), x, others=[[noise(1, 4, 4, 4)]])
    check(nn.LayerNorm(4, elementwise_affine=False), x, others=[[noise(2, 3, 5, 4)]])
    check(nn.LayerNorm(4, bias=False), noise(3, 4), others=[[noise(2, 4)]])
    check(nn.Sequential(nn.Conv2d(4, 4, 1), nn.LayerNorm((4, 4, 4))), x, others=[[noise(1, 4, 4, 4)]])


@pytest.mark.parametrize("eps", [1e-6, 1e-2])
def test_rms_norm_keeps_epsilon(eps: float) -> None:
    """No mean is taken away, and epsilon lies under the root."""
    check(nn.RMSNorm(6, eps=eps), noise(2, 6, 6) * 1e-3, others=[[noise(3, 2, 6)]])
    check(nn.RMSNorm((6, 6), eps=eps, elementwise_affine=False), noise(2, 6, 6) * 1e-3)


def test_local_response_norm() -> None:
    """A window over channels, divided by its size."""
    check(nn.LocalResponseNorm(3, alpha=0.1, beta=0.5, k=1.5), noise(5, 5, 5, 5), others=[[noise(2, 5, 3, 4)]])


def test_one_large_channel() -> None:
    """An outlier of 1e4 must not hide an error in the other channels."""
    x = noise(2, 4, 8)
    x[..., 3] *= 1e4
    net = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, eps=1e-6), nn.Linear(8, 8))
    pair = port(net, x)
    pair.check([x], [torch.cat([x, -x])])
