"""Recurrent layers that PyTorch lacks, and the results of those that it has."""

from __future__ import annotations

import torch
from torch import nn


def in_input_order(result, dim):
    """What a recurrent layer gives that ran backwards: its sequence turned to the order of the input, its states."""
    sequence, states = result
    return sequence.flip(dim), *(states if isinstance(states, tuple) else (states,))


class PlainRecurrent(nn.Module):
    """A recurrent layer with functions of one's own, or whose reset gate acts before the recurrent product.

    Takes, holds and gives what PyTorch's layer of one level does.
    """

    gates, defaults = 1, ("tanh",)

    def __init__(self, input_size, hidden_size, bias=True, batch_first=False, bidirectional=False, activations=None):
        super().__init__()
        self.hidden_size = hidden_size
        self.batch_first = batch_first
        self.suffixes = ("l0", "l0_reverse") if bidirectional else ("l0",)
        self.activations = [getattr(torch, n, None) or getattr(nn.functional, n) for n in activations or self.defaults]
        rows = self.gates * hidden_size
        shapes = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
        for suffix in self.suffixes:
            for name, shape in shapes.items():
                drawn = nn.init.uniform_(torch.empty(shape), -(hidden_size**-0.5), hidden_size**-0.5)
                self.register_parameter(f"{name}_{suffix}", nn.Parameter(drawn))

    def forward(self, x, states=None):
        x = x.transpose(0, 1) if self.batch_first else x
        results = []
        for direction, suffix in enumerate(self.suffixes):
            w, u = getattr(self, f"weight_ih_{suffix}"), getattr(self, f"weight_hh_{suffix}")
            b, c = getattr(self, f"bias_ih_{suffix}", None), getattr(self, f"bias_hh_{suffix}", None)
            state = self.initial(x, states, direction)
            steps = nn.functional.linear(x, w, b)
            outputs = []
            for step in steps.flip(0) if direction else steps:
                state = self.step(step, state, u, c)
                outputs.append(state[0])
            outputs = torch.stack(outputs[::-1] if direction else outputs)
            results.append((outputs, state))
        sequence = torch.cat([outputs for outputs, _ in results], dim=-1)
        last = tuple(torch.stack(each) for each in zip(*(state for _, state in results), strict=True))
        return sequence.transpose(0, 1) if self.batch_first else sequence, last if len(last) > 1 else last[0]

    def initial(self, x, states, direction):
        if states is None:
            count = 2 if self.gates == 4 else 1
            return [x.new_zeros(x.shape[1], self.hidden_size) for _ in range(count)]
        return [state[direction] for state in (states if isinstance(states, tuple) else (states,))]

    def step(self, given, state, u, c):
        return [self.activations[0](given + nn.functional.linear(state[0], u, c))]


class PlainRNN(PlainRecurrent):
    """`nn.RNN` with another function."""


class PlainLSTM(PlainRecurrent):
    """`nn.LSTM` with other functions: of the gates, of the candidate, of the cell."""

    gates, defaults = 4, ("sigmoid", "tanh", "tanh")

    def step(self, given, state, u, c):
        gate, candidate, last = self.activations
        i, f, g, o = (given + nn.functional.linear(state[0], u, c)).chunk(4, dim=-1)
        cell = gate(f) * state[1] + gate(i) * candidate(g)
        return [gate(o) * last(cell), cell]


class PlainGRU(PlainRecurrent):
    """`nn.GRU` with other functions, of the gates and of the candidate, or with `reset_after=False`."""

    gates, defaults = 3, ("sigmoid", "tanh")

    def __init__(self, input_size, hidden_size, reset_after=True, **arguments):
        super().__init__(input_size, hidden_size, **arguments)
        self.reset_after = reset_after

    def step(self, given, state, u, c):
        gate, candidate = self.activations
        (hidden,) = state
        size = self.hidden_size
        own = nn.functional.linear(hidden, u[: 2 * size], None if c is None else c[: 2 * size])
        reset, update = gate(given[:, : 2 * size] + own).chunk(2, dim=-1)
        read = hidden if self.reset_after else reset * hidden
        new = nn.functional.linear(read, u[2 * size :], None if c is None else c[2 * size :])
        new = candidate(given[:, 2 * size :] + (reset * new if self.reset_after else new))
        return [update * hidden + (1 - update) * new]


class Padded:
    """Makes a recurrent layer one of sequences of several lengths, each padded at its end.

    Takes the lengths (batch,) after the sequences. Gives zeros behind the ends, and the states at the ends.
    """

    def forward(self, x, lengths, states=None):
        time, batch = (1, 0) if self.batch_first else (0, 1)
        if states is None:
            rows = self.num_layers * (2 if self.bidirectional else 1)
            zeros = x.new_zeros(rows, x.shape[batch], self.hidden_size)
            states = (zeros, zeros) if self.mode == "LSTM" else zeros
        # An empty sequence cannot be packed: its first step is made and not looked at.
        counts = lengths.clamp(min=1).long().cpu()
        packed = nn.utils.rnn.pack_padded_sequence(x, counts, self.batch_first, enforce_sorted=False)
        sequence, last = super().forward(packed, states)
        sequence, _ = nn.utils.rnn.pad_packed_sequence(sequence, self.batch_first, total_length=x.shape[time])
        filled = (lengths > 0).unsqueeze(-1)
        sequence = torch.where(filled.unsqueeze(time), sequence, 0)
        if self.mode == "LSTM":
            return sequence, tuple(torch.where(filled, a, b) for a, b in zip(last, states, strict=True))
        return sequence, torch.where(filled, last, states)


class PaddedRNN(Padded, nn.RNN):
    """`nn.RNN` of padded sequences."""


class PaddedLSTM(Padded, nn.LSTM):
    """`nn.LSTM` of padded sequences."""


class PaddedGRU(Padded, nn.GRU):
    """`nn.GRU` of padded sequences."""


class Masked(Padded):
    """Makes a recurrent layer one that skips the steps that a mask (batch, time) leaves out.

    Such a step keeps the state, and gives the output of the last step before it that was not, or `zeros`. The states
    after the last step are right with `ends` alone.
    """

    def __init__(self, *arguments, zeros=False, ends=False, **named):
        super().__init__(*arguments, **named)
        self.zeros = zeros
        self.ends = ends

    def forward(self, x, mask, states=None):
        time, steps = (1, mask) if self.batch_first else (0, mask.t())
        # The steps that count come first, in their order; what is made of the others is not read.
        order = (~steps).int().argsort(dim=time, stable=True)
        x = x.take_along_dim(order.unsqueeze(-1), time)
        if self.ends:
            sequence, last = super().forward(x, steps.sum(time), states)
        else:
            sequence, last = super(Padded, self).forward(x, states)
        seen = steps.cumsum(time)
        sequence = sequence.take_along_dim((seen - 1).clamp(min=0).unsqueeze(-1), time)
        return torch.where((steps if self.zeros else seen > 0).unsqueeze(-1), sequence, 0), last


class MaskedRNN(Masked, nn.RNN):
    """`nn.RNN` under a mask."""


class MaskedLSTM(Masked, nn.LSTM):
    """`nn.LSTM` under a mask."""


class MaskedGRU(Masked, nn.GRU):
    """`nn.GRU` under a mask."""
