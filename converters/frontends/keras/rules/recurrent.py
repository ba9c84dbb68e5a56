"""Recurrent layers, each one LSTM, GRU or RNN node.

Keras packs the gates of an LSTM as i,f,c,o with one bias, ONNX wants i,o,f,c and two; those of a GRU are alike. The
weights stay the model's own parameters, re-ordered in the graph, so that they are carried as parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import in_dtype, moved
from porter.converters.frontends.keras.table import keras_layer
from porter.errors import UnsupportedError

Value = ir.Value
INT64 = ir.DataType.INT64
# Keras' gates in ONNX's order.
_ORDER = {"LSTM": [0, 3, 1, 2], "GRU": [0, 1, 2], "SimpleRNN": [0]}
_ONNX = {"LSTM": "LSTM", "GRU": "GRU", "SimpleRNN": "RNN"}
# Keras' activation: ONNX's with its alpha and beta.
_ACTIVATIONS: dict[str, tuple[str, float | None, float | None]] = {
    "tanh": ("Tanh", None, None),
    "sigmoid": ("Sigmoid", None, None),
    "relu": ("Relu", None, None),
    "softplus": ("Softplus", None, None),
    "softsign": ("Softsign", None, None),
    "hard_sigmoid": ("HardSigmoid", 1 / 6, 0.5),
    "linear": ("Affine", 1.0, 0.0),
    "elu": ("Elu", 1.0, None),
}


def _name(function: Any) -> str | None:
    import keras

    for name in _ACTIVATIONS:
        if function is getattr(keras.activations, name):
            return name
    return None


def _kind(layer: Any) -> str:
    import keras

    for name in _ORDER:
        if isinstance(getattr(layer, "_layer", layer), getattr(keras.layers, name)):
            return name
    return ""


def known(layer: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether ONNX has the activations of a layer."""
    cell = layer.cell
    functions = [cell.activation, getattr(cell, "recurrent_activation", cell.activation)]
    return all(_name(function) is not None for function in functions)


@keras_layer("LSTM", "GRU", "SimpleRNN", when=known)
def recurrent(op: Builder, layer: Any, sequences: Value, initial_state: Any = None, mask: Value | None = None) -> Any:
    if layer.stateful:
        raise UnsupportedError("stateful=True keeps the state between calls; pass initial_state and set stateful=False")
    x = moved(op, sequences, [1, 0, 2])
    if mask is not None:
        return _masked(op, layer, x, _states(initial_state), mask)
    direction = "reverse" if layer.go_backwards else "forward"
    y, *finals = _node(op, [layer], x, [_states(initial_state)], direction)
    states = [op.Squeeze(final, [0]) for final in finals]
    if not layer.return_sequences:
        return [states[0], *states] if layer.return_state else states[0]
    output = op.Transpose(op.Squeeze(y, [1]), perm=[1, 0, 2])
    if layer.go_backwards:
        output = _reversed(op, output, 1)
    return [output, *states] if layer.return_state else output


def _states(initial_state: Any) -> list[Value]:
    if initial_state is None:
        return []
    return list(initial_state) if isinstance(initial_state, list | tuple) else [initial_state]


def _reversed(op: Builder, x: Value, axis: int) -> Value:
    return op.Slice(x, [-1], [-(1 << 62)], [axis], [-1])


# ---- the node ----


def _node(
    op: Builder,
    layers: Sequence[Any],
    x: Value,
    states: Sequence[Sequence[Value]],
    direction: str,
    lengths: Value | None = None,
) -> tuple[Value, ...]:
    """One node over (time, batch, features) for a layer, or for both directions of one."""
    kind = _kind(layers[0])
    parts = [_weights(op, kind, layer.cell) for layer in layers]
    w, r, b = (_side_by_side(op, [part[i] for part in parts]) for i in range(3))
    count = len(states[0])
    initial = [_side_by_side(op, [op.Unsqueeze(given[i], [0]) for given in states]) for i in range(count)]
    attributes: dict[str, Any] = {"hidden_size": int(layers[0].cell.units), "direction": direction}
    if kind == "GRU":
        attributes["linear_before_reset"] = int(bool(layers[0].cell.reset_after))
    attributes |= _activations(kind, [layer.cell for layer in layers])
    outputs = 3 if kind == "LSTM" else 2
    return getattr(op, _ONNX[kind])(x, w, r, b, lengths, *initial, outputs=outputs, **attributes)


def _side_by_side(op: Builder, values: Sequence[Value | None]) -> Value | None:
    if values[0] is None:
        return None
    return values[0] if len(values) == 1 else op.Concat(*values, axis=0)


def _weights(op: Builder, kind: str, cell: Any) -> tuple[Value, Value, Value | None]:
    order = _ORDER[kind]
    w, r = (
        op.Unsqueeze(_gates(op, op.Transpose(k, perm=[1, 0]), k, order), [0])
        for k in (cell.kernel, cell.recurrent_kernel)
    )
    if not cell.use_bias:
        return w, r, None
    both = [getattr(cell, name, None) for name in ("input_bias", "recurrent_bias")]
    if None not in both:  # as in ports, whose source has two
        return w, r, op.Unsqueeze(op.Concat(*(_gates(op, bias, bias, order) for bias in both), axis=0), [0])
    if len(cell.bias.shape) == 2:  # a GRU whose reset gate comes after the product has two
        return w, r, op.Reshape(cell.bias, [1, int(np.prod([int(size) for size in cell.bias.shape]))])
    bias = _gates(op, cell.bias, cell.bias, order)
    none = op.tensor(np.zeros(int(cell.bias.shape[0]), cell.bias.dtype.numpy()))
    return w, r, op.Unsqueeze(op.Concat(bias, none, axis=0), [0])


def _gates(op: Builder, rows: Value, weight: Value, order: list[int]) -> Value:
    """The gates, which lie one after the other along the first axis, in ONNX's order."""
    if order == sorted(order):
        return rows
    size = int(weight.shape[-1]) // len(order)
    return op.Concat(*(op.Slice(rows, [g * size], [(g + 1) * size], [0], [1]) for g in order), axis=0)


def _activations(kind: str, cells: Sequence[Any]) -> dict[str, Any]:
    """The attributes that name them; none where they are ONNX's own."""
    named = []
    for cell in cells:
        out = _name(cell.activation)
        gate = _name(getattr(cell, "recurrent_activation", cell.activation))
        named += {"LSTM": [gate, out, out], "GRU": [gate, out], "SimpleRNN": [out]}[kind]
    default = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "SimpleRNN": ["tanh"]}[kind]
    if named == default * len(cells):
        return {}
    functions = [_ACTIVATIONS[name] for name in named]
    attributes: dict[str, Any] = {"activations": [function[0] for function in functions]}
    for position, key in ((1, "activation_alpha"), (2, "activation_beta")):
        numbers = [function[position] for function in functions if function[position] is not None]
        if numbers:
            attributes[key] = numbers
    return attributes


# ---- both directions ----


def _alike(layer: Any, sequences: Any, initial_state: Any = None, mask: Any = None, **kwargs: Any) -> bool:
    """Whether both directions are one layer of ONNX."""
    one, other = layer.forward_layer, layer.backward_layer
    kind = _kind(one)
    if not kind or kind != _kind(other) or mask is not None or not known(one) or not known(other):
        return False
    if type(one).call is not type(other).call or not type(one).call.__module__.startswith("keras."):
        return False
    same = ("units", "use_bias", "reset_after")
    return all(getattr(one.cell, key, None) == getattr(other.cell, key, None) for key in same)


@keras_layer("Bidirectional", when=_alike)
def bidirectional(op: Builder, layer: Any, sequences: Value, initial_state: Any = None) -> Any:
    inner = [layer.forward_layer, layer.backward_layer]
    if any(one.stateful for one in inner):
        raise UnsupportedError("stateful=True keeps the state between calls; pass initial_state and set stateful=False")
    given = _states(initial_state)
    half = len(given) // 2
    y, *finals = _node(op, inner, moved(op, sequences, [1, 0, 2]), [given[:half], given[half:]], "bidirectional")
    if layer.return_sequences:
        outputs = _merged_sequences(op, layer, y, int(inner[0].cell.units))
    else:
        outputs = _merge(op, layer.merge_mode, [op.Gather(finals[0], op.constant(d, INT64), axis=0) for d in (0, 1)])
    if not layer.return_state:
        return outputs
    states = [op.Gather(final, op.constant(d, INT64), axis=0) for d in (0, 1) for final in finals]
    return [*(outputs if isinstance(outputs, list) else [outputs]), *states]


def _merged_sequences(op: Builder, layer: Any, y: Value, units: int) -> Any:
    """(time, directions, batch, units) to (batch, time, …)."""
    if layer.merge_mode == "concat":
        joined = op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, 2 * units])
        return op.Transpose(joined, perm=[1, 0, 2])
    parts = [op.Gather(y, op.constant(d, INT64), axis=1) for d in (0, 1)]
    return _merge(op, layer.merge_mode, [op.Transpose(part, perm=[1, 0, 2]) for part in parts])


def _merge(op: Builder, mode: str | None, parts: list[Value]) -> Any:
    match mode:
        case "concat":
            return op.Concat(*parts, axis=-1)
        case "sum":
            return op.Add(*parts)
        case "ave":
            return op.Mul(op.Add(*parts), op.constant(0.5, parts[0]))
        case "mul":
            return op.Mul(*parts)
    return parts


# ---- masks ----


def _masked(op: Builder, layer: Any, x: Value, states: list[Value], mask: Value) -> Any:
    """A masked step leaves the state as it is and repeats the last output.

    So the steps that count are moved to the front, keeping their order, and every step reads the output of the last
    one that counted. That is right for every mask, and nothing is moved where only the end is masked.
    """
    steps = op.Transpose(in_dtype(op, mask, ir.DataType.BOOL), perm=[1, 0])
    if layer.go_backwards:
        x, steps = _reversed(op, x, 0), _reversed(op, steps, 0)
    counted = op.cast(steps, INT64)
    size = op.Shape(steps, start=0, end=1)
    order = op.TopK(op.Sub(op.Mul(counted, size), _numbers(op, size)), size, axis=0, outputs=2)[1]
    front = op.GatherElements(x, op.Expand(op.Unsqueeze(order, [2]), op.Shape(x)), axis=0)
    lengths = op.ReduceSum(counted, [0], keepdims=0)
    y, *finals = _node(op, [layer], front, [states], "forward", op.cast(lengths, ir.DataType.INT32))
    outputs = op.Squeeze(y, [1])
    started = op.CumSum(counted, op.constant(0, INT64))
    place = op.Unsqueeze(op.Max(op.Sub(started, op.constant(1, INT64)), op.constant(0, INT64)), [2])
    read = op.GatherElements(outputs, op.Expand(place, op.Shape(outputs)), axis=0)
    blank = steps if layer.zero_output_for_mask else op.Greater(started, op.constant(0, INT64))
    read = op.Where(op.Unsqueeze(blank, [2]), read, op.constant(0, read))
    final_states = [op.Squeeze(final, [0]) for final in finals]
    if layer.return_sequences:
        output = op.Transpose(read, perm=[1, 0, 2])
    else:
        output = op.Gather(read, op.constant(-1, INT64), axis=0)
    return [output, *final_states] if layer.return_state else output


def _numbers(op: Builder, size: Value) -> Value:
    """0, 1, 2, … as a column."""
    count = op.Range(op.constant(0, INT64), op.Squeeze(size, [0]), op.constant(1, INT64))
    return op.Unsqueeze(count, [1])
