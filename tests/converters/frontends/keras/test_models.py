"""Whole Keras models: names and normalisation survive, sizes vary, what cannot be ported is said."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import keras
import numpy as np
import onnx_ir as ir
import pytest
import tensorflow as tf
from keras import layers, ops

from porter.converters.frontends.keras import table, to_onnx
from porter.converters.opset import KIND, MODULES, SCOPE, SOURCE, TRAINABLE
from porter.errors import ExportError, InputError, UnsupportedError
from porter.zoo import catalog
from porter.zoo.keras.applications import APPLICATIONS, EVERYDAY, make
from tests.converters.frontends.keras import rows_conv, rows_layers, rows_sequence
from tests.converters.frontends.keras.comparing import REPLACED
from tests.converters.frontends.torch.comparing import evaluator


def types(graph: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in graph.graph)


def named(graph: ir.Model) -> set[str]:
    """Initializers that are variables of the source."""
    return {name for name, value in graph.graph.initializers.items() if value.metadata_props[KIND] != "constant"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EVERYDAY else pytest.mark.sweep) for name in APPLICATIONS]
)
def test_applications_keep_their_layers_and_names(name: str) -> None:
    model = make(name)
    graph = to_onnx(model, None).model
    count = Counter(type(layer).__name__ for layer in model._flatten_layers())
    assert types(graph)["BatchNormalization"] == count["BatchNormalization"]
    held = {v.path for v in model.weights if not isinstance_of_state(v.path)}
    assert named(graph) == held
    keras.backend.clear_session()


def isinstance_of_state(path: str) -> bool:
    """Variables that no forward pass reads: counters of draws, statistics that Normalization keeps as constants."""
    return "seed_generator" in path or path.startswith("normalization")


@pytest.mark.parametrize("name", ["ResNet50V2", "MobileNetV3Small"])
def test_height_and_width_vary(name: str) -> None:
    model = make(name, dynamic=True)
    graph = to_onnx(model, None).model
    assert [str(getattr(size, "value", size)) for size in graph.graph.inputs[0].shape[:3]] == [
        "batch",
        "images_1",
        "images_2",
    ]
    images = np.random.default_rng(0).uniform(0, 255, (3, 75, 70, 3)).astype(np.float32)
    (ours,) = evaluator(graph, REPLACED).run(None, {"images": images})
    np.testing.assert_allclose(ours, np.asarray(model(images, training=False)), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("entry", list(catalog.entries("keras")), ids=lambda entry: entry.name)
def test_zoo(entry: catalog.Entry) -> None:
    model = entry.make(small=True)
    converted = to_onnx(model, entry.inputs(small=True), entry.dynamic)
    assert named(converted.model) <= set(converted.state)
    assert all(SCOPE in node.metadata_props for node in converted.model.graph)


class Block(layers.Layer):
    """A residual block with a scale of its own and a list of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = [layers.Dense(8, name="same"), layers.Dense(8, name="same")]
        self._norm = layers.LayerNormalization()

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(8,), name="scale", initializer="ones")

    def call(self, x: Any) -> Any:
        batch, time, width = ops.shape(x)
        y = ops.reshape(ops.transpose(ops.reshape(x, (batch, time, 2, width // 2)), (0, 2, 1, 3)), (batch, time, -1))
        y = y + ops.cast(ops.arange(time), "float32")[:, None]
        for step in self.steps:
            y = step(y)
        return self._norm(x + y * ops.exp(self.scale))


class Tagger(keras.Model):
    """Embedding, the same block twice, a frozen head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = layers.Embedding(11, 8)
        self.block = Block()
        self.head = layers.Dense(3, trainable=False)

    def call(self, tokens: Any) -> Any:
        return self.head(self.block(self.block(self.embedding(tokens))))


def tagger() -> tuple[keras.Model, np.ndarray]:
    tokens = np.random.default_rng(0).integers(0, 11, (2, 5))
    model = Tagger()
    model(tokens)
    return model, tokens


def test_subclassed_models_are_looked_into() -> None:
    model, tokens = tagger()
    graph = to_onnx(model, (tokens,), {"tokens": {0: "batch", 1: "time"}}).model
    scopes = {tuple(map(tuple, json.loads(node.metadata_props[SCOPE]))) for node in graph.graph}
    paths = {scope[-1][:2] for scope in scopes}
    assert {("block.steps.0", 0), ("block.steps.0", 1), ("block._norm", 1), ("block", 1), ("head", 0)} <= paths
    assert {scope[0][2] for scope in scopes} == {f"{__name__}.Tagger"}
    modules = json.loads(graph.graph.metadata_props[MODULES])
    assert modules["block"]["children"] == ["steps.0", "steps.1", "_norm"] and "block@1" in modules["block"]["calls"]
    lines = [json.loads(node.metadata_props[SOURCE])[-1][2] for node in graph.graph if SOURCE in node.metadata_props]
    assert "return self._norm(x + y * ops.exp(self.scale))" in lines


def test_sizes_that_the_tracer_never_saw() -> None:
    model, tokens = tagger()
    run = evaluator(to_onnx(model, (tokens,), {"tokens": {0: "batch", 1: "time"}}).model)
    other = np.random.default_rng(1).integers(0, 11, (3, 9))
    np.testing.assert_allclose(run.run(None, {"tokens": other})[0], np.asarray(model(other)), rtol=1e-4, atol=1e-5)


def test_variables_keep_their_names_kinds_and_freezing() -> None:
    model, tokens = tagger()
    converted = to_onnx(model, (tokens,))
    found = converted.model.graph.initializers
    assert named(converted.model) == set(converted.state) and len(converted.state) == len(model.weights)
    frozen = {name for name in named(converted.model) if found[name].metadata_props[TRAINABLE] == "0"}
    assert frozen == {v.path for v in model.head.variables}
    assert {found[name].metadata_props[KIND] for name in frozen} == {"parameter"}


def test_masks_go_as_keras_takes_them() -> None:
    x = keras.Input((None,), dtype="int32", name="tokens")
    y = layers.Embedding(9, 4, mask_zero=True)(x)
    y = layers.LSTM(5, return_sequences=True)(layers.Dropout(0.1)(y))
    model = keras.Model(x, [layers.GlobalAveragePooling1D()(y), layers.GRU(3)(y)])
    tokens = np.asarray([[1, 2, 0, 3, 0], [0, 0, 4, 5, 6], [7, 8, 1, 2, 3], [1, 0, 0, 0, 0]], np.int32)
    ours = evaluator(to_onnx(model, None).model, REPLACED).run(None, {"tokens": tokens})
    for got, truth in zip(ours, model(tokens), strict=True):
        np.testing.assert_allclose(got, np.asarray(truth), rtol=1e-4, atol=1e-6)


# ---- what cannot be ported ----


class Calling(keras.Model):
    """A model whose call is a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def call(self, x: Any) -> Any:
        return self.function(x)


X = np.ones((2, 4), np.float32)


def test_tensorflow_functions_are_named_with_their_line() -> None:
    with pytest.raises(ExportError, match=r"Calling cannot be traced.*\n*at .*test_models.py:\d+"):
        to_onnx(Calling(lambda x: tf.nn.relu(x) + 1), (X,))


def test_random_numbers_are_refused() -> None:
    model = Calling(lambda x: x + keras.random.normal((4,), seed=keras.random.SeedGenerator(1)))
    with pytest.raises(ExportError, match="random numbers"):
        to_onnx(model, (X,))


def test_a_size_that_became_a_number_is_named() -> None:
    model = Calling(lambda x: x * float(ops.shape(x)[0]))
    with pytest.raises(ExportError, match=r"Multiply .* takes 2\.0 or 4\.0 at other sizes"):
        to_onnx(model, (X,))


def test_everything_that_is_missing_is_listed_at_once() -> None:
    x = keras.Input((8, 8, 3))
    y = layers.RandomFlip(name="flipped")(layers.RandomZoom(0.1, name="zoomed")(x))
    with pytest.raises(UnsupportedError) as caught:
        to_onnx(keras.Model(x, layers.RandomFlip(name="again")(y)), None)
    message = str(caught.value)
    assert "RandomFlip (2x) in flipped, again" in message and "RandomZoom (1x) in zoomed" in message
    assert "at random" in message


def test_inputs_that_are_missing_or_do_not_fit() -> None:
    with pytest.raises(InputError, match="no example inputs"):
        to_onnx(tagger()[0], None)
    x = keras.Input((4,), name="x")
    model = keras.Model(x, layers.Dense(2)(x))
    with pytest.raises(InputError, match=r"'x' has shape \[2, 5\], the model takes \[None, 4\]"):
        to_onnx(model, {"x": np.ones((2, 5), np.float32)})
    with pytest.raises(InputError, match="there is no input 'z'"):
        to_onnx(model, {"z": X})


def test_a_wrong_rule_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    table.names()
    wrong = table.Rule(lambda op, layer, inputs: op.Gemm(inputs, layer.kernel), activates=True)
    monkeypatch.setitem(table._layers, "Dense", [wrong])
    x = keras.Input((4,))
    model = keras.Model(x, layers.Dense(2, bias_initializer="ones", name="middle")(x))
    with pytest.raises(ExportError, match=r"Dense in middle of .* is not equal to Keras"):
        to_onnx(model, None)


def test_a_trace_leaves_the_model_as_it_was() -> None:
    model, tokens = tagger()
    before = [variable.numpy() for variable in model.weights]
    to_onnx(model, (tokens,))
    assert all(v.dtype == "float32" and (v.numpy() == b).all() for v, b in zip(model.weights, before, strict=True))
    assert model.head.compute_dtype == "float32" and not model.head._inbound_nodes
    assert keras.config.floatx() == "float32"


def test_every_layer_is_tried_or_refused() -> None:
    rows = {**rows_conv.ROWS, **rows_layers.ROWS, **rows_sequence.ROWS}
    bases = {"Layer", "Wrapper", "InputLayer", "InputSpec", "Input"}
    cells = {"LSTMCell", "GRUCell", "SimpleRNNCell", "StackedRNNCells"}  # in the rows of RNN
    kinds = {kind.__name__ for name in dir(layers) if isinstance(kind := getattr(layers, name), type)}
    kinds = {"GroupQueryAttention" if name == "GroupedQueryAttention" else name for name in kinds}
    assert not kinds - set(rows) - set(table._refused) - bases - cells
