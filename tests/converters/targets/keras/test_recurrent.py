"""Recurrent layers: every gate in its place, two biases that train as two, states in and out, any length."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise, port_of, randomized
from tests.converters.targets.keras.nodes import Case, check

pytestmark = pytest.mark.usefixtures("keras_double")
KINDS = (nn.LSTM, nn.GRU, nn.RNN)
SHORT, LONG = noise(3, 5, 4), noise(2, 7, 4, seed=2)


class Everything(nn.Module):
    """The sequence and all final states."""

    def __init__(self, kind: type, **options: Any) -> None:
        super().__init__()
        self.rnn = kind(4, 6, **options)

    def forward(self, x: torch.Tensor) -> Any:
        y, states = self.rnn(x)
        return (y, *states) if isinstance(states, tuple) else (y, states)


class Sequence(Everything):
    def forward(self, x: torch.Tensor) -> Any:
        return self.rnn(x)[0]


class LastState(Everything):
    """What a classifier reads."""

    def forward(self, x: torch.Tensor) -> Any:
        states = self.rnn(x)[1]
        hidden = states[0] if isinstance(states, tuple) else states
        return torch.cat([hidden[-2], hidden[-1]], dim=1) if self.rnn.bidirectional else hidden[-1]


class EncoderDecoder(nn.Module):
    """The final states of one recurrent layer start another."""

    def __init__(self, kind: type, layers: int) -> None:
        super().__init__()
        self.encoder = kind(4, 6, num_layers=layers, batch_first=True)
        self.decoder = kind(4, 6, num_layers=layers, batch_first=True)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> Any:
        y, states = self.decoder(target, self.encoder(source)[1])
        return (y, *states) if isinstance(states, tuple) else (y, states)


class GivenStates(nn.Module):
    def __init__(self, bidirectional: bool) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 6, bidirectional=bidirectional)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> Any:
        return self.rnn(x, hidden)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("bidirectional", "batch_first", "bias", "num_layers"),
    [
        *itertools.product((False, True), (False, True), (True,), (1, 2)),
        (True, True, False, 2),
        (False, False, False, 1),
    ],
)
def test_layers_and_states(kind: type, bidirectional: bool, batch_first: bool, bias: bool, num_layers: int) -> None:
    module = Everything(kind, bidirectional=bidirectional, batch_first=batch_first, bias=bias, num_layers=num_layers)
    check_module(module, SHORT, others=[(LONG,)])


def test_relu_cells() -> None:
    assert 'activation="relu"' in check_module(Everything(nn.RNN, nonlinearity="relu"), SHORT)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_of_one(kind: type) -> None:
    check_module(kind(1, 1, bidirectional=True), noise(3, 2, 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
def test_states_go_from_layer_to_layer_without_being_stacked(kind: type, layers: int) -> None:
    class OnlySequence(EncoderDecoder):
        def forward(self, source: torch.Tensor, target: torch.Tensor) -> Any:
            return super().forward(source, target)[0]

    source = check_module(OnlySequence(kind, layers), SHORT, noise(3, 2, 4), others=[(LONG, noise(2, 3, 4))])
    assert "stack" not in source and "expand_dims" not in source, source
    check_module(EncoderDecoder(kind, layers), SHORT, noise(3, 2, 4))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_given_states_are_the_first(bidirectional: bool) -> None:
    check_module(GivenStates(bidirectional), SHORT, noise(1 + bidirectional, 5, 6))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_only_the_last_state_is_asked_for(kind: type, bidirectional: bool) -> None:
    source = check_module(LastState(kind, batch_first=True, bidirectional=bidirectional), SHORT, others=[(LONG,)])
    assert "return_sequences" not in source, source
    assert ("return_state" in source) == bidirectional, source


def test_the_source_reads_as_keras_does() -> None:
    source = check_module(Sequence(nn.GRU, num_layers=2, batch_first=True, dropout=0.25, bidirectional=True), SHORT)
    assert "self.rnn_l0 = layers.Bidirectional(layers.GRU(6, return_sequences=True))" in source, source
    assert "self.rnn_dropout = layers.Dropout(0.25)" in source, source
    assert "transpose" not in source and "reshape" not in source, source


@pytest.mark.parametrize("kind", KINDS)
def test_keras_variables_are_plain_re_orderings_of_the_parameters(kind: type) -> None:
    _, generated = port_of(Sequence(kind), [SHORT.float()], native=True, dynamic="auto")
    found = {name.rpartition(".")[2]: w.expr.to_json() for name, w in generated.variables.items()}
    if kind is nn.GRU:
        assert [part["source"] for part in found["kernel"]["transpose"]["concat"]] == ["rnn.weight_ih_l0"] * 3
    else:
        gates = 4 if kind is nn.LSTM else 1
        assert found["kernel"] == {
            "transpose": {"source": "rnn.weight_ih_l0", "shape": [6 * gates, 4]},
            "perm": [1, 0],
        }
        assert found["input_bias"] == {"source": "rnn.bias_ih_l0", "shape": [6 * gates]}
        assert found["recurrent_bias"] == {"source": "rnn.bias_hh_l0", "shape": [6 * gates]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_state_dict_survives_the_way_there_and_back(kind: type, bidirectional: bool) -> None:
    module = randomized(Sequence(kind, num_layers=2, bidirectional=bidirectional))
    port, generated = port_of(module, [SHORT.float()], native=True, dynamic="auto")
    restored: dict[str, np.ndarray] = {}
    for name, weight in generated.variables.items():
        weight.expr.restore(variable(port, name).numpy().astype(np.float32), restored)
    assert restored.keys() == module.state_dict().keys()
    for name, tensor in module.state_dict().items():
        np.testing.assert_array_equal(restored[name], tensor.numpy(), err_msg=name)


def variable(model: Any, path: str) -> Any:
    for part in path.split("."):
        model = getattr(model, part)
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_both_biases_train_as_in_torch(kind: type, bidirectional: bool) -> None:
    """Each bias gets the whole gradient, so that under SGD their sum moves twice as far as one bias would."""
    import keras
    import tensorflow as tf

    module = randomized(Sequence(kind, bidirectional=bidirectional))
    port, generated = port_of(module, [SHORT.float()], native=True, dynamic="auto")
    module, rate = module.double(), 0.1
    feed = tf.constant(SHORT.numpy().transpose(generated.inputs[0].permutation))
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    keras_optimizer = keras.optimizers.SGD(rate)
    for _ in range(3):
        optimizer.zero_grad()
        module(SHORT).square().sum().backward()
        optimizer.step()
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(port(feed)))
        values = port.trainable_variables
        keras_optimizer.apply(tape.gradient(loss, [value.value for value in values]), values)
    trained: dict[str, np.ndarray] = {}
    for name, weight in generated.variables.items():
        weight.expr.restore(variable(port, name).numpy(), trained)
    for name, tensor in module.state_dict().items():
        np.testing.assert_allclose(trained[name], tensor.numpy(), rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_port_can_be_saved_and_loaded(kind: type, bidirectional: bool, tmp_path: Path) -> None:
    import keras

    port, _ = port_of(
        randomized(Sequence(kind, bidirectional=bidirectional)), [SHORT.float()], native=True, dynamic="auto"
    )
    port.save(tmp_path / "port.keras")
    again = keras.models.load_model(tmp_path / "port.keras")
    np.testing.assert_array_equal(again(SHORT.numpy()), port(SHORT.numpy()))


# ***** bare ONNX nodes *****


def node(op: str, directions: int = 1, bias: bool = True, states: bool = False, **attributes: Any) -> Case:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    shapes: dict[str, tuple[int, ...] | None] = {
        "X": (5, 3, 4),
        "W": (directions, gates * 6, 4),
        "R": (directions, gates * 6, 6),
        "B": (directions, 2 * gates * 6) if bias else None,
        "lengths": None,
        "h": (directions, 3, 6) if states else None,
        "c": (directions, 3, 6) if states and op == "LSTM" else None,
    }
    rng = np.random.default_rng(0)
    inputs = {name: None if shape is None else rng.standard_normal(shape) for name, shape in shapes.items()}
    while inputs[next(reversed(inputs))] is None:
        inputs.pop(next(reversed(inputs)))
    weights = ("W", "R", "B") if bias else ("W", "R")
    outputs = 3 if op == "LSTM" else 2
    return Case(op, inputs, {"hidden_size": 6, **attributes}, weights=weights, outputs=outputs, sized=tuple(inputs))


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("states", [False, True])
def test_onnx_nodes(op: str, bias: bool, states: bool) -> None:
    check(node(op, bias=bias, states=states), atol=1e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_the_reset_gate_after_the_product_and_before(bias: bool) -> None:
    after = check(node("GRU", bias=bias, linear_before_reset=1), atol=1e-6)
    before = check(node("GRU", bias=bias), atol=1e-6)
    assert "reset_after" not in after and "reset_after=False" in before


def test_batch_first_nodes() -> None:
    case = node("LSTM", layout=1)
    check(case, atol=1e-6)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_backwards_is_forwards_on_the_reversed_sequence(op: str) -> None:
    """Keras gives steps in the order of processing, ONNX in that of the input."""
    from tests.converters.targets.keras.nodes import graph_of, ported

    forward, reverse = node(op), node(op, direction="reverse")
    x = forward.inputs["X"]
    assert x is not None
    ours, _ = ported(graph_of(forward), forward.weights)
    theirs, generated = ported(graph_of(reverse), reverse.weights)
    y, *states = ours(x[::-1].copy())
    turned, *others = theirs(x)
    assert "go_backwards=True" in generated.source
    np.testing.assert_array_equal(np.asarray(turned), np.asarray(y)[::-1])
    for left, right in zip(states, others, strict=True):
        np.testing.assert_array_equal(left, right)
