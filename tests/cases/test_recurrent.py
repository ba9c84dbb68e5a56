"""Recurrent layers: the order of gates, two biases, the last step, and who stands where."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from porter.errors import PorterError
from tests.converters.targets.keras.modules import check_module, noise

KINDS = (nn.GRU, nn.LSTM, nn.RNN)


class Last(nn.Module):
    """What a classifier reads of a recurrent layer: `read` of its results."""

    def __init__(self, layer: nn.Module, read: Any) -> None:
        super().__init__()
        self.rnn, self.read = layer, read
        self.head = nn.Linear(layer.hidden_size * (1 + layer.bidirectional), 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.read(self.rnn(x)))


def _hidden(state: Any) -> torch.Tensor:
    return state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize("kind", KINDS)
def test_gates_keep_their_order(kind: Any) -> None:
    """Copied by hand, an LSTM worked and a GRU did not: torch orders its gates r, z, n and Keras z, r, h, and one of
    the GRU's biases lies inside of its reset gate.
    """
    source = check_module(
        Last(kind(5, 6, 2, batch_first=True), lambda y: y[0]), noise(2, 4, 5), others=[[noise(3, 7, 5)]]
    )
    assert source.count(f"layers.{'SimpleRNN' if kind is nn.RNN else kind.__name__}(") <= 2, source


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_state_in_its_several_spellings(kind: Any) -> None:
    """The last step of the backward direction is that of the first element: y[:, -1] is not the final state."""
    layer = kind(3, 4, batch_first=True, bidirectional=True)
    spellings = [
        lambda y: torch.cat([_hidden(y[1])[-2], _hidden(y[1])[-1]], dim=1),
        lambda y: y[0][:, -1],
        lambda y: _hidden(y[1]).transpose(0, 1).flatten(1),
        lambda y: torch.cat([y[0][:, -1, :4], y[0][:, 0, 4:]], dim=1),
    ]

    class Every(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = layer
            self.heads = nn.ModuleList(nn.Linear(8, 3) for _ in spellings)

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [head(read(self.rnn(x))) for head, read in zip(self.heads, spellings, strict=True)]

    check_module(Every(), noise(2, 5, 3), others=[[noise(3, 4, 3)]], gradients=False)


def test_the_batch_is_the_second_axis() -> None:
    """Sequences (time, batch, features) came out right at the traced batch only."""
    net = Last(nn.LSTM(4, 4), lambda y: y[0][-1])
    check_module(net, noise(4, 4, 4), others=[[noise(6, 1, 4)], [noise(3, 8, 4)]], gradients=False)


def test_a_state_that_is_made_of_the_batch_size() -> None:
    """`torch.zeros(layers, x.size(0), hidden)` was a constant of the traced batch."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(3, 4, 2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            zeros = torch.zeros(2, x.size(0), 4, dtype=x.dtype)
            return self.rnn(x, (zeros, zeros + 0.5))[0]

    check_module(Net(), noise(2, 5, 3), others=[[noise(1, 4, 3)]], gradients=False)


def test_cells_in_a_loop() -> None:
    """Decoders that call a cell step by step."""

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.lstm = nn.GRUCell(3, 4), nn.LSTMCell(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = c = g = torch.zeros(x.size(0), 4, dtype=x.dtype)
            steps = []
            for step in range(3):
                g = self.gru(x[:, step], g)
                h, c = self.lstm(g, (h, c))
                steps.append(h)
            return torch.stack(steps, dim=1)

    check_module(Decoder(), noise(2, 3, 3), others=[[noise(5, 3, 3)]], gradients=False)


def test_packed_sequences_are_refused_and_not_ignored() -> None:
    """A port that ran over the padding gave other final states for every shorter sequence."""

    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]

    with pytest.raises(PorterError, match="pack_padded_sequence"):
        check_module(Packed(), noise(3, 5, 3), torch.tensor([5, 3, 1]))
