"""Recurrent layers: one Keras layer per ONNX node, the gates in Keras' order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Ref, Weight, call, layer
from porter.converters.opset import SCOPE
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Tensor

_ACTIVATIONS = {"Tanh": "tanh", "Sigmoid": "sigmoid", "Relu": "relu", "Softsign": "softsign", "Softplus": "softplus"}

_DEFAULTS = {
    "activation": "tanh",
    "recurrent_activation": "sigmoid",
    "use_bias": True,
    "return_sequences": False,
    "return_state": False,
    "go_backwards": False,
    "reset_after": True,
}


@dataclass(frozen=True)
class _Kind:
    """An operator's Keras layer: where ONNX keeps each of Keras' gates, and the names of its activations in order.

    `states` is how many vectors one direction carries.
    """

    cls: str
    gates: tuple[int, ...]
    states: int
    activations: tuple[str, ...]
    defaults: tuple[str, ...]


_LSTM = _Kind(
    "LSTM", (0, 2, 3, 1), 2, ("recurrent_activation", "activation", "activation"), ("Sigmoid", "Tanh", "Tanh")
)
_GRU = _Kind("GRU", (0, 1, 2), 1, ("recurrent_activation", "activation"), ("Sigmoid", "Tanh"))
_RNN = _Kind("SimpleRNN", (0,), 1, ("activation",), ("Tanh",))


@keras_op("LSTM", domain="porter", layout="fixed")
def lstm(
    x: Tensor, w: Weight, r: Weight, b: Weight | None = None, *states: Tensor,
    outs: list[Ref], direction: str, activations: Sequence[str] | None = None, clip: float = 0.0,
    input_forget: int = 0, label: str = "",
) -> Any:  # fmt: skip
    """Keras has one bias where ONNX has two: `TwoBiasLSTM` keeps both."""
    if input_forget:
        raise CannotBind("coupled input and forget gates (input_forget=1) have no Keras layer")
    return _recurrent(_LSTM, x, w, r, b, states, outs, direction, activations, clip, label, _two_biases)


@keras_op("GRU", domain="porter", layout="fixed")
def gru(
    x: Tensor, w: Weight, r: Weight, b: Weight | None = None, *states: Tensor,
    outs: list[Ref], direction: str, activations: Sequence[str] | None = None, clip: float = 0.0,
    linear_before_reset: int = 0, label: str = "",
) -> Any:  # fmt: skip
    """`linear_before_reset` is `reset_after`: with it Keras has two biases too, as the rows of one variable."""
    biases = _bias_rows if linear_before_reset else _two_biases
    facts = {"reset_after": bool(linear_before_reset)}
    return _recurrent(_GRU, x, w, r, b, states, outs, direction, activations, clip, label, biases, **facts)


@keras_op("RNN", domain="porter", layout="fixed")
def rnn(
    x: Tensor, w: Weight, r: Weight, b: Weight | None = None, *states: Tensor,
    outs: list[Ref], direction: str, activations: Sequence[str] | None = None, clip: float = 0.0, label: str = "",
) -> Any:  # fmt: skip
    """Keras has one bias where ONNX has two: `TwoBiasSimpleRNN` keeps both."""
    return _recurrent(_RNN, x, w, r, b, states, outs, direction, activations, clip, label, _two_biases)


@keras_op("DropoutBetween", domain="porter")
def dropout_between(x: Tensor, *, ratio: float) -> Expr:
    """The Dropout between the layers of one recurrent module."""
    return layer("Dropout", rate=ratio, name="dropout", training=True)(x)


Biases = Callable[[Weight, Weight], tuple[str, dict[str, Weight]]]


def _two_biases(from_input: Weight, from_state: Weight) -> tuple[str, dict[str, Weight]]:
    """The prefix of the class, and the variables of the cell."""
    return "TwoBias", {"cell.input_bias": from_input, "cell.recurrent_bias": from_state}


def _bias_rows(from_input: Weight, from_state: Weight) -> tuple[str, dict[str, Weight]]:
    rows = [bias.reshaped(1, -1) for bias in (from_input, from_state)]
    return "", {"cell.bias": rows[0].joined(rows[1:], 0)}


def _recurrent(
    kind: _Kind,
    x: Expr,
    w: Weight,
    r: Weight,
    b: Weight | None,
    states: Sequence[Expr],
    outs: Sequence[Ref],
    direction: str,
    activations: Sequence[str] | None,
    clip: float,
    name: str,
    biases: Biases,
    **facts: Any,
) -> Any:
    if clip:
        raise CannotBind(f"clipped cells (clip={clip}) have no Keras layer")
    directions = w.shape[0]
    prefix, per_direction = "", []
    for index in range(directions):
        prefix, weights = _cell(kind, w, r, b, index, biases)
        per_direction.append(weights)
    wanted = _wanted(outs)
    sequence, state = wanted[0], any(wanted[1:])
    only_last = directions == 1 and not sequence and wanted[1:] == [True] + [False] * (kind.states - 1)
    arguments = _given(
        {
            "units": w.shape[1] // len(kind.gates),
            **_activations(kind, activations, directions),
            "use_bias": b is not None,
            "return_sequences": sequence,
            "return_state": state and not only_last,
            "go_backwards": direction == "reverse",
            **facts,
        }
    )
    cls = prefix + kind.cls
    if directions == 2:
        slots = {
            f"{side}_layer.{slot}": weight
            for side, weights in zip(("forward", "backward"), per_direction, strict=True)
            for slot, weight in weights.items()
        }
        built = layer("Bidirectional", layer=layer(cls, **arguments), weights=slots, name=name)
    else:
        built = layer(cls, **arguments, weights=per_direction[0], name=name)
    initial: Any = None
    if states:
        initial = states[0] if len(states) == 1 else list(states)
    result: Expr = built(x) if initial is None else built(x, initial_state=initial)
    if only_last:
        return (None, result, *[None] * (len(outs) - 2))
    if state:
        return call("in_input_order", result) if direction == "reverse" and sequence else result
    ordered = call("ops.flip", result, axis=1) if direction == "reverse" else result
    return (ordered, *[None] * (len(outs) - 1))


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Without Keras' defaults, which the printer does not know of our own classes."""
    return {name: value for name, value in arguments.items() if _DEFAULTS.get(name) != value}


def _wanted(outs: Sequence[Ref]) -> list[bool]:
    """Which results any call of the module reads: a module that is called twice is one layer."""
    node = outs[0].value.producer()
    assert node is not None and node.graph is not None
    path = _module(node)
    calls = [node] if path is None else [other for other in node.graph if _module(other) == path]
    together = zip(*(each.outputs for each in calls), strict=True)
    return [any(value.uses() or value.is_graph_output() for value in values) for values in together]


def _module(node: ir.Node) -> tuple[str, str, str] | None:
    """The module and the layer in it that a recurrent node is a call of."""
    scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
    if not scope or len(node.outputs) < 2:
        return None
    label = node.attributes.get("label")
    return scope[-1][0], node.op_type, label.as_string() if label is not None else ""


def _cell(
    kind: _Kind, w: Weight, r: Weight, b: Weight | None, index: int, biases: Biases
) -> tuple[str, dict[str, Weight]]:
    """The variables of one direction."""

    def of_direction(stacked: Weight) -> Weight:
        return stacked.sliced(0, index, index + 1).reshaped(*stacked.shape[1:])

    found = {
        "cell.kernel": _gates(kind, of_direction(w)).transposed([1, 0]),
        "cell.recurrent_kernel": _gates(kind, of_direction(r)).transposed([1, 0]),
    }
    if b is None:
        return "", found
    both, half = of_direction(b), b.shape[1] // 2
    prefix, extra = biases(_gates(kind, both.sliced(0, 0, half)), _gates(kind, both.sliced(0, half, 2 * half)))
    return prefix, found | extra


def _gates(kind: _Kind, rows: Weight) -> Weight:
    """The rows with their gates in Keras' order."""
    size = rows.shape[0] // len(kind.gates)
    parts = [rows.sliced(0, gate * size, (gate + 1) * size) for gate in kind.gates]
    return parts[0].joined(parts[1:], 0)


def _activations(kind: _Kind, given: Sequence[str] | None, directions: int) -> dict[str, str]:
    """Keras' activation arguments; both directions of one layer share them, and an LSTM's cell and output do."""
    count = len(kind.activations)
    names = list(given or kind.defaults * directions)[: count * directions]
    if len(names) < count * directions:
        raise CannotBind(f"{len(names)} activations where {count * directions} are needed")
    found: dict[str, str] = {}
    for argument, name in zip(kind.activations * directions, names, strict=True):
        if name not in _ACTIVATIONS:
            raise CannotBind(f"the activation {name} has no exact Keras twin")
        if found.setdefault(argument, _ACTIVATIONS[name]) != _ACTIVATIONS[name]:
            raise CannotBind(f"different functions for one {argument} ({', '.join(names)}) have no Keras layer")
    return found
