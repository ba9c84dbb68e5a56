"""Recurrent layers, each direction of each layer one LSTM, GRU or RNN node.

torch packs the gates as i,f,g,o (LSTM) and r,z,n (GRU); ONNX wants i,o,f,c and z,r,h. The weights stay the model's
own parameters, re-ordered by Slice and Concat, so that they are carried as parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.errors import UnsupportedError

Value = ir.Value
_ORDER = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}


def _gates(op: Builder, weight: Value, order: list[int]) -> Value:
    """The rows of `weight` with its gates in ONNX's order, and a direction axis in front."""
    if order == [0]:
        return op.Unsqueeze(weight, [0])
    size = int(weight.shape[0]) // len(order)
    parts = [op.Slice(weight, [gate * size], [(gate + 1) * size], [0], [1]) for gate in order]
    return op.Unsqueeze(op.Concat(*parts, axis=0), [0])


def _weights(op: Builder, kind: str, params: Sequence[Value], has_biases: bool) -> tuple[Value, Value, Value | None]:
    order = _ORDER[kind]
    w, r = _gates(op, params[0], order), _gates(op, params[1], order)
    if not has_biases:
        return w, r, None
    return w, r, op.Concat(_gates(op, params[2], order), _gates(op, params[3], order), axis=1)


def _layers(
    op: Builder,
    kind: str,
    x: Value,
    states: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
    **attributes: Any,
) -> tuple[Value, ...]:
    """All layers; (sequence output, final states…), states stacked over layers and directions as torch does."""
    per_cell = 4 if has_biases else 2
    directions = 2 if bidirectional else 1
    if len(params) != per_cell * directions * num_layers:
        raise UnsupportedError(f"{kind} with projections (proj_size): ONNX has none; use a Linear layer after it")
    if len(x.shape) == 2:
        raise UnsupportedError(f"{kind} of a sequence without a batch axis; unsqueeze it first")
    if batch_first:
        x = op.Transpose(x, perm=[1, 0, 2])
    hidden = int(params[1].shape[1])
    finals: list[list[Value]] = [[] for _ in states]
    for layer in range(num_layers):
        cells = [layer * directions + d for d in range(directions)]
        weights = [_weights(op, kind, params[c * per_cell : (c + 1) * per_cell], has_biases) for c in cells]
        w, r, b = (_joined(op, [group[i] for group in weights]) for i in range(3))
        initial = [
            op.Slice(state, [cells[0]], [cells[0] + directions], [0], [1]) if num_layers > 1 else state
            for state in states
        ]
        y, *last = getattr(op, kind)(
            x,
            w,
            r,
            b,
            None,
            *initial,
            hidden_size=hidden,
            direction="bidirectional" if bidirectional else "forward",
            outputs=1 + len(states),
            **attributes,
        )
        for final, value in zip(finals, last, strict=True):
            final.append(value)
        y = op.Transpose(y, perm=[0, 2, 1, 3])
        x = op.Reshape(y, [0, 0, directions * hidden])
        if dropout and layer < num_layers - 1:
            x = op.Dropout(x, op.constant(dropout, ir.DataType.FLOAT))
    if batch_first:
        x = op.Transpose(x, perm=[1, 0, 2])
    stacked = [final[0] if len(final) == 1 else op.Concat(*final, axis=0) for final in finals]
    return (x, *stacked)


def _joined(op: Builder, values: Sequence[Value | None]) -> Value | None:
    if values[0] is None:
        return None
    return values[0] if len(values) == 1 else op.Concat(*values, axis=0)


@aten("lstm.input")
def lstm(
    op: Builder,
    x: Value,
    states: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    return _layers(op, "LSTM", x, states, params, has_biases, num_layers, dropout, bidirectional, batch_first)


@aten("gru.input")
def gru(
    op: Builder,
    x: Value,
    state: Value,
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """torch applies the reset gate after the recurrent product: linear_before_reset."""
    return _layers(
        op,
        "GRU",
        x,
        [state],
        params,
        has_biases,
        num_layers,
        dropout,
        bidirectional,
        batch_first,
        linear_before_reset=1,
    )


def _rnn(name: str, activation: str) -> None:
    def rule(
        op: Builder,
        x: Value,
        state: Value,
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Value, ...]:
        activations = [activation] * (2 if bidirectional else 1)
        return _layers(
            op,
            "RNN",
            x,
            [state],
            params,
            has_biases,
            num_layers,
            dropout,
            bidirectional,
            batch_first,
            activations=activations,
        )

    aten(name)(rule)


_rnn("rnn_tanh.input", "Tanh")
_rnn("rnn_relu.input", "Relu")


@aten("lstm_cell")
def lstm_cell(
    op: Builder,
    x: Value,
    states: Sequence[Value],
    w: Value,
    r: Value,
    b_w: Value | None = None,
    b_r: Value | None = None,
) -> tuple[Value, Value]:
    """One step, as arithmetic: the cell keeps its four parameters."""
    gates = op.Add(op.Gemm(x, w, b_w, transB=1), op.Gemm(states[0], r, b_r, transB=1))
    i, f, g, o = op.Split(gates, axis=1, num_outputs=4, outputs=4)
    cell = op.Add(op.Mul(op.Sigmoid(f), states[1]), op.Mul(op.Sigmoid(i), op.Tanh(g)))
    return op.Mul(op.Sigmoid(o), op.Tanh(cell)), cell


@aten("gru_cell")
def gru_cell(
    op: Builder, x: Value, state: Value, w: Value, r: Value, b_w: Value | None = None, b_r: Value | None = None
) -> Value:
    from_input = op.Split(op.Gemm(x, w, b_w, transB=1), axis=1, num_outputs=3, outputs=3)
    from_state = op.Split(op.Gemm(state, r, b_r, transB=1), axis=1, num_outputs=3, outputs=3)
    reset = op.Sigmoid(op.Add(from_input[0], from_state[0]))
    update = op.Sigmoid(op.Add(from_input[1], from_state[1]))
    new = op.Tanh(op.Add(from_input[2], op.Mul(reset, from_state[2])))
    return op.Add(new, op.Mul(update, op.Sub(state, new)))


def _simple_cell(name: str, activation: str) -> None:
    def rule(
        op: Builder, x: Value, state: Value, w: Value, r: Value, b_w: Value | None = None, b_r: Value | None = None
    ) -> Value:
        return getattr(op, activation)(op.Add(op.Gemm(x, w, b_w, transB=1), op.Gemm(state, r, b_r, transB=1)))

    aten(name)(rule)


_simple_cell("rnn_tanh_cell", "Tanh")
_simple_cell("rnn_relu_cell", "Relu")
