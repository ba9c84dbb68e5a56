"""Keras models whose own code calls tf.*: known layers stay layers, and everything has the scope that made it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import porter
from porter.converters.frontends.tensorflow import to_onnx
from porter.converters.opset import SCOPE, TRAINABLE
from tests.converters.frontends.tensorflow.test_models import Stack, assert_close, evaluated, kinds, seeded

layers = keras.layers


class Residual(layers.Layer):
    def __init__(self, filters: int) -> None:
        super().__init__()
        self.conv = layers.Conv2D(filters, 3, padding="same", activation="elu")
        self.norm = layers.BatchNormalization(momentum=0.9)
        self.drop = layers.Dropout(0.25)

    def call(self, x: Any, training: bool = False) -> Any:
        y = tf.nn.relu(self.norm(self.conv(x), training=training))
        return self.drop(tf.concat([x, y], -1), training=training)


class Reader(keras.Model):
    """Rows of an image, read by an LSTM; every part calls TensorFlow itself."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [Residual(4), Residual(4)]
        self.lstm = layers.LSTM(6)
        self.norm = layers.LayerNormalization()
        self.head = layers.Dense(3, activation="softmax")
        self.scale = self.add_weight(shape=(6,), name="scale")

    def call(self, x: Any, training: bool = False) -> Any:
        for block in self.blocks:
            x = block(x, training=training)
        shape = tf.shape(x)
        x = tf.reshape(x, [shape[0], shape[1] * x.shape[2], x.shape[3]])
        return self.head(self.norm(self.lstm(x) * self.scale))


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, 4, 4, 3)).astype(np.float32)


@pytest.fixture
def reader(images: np.ndarray) -> Reader:
    model = Reader()
    model(images)
    return seeded(model)


def scopes(node: Any) -> list[str]:
    return [path for path, _, _ in json.loads(node.metadata_props[SCOPE])]


def test_known_layers_stay_whole(reader: Reader, images: np.ndarray) -> None:
    converted = to_onnx(reader, (images,))
    found = kinds(converted)
    wanted = {"BatchNormalization": 2, "Dropout": 2, "LSTM": 1, "LayerNormalization": 1, "Conv": 2, "Softmax": 1}
    assert {kind: found[kind] for kind in wanted} == wanted
    assert not found["Loop"] and found["Elu"] == 2
    norms = [node for node in converted.model.graph if node.op_type == "BatchNormalization"]
    assert [node.attributes["momentum"].as_float() for node in norms] == pytest.approx([0.9, 0.9])
    given = np.concatenate([images, -images])[:3]
    assert_close(evaluated(converted, given)[0], reader(given))


def test_every_operation_has_the_layer_that_made_it(reader: Reader, images: np.ndarray) -> None:
    converted = to_onnx(reader, (images,))
    owners = {(node.op_type, scopes(node)[-1]) for node in converted.model.graph}
    assert owners >= {
        ("Conv", "blocks.0.conv"), ("Conv", "blocks.1.conv"), ("Relu", "blocks.0"), ("Relu", "blocks.1"),
        ("BatchNormalization", "blocks.1.norm"), ("LSTM", "lstm"), ("Softmax", "head"), ("Mul", ""), ("Reshape", ""),
    }  # fmt: skip
    inside = next(node for node in converted.model.graph if ("blocks.1.conv") in scopes(node))
    assert scopes(inside) == ["", "blocks.1", "blocks.1.conv"]
    assert {v.path for v in reader.variables if "seed" not in v.path} == set(converted.state)


def test_frozen_layers_are_not_trained(reader: Reader, images: np.ndarray) -> None:
    reader.blocks[0].trainable = False
    found = to_onnx(reader, (images,)).model.graph.initializers
    frozen = {v.path for v in reader.blocks[0].conv.variables}
    assert {name for name, value in found.items() if value.metadata_props.get(TRAINABLE) == "0"} >= frozen
    assert found[reader.blocks[1].conv.kernel.path].metadata_props[TRAINABLE] == "1"


def test_porter_takes_the_graph_where_a_model_calls_tensorflow(
    reader: Reader, images: np.ndarray, tmp_path: Path
) -> None:
    port = porter.port(reader, (images,), to="onnx", out=tmp_path / "reader")
    assert port.manifest["source"]["framework"] == "tensorflow"


def test_masks_reach_the_layers_that_use_them() -> None:
    class Masked(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.embed = layers.Embedding(7, 4, mask_zero=True)
            self.lstm = layers.LSTM(5)

        def call(self, ids: Any) -> Any:
            return tf.tanh(self.lstm(self.embed(ids)))

    ids = np.array([[1, 2, 3, 0, 0], [4, 5, 6, 1, 2]], dtype=np.int32)
    model = Masked()
    model(ids)
    converted = to_onnx(seeded(model), (ids,))
    got = evaluated(converted, ids)[0]
    assert_close(got, model(ids))
    changed = np.where(ids == 0, 6, ids)
    assert np.abs(evaluated(converted, changed)[0] - got)[0].max() > 1e-3


def test_modules_own_what_they_make() -> None:
    converted = to_onnx(Stack(), None)
    found = Counter((node.op_type, scopes(node)[-1]) for node in converted.model.graph)
    assert found["Relu", "blocks.0"] == 1 and found["Relu", "blocks.1"] == 1
    assert converted.modules[""]["class"].endswith(".Stack")
    assert converted.modules["blocks.1"]["class"].endswith(".Block")


def test_layers_that_are_used_twice_are_two_calls(images: np.ndarray) -> None:
    class Twice(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.conv = layers.Conv2D(3, 3, padding="same")

        def call(self, x: Any) -> Any:
            return self.conv(tf.nn.relu(self.conv(x)))

    model = Twice()
    model(images)
    converted = to_onnx(seeded(model), (images,))
    calls = [json.loads(n.metadata_props[SCOPE])[-1] for n in converted.model.graph if n.op_type == "Conv"]
    assert [(path, number) for path, number, _ in calls] == [("conv", 0), ("conv", 1)]
    assert sorted(converted.state) == sorted(v.path for v in model.variables)


def test_the_model_is_left_as_it_was(reader: Reader, images: np.ndarray) -> None:
    call, before = keras.Layer.__call__, reader(images)
    to_onnx(reader, (images,))
    assert keras.Layer.__call__ is call and reader.blocks[0].conv.activation is keras.activations.elu
    np.testing.assert_array_equal(reader(images), before)
