"""Recurrent nodes that no Keras layer can be: bounded and coupled gates, other functions, lengths, peepholes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from porter.converters.opset import OPSET
from porter.errors import UnsupportedError
from tests.converters.targets.keras.modules import check_module, noise
from tests.converters.targets.keras.nodes import Case, check, graph_of, ported
from tests.converters.targets.keras.recurrences import GATES, recurrence

pytestmark = pytest.mark.usefixtures("keras_double")
OPS = tuple(GATES)
DIRECTIONS = ("forward", "reverse", "bidirectional")
LENGTHS = (3, 5, 1)


def node(
    op: str, lengths: Any = None, states: str = "hc", bias: bool = True, peepholes: bool = False, **attributes: Any
) -> Case:
    """A node of 5 steps and 3 sequences; numbers that float32 holds, as weights are stored in it."""
    rng, gates = np.random.default_rng(0), GATES[op]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    first = attributes.get("layout", 0)

    def drawn(*shape: int) -> np.ndarray:
        return (0.4 * rng.standard_normal(shape)).astype(np.float32).astype(np.float64)

    def state() -> np.ndarray:
        return drawn(3, directions, 6) if first else drawn(directions, 3, 6)

    inputs = {
        "X": drawn(3, 5, 4) if first else drawn(5, 3, 4),
        "W": drawn(directions, gates * 6, 4),
        "R": drawn(directions, gates * 6, 6),
        "B": drawn(directions, 2 * gates * 6) if bias else None,
        "lengths": None if lengths is None else np.asarray(lengths, dtype=np.int32),
        "h": state() if "h" in states else None,
    }
    if op == "LSTM":
        inputs |= {"c": state() if "c" in states else None, "P": drawn(directions, 18) if peepholes else None}
    weights = tuple(name for name in "WRBP" if inputs.get(name) is not None)
    return Case(op, inputs, {"hidden_size": 6, **attributes}, weights=weights, outputs=3 if op == "LSTM" else 2)


def confirm(case: Case) -> str:
    return check(case, right=recurrence(case.op, case.inputs, case.attributes)[: case.outputs])


def functions(op: str, *names: str) -> dict[str, list[str]]:
    """Functions for one direction of an operator, of which the names are the last."""
    defaults = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[op]
    return {"activations": [*defaults, *names][-len(defaults) :]}


# ***** the equations themselves *****


def runtime(case: Case) -> list[np.ndarray]:
    """ONNX Runtime, which computes recurrences in float32 only."""
    import onnxruntime
    from onnx import TensorProto, helper

    feeds = {k: a if a.dtype.kind == "i" else a.astype(np.float32) for k, a in case.inputs.items() if a is not None}
    names = [f"out{index}" for index in range(case.outputs)]
    read = [name if array is not None else "" for name, array in case.inputs.items()]
    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in feeds.items()
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    graph = helper.make_graph([helper.make_node(case.op, read, names, **case.attributes)], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


@pytest.mark.parametrize(
    "case",
    [
        *(node(op, LENGTHS, direction=direction, clip=0.3) for op in OPS for direction in DIRECTIONS),
        *(node(op, **functions(op, "ThresholdedRelu"), activation_alpha=[0.1]) for op in OPS),
        *(node(op, **functions(op, "HardSigmoid"), activation_alpha=[0.3]) for op in OPS),
        node(
            "LSTM",
            activations=["HardSigmoid", "ScaledTanh", "Elu"],
            activation_alpha=[0.3, 0.9, 0.7],
            activation_beta=[0.4, 0.5],
        ),
        node(
            "LSTM", activations=["Affine", "LeakyRelu", "Softsign"], activation_alpha=[0.3, 0.1], activation_beta=[1.0]
        ),
        node("LSTM", input_forget=1),
        node("LSTM", peepholes=True, clip=0.3),
        node("GRU", linear_before_reset=1, clip=0.3),
    ],
    ids=str,
)
def test_the_equations_are_those_of_onnx_runtime(case: Case) -> None:
    for ours, theirs in zip(recurrence(case.op, case.inputs, case.attributes), runtime(case), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


# ***** nodes *****


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("states", ["", "hc"])
def test_lengths(op: str, direction: str, layout: int, states: str) -> None:
    confirm(node(op, LENGTHS, states, direction=direction, layout=layout))


@pytest.mark.parametrize("op", OPS)
def test_sequences_that_are_empty_keep_their_states(op: str) -> None:
    confirm(node(op, (5, 0, 2), direction="bidirectional"))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("bias", [False, True])
def test_clipped_gates(op: str, direction: str, bias: bool) -> None:
    assert "clip=0.25" in confirm(node(op, direction=direction, bias=bias, clip=0.25))


@pytest.mark.parametrize("states", ["", "h", "c", "hc"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_peepholes(states: str, direction: str) -> None:
    confirm(node("LSTM", states=states, direction=direction, peepholes=True))
    confirm(node("LSTM", LENGTHS, states, direction=direction, peepholes=True, clip=0.5, input_forget=1, layout=1))


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_coupled_gates(lengths: Any) -> None:
    assert "input_forget=True" in confirm(node("LSTM", lengths, direction="bidirectional", input_forget=1))


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("states", ["h", "c"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_state_of_two_starts_the_layer(layout: int, states: str, direction: str) -> None:
    case = node("LSTM", states=states, direction=direction, layout=layout)
    case.known = (-1,)
    source = check(case, right=recurrence("LSTM", case.inputs, case.attributes), atol=1e-6)
    assert "TwoBiasLSTM(" in source and "ops.zeros(" in source, source


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("name", ["Relu", "Softsign", "Softplus", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu"])
def test_functions_with_the_parameters_of_their_operators(op: str, name: str) -> None:
    confirm(node(op, LENGTHS, **functions(op, name)))


@pytest.mark.parametrize("op", OPS)
def test_every_direction_has_functions_and_parameters_of_its_own(op: str) -> None:
    six = ["HardSigmoid", "Affine", "Elu", "Sigmoid", "ScaledTanh", "LeakyRelu"]
    activations = six if op == "LSTM" else six[:2] + six[3:5] if op == "GRU" else ["ScaledTanh", "HardSigmoid"]
    parameters = {"activation_alpha": [0.3, 0.9, 0.7, 0.6, 0.2], "activation_beta": [0.4, 0.1, 0.8]}
    if op != "LSTM":
        parameters["activation_alpha"].pop(2)
    confirm(node(op, direction="bidirectional", activations=activations, **parameters))


def test_the_reset_gate_after_the_product() -> None:
    for bias in (False, True):
        source = confirm(node("GRU", LENGTHS, bias=bias, linear_before_reset=1, clip=0.4))
        assert "reset_after=True" in source


@pytest.mark.parametrize("op", OPS)
def test_only_the_sequence_is_asked_for(op: str) -> None:
    case = node(op, LENGTHS, clip=0.5)
    case.outputs = 1
    confirm(case)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"activations": ["Sigmoid", "ScaledTanh", "Tanh"]}, "scaledtanh without its activation_alpha"),
        ({"activations": ["Sigmoid", "Gelu", "Tanh"]}, "gelu is none of ONNX's"),
        ({"activations": ["Sigmoid", "Tanh"]}, "2 activations where 3"),
    ],
)
def test_what_no_function_is_known_for_is_refused(attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        check(node("LSTM", **attributes))


# ***** against torch *****


class Tied(nn.Module):
    """Two layers with one set of weights."""

    def __init__(self, kind: type, **options: Any) -> None:
        super().__init__()
        self.first, self.second = kind(4, 6, **options), kind(4, 6, **options)
        for name, parameter in self.first.named_parameters():
            setattr(self.second, name, parameter)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.first(x)[0], self.second(y)[1]


class Normalized(nn.Module):
    """Weights that are computed of others."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self.rnn = nn.utils.parametrizations.weight_norm(kind(4, 6, batch_first=True), "weight_hh_l0")

    def forward(self, x: torch.Tensor) -> Any:
        return self.rnn(x)[0]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_shared_weights(kind: type, bidirectional: bool) -> None:
    check_module(Tied(kind, bidirectional=bidirectional), noise(3, 5, 4), noise(2, 5, 4))


def test_shared_biases_of_a_gru_are_refused() -> None:
    """Its layer holds both biases in one variable, so that the other module's would be variables of their own."""
    with pytest.raises(UnsupportedError, match=r"bias_ih_l0 would become two variables"):
        check_module(Tied(nn.GRU, bidirectional=False), noise(3, 5, 4), noise(2, 5, 4))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_computed_weights(kind: type) -> None:
    check_module(Normalized(kind), noise(3, 5, 4), others=[(noise(2, 7, 4),)])


@pytest.mark.parametrize("bidirectional", [False, True])
def test_weights_train_as_those_of_packed_sequences_in_torch(bidirectional: bool) -> None:
    """The gradients of every weight, through sequences that end at their lengths."""
    import tensorflow as tf

    case = node("LSTM", LENGTHS, "", direction="bidirectional" if bidirectional else "forward")
    module = nn.LSTM(4, 6, bidirectional=bidirectional, dtype=torch.float64)
    order = [0, 2, 3, 1]  # torch's i, f, c, o in ONNX's
    rows = torch.cat([torch.arange(6) + 6 * gate for gate in order])
    parts = {name: torch.from_numpy(case.inputs[name]) for name in "XWRB"}  # type: ignore[arg-type]
    for d, suffix in enumerate(["l0", "l0_reverse"][: 1 + bidirectional]):
        halves = parts["B"][d].chunk(2)
        for name, whole in zip(
            ("weight_ih", "weight_hh", "bias_ih", "bias_hh"), (parts["W"][d], parts["R"][d], *halves), strict=True
        ):
            getattr(module, f"{name}_{suffix}").data.copy_(whole[rows])
    packed = nn.utils.rnn.pack_padded_sequence(parts["X"], torch.tensor(LENGTHS), enforce_sorted=False)
    padded, (hidden, cell) = module(packed)
    sequence = nn.utils.rnn.pad_packed_sequence(padded, total_length=5)[0]
    (sequence.pow(3).sum() + hidden.pow(2).sum() + cell.sin().sum()).backward()
    port, generated = ported(graph_of(case), case.weights)
    with tf.GradientTape() as tape:
        y, h, c = port(case.inputs["X"], case.inputs["lengths"])
        loss = tf.reduce_sum(y**3) + tf.reduce_sum(h**2) + tf.reduce_sum(tf.sin(c))
    gradients = dict(zip("WRB", tape.gradient(loss, [port.W.value, port.R.value, port.B.value]), strict=True))
    for d, suffix in enumerate(["l0", "l0_reverse"][: 1 + bidirectional]):
        halves = np.split(gradients["B"].numpy()[d], 2)
        for name, whole in zip(
            ("weight_ih", "weight_hh", "bias_ih", "bias_hh"),
            (gradients["W"].numpy()[d], gradients["R"].numpy()[d], *halves),
            strict=True,
        ):
            found = whole[rows.numpy()]
            right = getattr(module, f"{name}_{suffix}").grad.numpy()
            np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-12, err_msg=f"{name}_{suffix}")
    assert {name.rpartition(".")[2] for name in generated.variables} == {"W", "R", "B"}


@pytest.mark.parametrize("op", OPS)
def test_a_port_can_be_saved_and_loaded(op: str, tmp_path: Path) -> None:
    import keras

    case = node(op, LENGTHS, "", clip=0.5)
    port, _ = ported(graph_of(case), case.weights)
    feeds = [case.inputs["X"], case.inputs["lengths"]]
    port.save(tmp_path / "port.keras")
    again = keras.models.load_model(tmp_path / "port.keras")
    for left, right in zip(again(*feeds), port(*feeds), strict=True):
        np.testing.assert_array_equal(left, right)
