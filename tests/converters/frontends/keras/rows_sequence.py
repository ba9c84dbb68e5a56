"""Recurrent layers, attention and what wraps them, with and without masks."""

from __future__ import annotations

from typing import Any

from keras import layers

from tests.converters.frontends.keras.cases import flags, floats, layer

STEPS, OPEN, SQUARE = floats(5, 3), floats(None, 3), floats(4, 4)
# Numbers in attributes of ONNX are float32.
SINGLE = 1e-7
STATE, MASK = floats(4), flags(None)


def masked(made: Any, x: Any, mask: Any) -> Any:
    """Called with the mask itself."""
    return made(x, mask=mask)


def started(made: Any, x: Any, *states: Any) -> Any:
    """Called with its first states."""
    return made(x, initial_state=list(states))


def _plain(kind: Any, states: int) -> list[Any]:
    return [
        layer(lambda: kind(4), OPEN),
        layer(lambda: kind(4, return_sequences=True, go_backwards=True), STEPS),
        layer(lambda: kind(4, return_sequences=True, return_state=True, use_bias=False), OPEN),
        layer(lambda: kind(4, go_backwards=True, return_state=True), SQUARE),
        layer(lambda: kind(4, activation="relu"), STEPS),
        layer(lambda: kind(4, return_state=True), OPEN, *[STATE] * states, call=started),
        layer(lambda: kind(4), OPEN, MASK, call=masked),
        layer(lambda: kind(4, return_sequences=True, return_state=True), OPEN, MASK, call=masked),
        layer(lambda: kind(4, return_sequences=True, go_backwards=True), OPEN, MASK, call=masked),
        layer(lambda: kind(4, return_sequences=True, zero_output_for_mask=True), OPEN, MASK, call=masked),
        layer(lambda: kind(4, activation="sigmoid", return_sequences=True), STEPS),
    ]


ROWS = {
    "LSTM": [
        *_plain(layers.LSTM, 2),
        layer(lambda: layers.LSTM(4, recurrent_activation="hard_sigmoid", return_sequences=True), OPEN, rtol=SINGLE),
        layer(lambda: layers.LSTM(4, unit_forget_bias=False, unroll=True), STEPS),
    ],
    "GRU": [
        *_plain(layers.GRU, 1),
        layer(lambda: layers.GRU(4, reset_after=False, return_sequences=True), OPEN),
        layer(lambda: layers.GRU(4, reset_after=False), OPEN, MASK, call=masked),
    ],
    "SimpleRNN": _plain(layers.SimpleRNN, 1),
    "Bidirectional": [
        *(
            layer(lambda mode=mode: layers.Bidirectional(layers.LSTM(4, return_sequences=True), merge_mode=mode), OPEN)
            for mode in ("concat", "sum", "ave", "mul", None)
        ),
        *(
            layer(lambda mode=mode: layers.Bidirectional(layers.GRU(4), merge_mode=mode), STEPS)
            for mode in ("concat", "sum", None)
        ),
        layer(lambda: layers.Bidirectional(layers.LSTM(4, return_state=True)), OPEN),
        layer(lambda: layers.Bidirectional(layers.GRU(4, return_sequences=True)), OPEN, MASK, call=masked),
        layer(lambda: layers.Bidirectional(layers.LSTM(4), backward_layer=layers.GRU(4, go_backwards=True)), OPEN),
    ],
    "RNN": [
        layer(lambda: layers.RNN(layers.LSTMCell(4), return_sequences=True), STEPS),
        layer(lambda: layers.RNN([layers.GRUCell(4), layers.SimpleRNNCell(3)]), STEPS),
        layer(lambda: layers.RNN(layers.GRUCell(4)), STEPS, flags(5), call=masked),
    ],
    "ConvLSTM1D": [layer(lambda: layers.ConvLSTM1D(3, 2, padding="same"), floats(3, 6, 2))],
    "ConvLSTM2D": [
        layer(lambda: layers.ConvLSTM2D(3, 3, padding="same", return_sequences=True), floats(3, 5, 6, 2)),
        layer(lambda: layers.ConvLSTM2D(3, 2, strides=2, return_state=True), floats(3, 5, 6, 2)),
    ],
    "ConvLSTM3D": [layer(lambda: layers.ConvLSTM3D(2, 2), floats(2, 3, 4, 3, 2))],
    "TimeDistributed": [
        layer(lambda: layers.TimeDistributed(layers.Dense(4)), OPEN),
        layer(lambda: layers.TimeDistributed(layers.Conv2D(3, 2)), floats(4, 5, 5, 2)),
    ],
    "MultiHeadAttention": [
        layer(lambda: layers.MultiHeadAttention(2, 3), OPEN, call=lambda made, x: made(x, x), rtol=SINGLE),
        layer(lambda: layers.MultiHeadAttention(2, 3, dropout=0.2), OPEN, call=lambda made, x: made(x, x), rtol=SINGLE),
        layer(
            lambda: layers.MultiHeadAttention(2, 3, value_dim=5, output_shape=6, use_bias=False),
            OPEN,
            floats(6, 4),
            call=lambda made, x, y: made(x, y),
            rtol=SINGLE,
        ),
        layer(
            lambda: layers.MultiHeadAttention(2, 3),
            OPEN,
            call=lambda made, x: made(x, x, use_causal_mask=True),
            rtol=SINGLE,
        ),
        layer(
            lambda: layers.MultiHeadAttention(2, 3),
            floats(5, 3),
            floats(6, 3),
            flags(5, 6),
            call=lambda made, x, y, m: made(x, y, attention_mask=m),
            rtol=SINGLE,
        ),
        layer(
            lambda: layers.MultiHeadAttention(2, 3, dropout=0.1),
            floats(5, 3),
            floats(6, 3),
            flags(5, 6),
            call=lambda made, x, y, m: made(x, y, attention_mask=m),
            rtol=SINGLE,
        ),
        layer(
            lambda: layers.MultiHeadAttention(2, 3),
            floats(4, 4),
            call=lambda made, x: made(x, x, return_attention_scores=True),
            rtol=SINGLE,
        ),
    ],
    "GroupQueryAttention": [
        layer(lambda: layers.GroupQueryAttention(3, 4, 2), OPEN, call=lambda made, x: made(x, x), rtol=SINGLE),
        layer(
            lambda: layers.GroupQueryAttention(3, 4, 2),
            OPEN,
            call=lambda made, x: made(x, x, use_causal_mask=True),
            rtol=SINGLE,
        ),
    ],
    "Attention": [
        layer(lambda: layers.Attention(), OPEN, floats(6, 3), call=lambda made, q, v: made([q, v])),
        layer(
            lambda: layers.Attention(use_scale=True, score_mode="concat"),
            OPEN,
            floats(6, 3),
            call=lambda made, q, v: made([q, v]),
        ),
        layer(
            lambda: layers.Attention(),
            floats(5, 3),
            floats(6, 3),
            flags(5),
            flags(6),
            call=lambda made, q, v, m, n: made([q, v], mask=[m, n]),
        ),
        layer(lambda: layers.Attention(), SQUARE, call=lambda made, x: made([x, x], use_causal_mask=True)),
    ],
    "AdditiveAttention": [
        layer(lambda: layers.AdditiveAttention(), OPEN, floats(6, 3), call=lambda made, q, v: made([q, v])),
    ],
}
