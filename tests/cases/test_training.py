"""How training goes wrong after a port: each a small model, five float64 steps on both sides.

Momentum lost in conversion, running statistics that never move, biases summed so that they move half as far, a padding
row that starts to train: none of these shows in a forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import porter
from porter.runners.keras_forms import keras_precision
from tests.porter.test_training import assert_follows, trained_pair


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with keras_precision("float64"):
        yield


def follows(model: nn.Module, x: np.ndarray, folder: Path, *, still: tuple[str, ...] = ()) -> None:
    """Train both sides and compare; every parameter moves, but for those named in `still`."""
    inputs = {"x" if not isinstance(model, nn.Sequential) else "input": x}
    port = porter.port(model, inputs, out=folder / "port")
    start = {name: tensor.double().numpy().copy() for name, tensor in model.state_dict().items()}
    want, got, _ = trained_pair(model, inputs, port)
    assert_follows(want, got, start)
    unmoved = {n for n, tensor in model.named_parameters() if np.array_equal(tensor.detach().numpy(), start[n])}
    # A bias in front of a BatchNorm has no gradient but rounding.
    assert set(still) <= unmoved <= {*still, "0.bias"}


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


@pytest.mark.parametrize("momentum", [0.1, 0.01, 0.5, 1.0])
def test_statistics_move_with_the_source_s_momentum(momentum: float, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 2, padding=1), nn.BatchNorm2d(2, momentum=momentum), nn.ReLU())
    follows(model, noise(4, 1, 2, 2), tmp_path)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_statistics_of_every_rank(rank: int, tmp_path: Path) -> None:
    """The numbers of a channel are all but the channels' own axis; the scale is small, so that epsilon counts."""
    follows(nn.Sequential(NORMS[rank](4)), noise(*(4,) * (rank + 2)) * 1e-2, tmp_path)


def test_statistics_of_features(tmp_path: Path) -> None:
    follows(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), noise(5, 3), tmp_path)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_both_biases_get_the_whole_gradient(kind: type, bidirectional: bool, tmp_path: Path) -> None:
    """Summed into one, they move half as far."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = kind(3, 4, 2, batch_first=True, bidirectional=bidirectional)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.rnn(x)[0]

    torch.manual_seed(1)
    follows(Net(), noise(2, 5, 3), tmp_path)


class Tied(nn.Module):
    """A head that shares the embedding's matrix: the padding row trains through the head alone."""

    def __init__(self, *, tied: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4, padding_idx=0)
        self.head = nn.Linear(4, 10, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(x))


@pytest.mark.parametrize("tied", [True, False])
def test_the_padding_row_trains_through_the_head_alone(tied: bool, tmp_path: Path) -> None:
    follows(Tied(tied=tied), np.array([[0, 3, 9], [1, 0, 2]]), tmp_path)


def frozen(model: nn.Module, names: tuple[str, ...]) -> nn.Module:
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in names)
    return model


FROZEN: list[tuple[Callable[[], nn.Module], tuple[str, ...], tuple[int, ...]]] = [
    (lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)), ("0.weight", "0.bias"), (4, 3)),
    (lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)), ("0.bias",), (4, 3)),
    (lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU()), ("1.weight", "1.bias"), (4, 2, 3, 3)),
    (lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU()), ("1.weight",), (4, 2, 3, 3)),
]


@pytest.mark.parametrize(("model", "names", "shape"), FROZEN)
def test_what_is_frozen_stays_and_the_rest_moves(
    model: Callable[[], nn.Module], names: tuple[str, ...], shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Freezing the scale of a BatchNorm does not stop its statistics in torch; freezing the layer does in Keras."""
    follows(frozen(model(), names), noise(*shape), tmp_path, still=names)
