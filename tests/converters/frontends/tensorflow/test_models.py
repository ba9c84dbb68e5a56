"""Whole models in every form that TensorFlow gives them: modules, SavedModels, checkpoints, frozen graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from porter.converters.frontends.converted import Converted
from porter.converters.frontends.evaluate import as_double, evaluate_nodes
from porter.converters.frontends.tensorflow import loading, to_onnx
from porter.converters.opset import KIND, TRAINABLE, TRAINING
from porter.zoo.tensorflow import cellular_automaton, tf1_convnet

CONVNET = [
    *(f"conv{i}/kernel" for i in (1, 2)),
    *(f"bn{i}/{name}" for i in (1, 2) for name in ("gamma", "beta", "moving_mean", "moving_variance")),
    *(f"dense{i}/{name}" for i in (1, 2) for name in ("kernel", "bias")),
]


def kinds(converted: Converted) -> Counter[str]:
    return Counter(node.op_type for node in converted.model.graph)


def parameters(converted: Converted) -> list[str]:
    found = converted.model.graph.initializers.values()
    return [value.name for value in found if value.metadata_props[KIND] in ("parameter", "buffer")]


def evaluated(converted: Converted, *inputs: np.ndarray) -> list[np.ndarray]:
    """The graph's outputs in float64."""
    graph = converted.model.graph
    known = {value: as_double(value.const_value.numpy()) for value in graph.initializers.values()}
    known.update((value, as_double(array)) for value, array in zip(graph.inputs, inputs, strict=True))
    evaluate_nodes(graph, known)
    return [known[output] for output in graph.outputs]


def assert_close(actual: np.ndarray, wanted: Any) -> None:
    """Within what float32 rounds: the source runs in it."""
    wanted = np.asarray(wanted)
    np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max())


# ---- a module with a loop ----


@pytest.mark.parametrize("dynamic", ["auto", "none", cellular_automaton.DYNAMIC], ids=["auto", "none", "named"])
def test_a_module_with_a_loop(dynamic: Any) -> None:
    model = cellular_automaton.make(small=True)
    inputs = cellular_automaton.inputs(small=True)
    converted = to_onnx(model, inputs, dynamic)
    assert converted.name == "CellularAutomaton" and converted.arguments == ["cells", "steps"]
    assert parameters(converted) == ["hidden_kernel", "hidden_bias", "update_kernel", "rate"]
    assert kinds(converted)["Loop"] == 1
    cells = inputs["cells"] if dynamic == "none" else np.concatenate([inputs["cells"], inputs["cells"]])[:3, :7]
    for steps in (0, 2, 5):
        (got,) = evaluated(converted, cells, np.int32(steps))
        assert_close(got, model(tf.constant(cells), tf.constant(steps)))
    names = [str(size) for size in converted.model.graph.inputs[0].shape]
    expected = {"auto": ["batch", "cells_dim1", "cells_dim2", "4"], "none": ["2", "9", "9", "4"]}
    assert names == expected.get(dynamic if isinstance(dynamic, str) else "", ["batch", "height", "width", "4"])


def test_what_is_not_trained_is_a_buffer() -> None:
    converted = to_onnx(cellular_automaton.make(small=True), cellular_automaton.inputs(small=True))
    found = converted.model.graph.initializers
    assert {name: found[name].metadata_props[TRAINABLE] for name in ("rate", "hidden_bias")} == {
        "rate": "0",
        "hidden_bias": "1",
    }


# ---- TensorFlow 1 ----


def _function(folder: Path) -> Any:
    return tf1_convnet.make(small=True)


def _frozen(folder: Path) -> Any:
    return loading.frozen_graph(tf1_convnet.write_frozen_graph(folder, small=True))


def _saved(folder: Path) -> Any:
    return loading.saved_model(tf1_convnet.write_saved_model(folder, small=True))


def _by_file(folder: Path) -> Any:
    """As where TensorFlow 2's loader fails."""
    return loading._from_file(tf1_convnet.write_saved_model(folder, small=True), None, Exception("refused"))


def _meta(folder: Path) -> Any:
    return loading.meta_graph(Path(f"{tf1_convnet.write_checkpoint(folder, small=True)}.meta"))


@pytest.mark.parametrize("read", [_function, _frozen, _saved, _by_file, _meta])
def test_a_graph_of_tensorflow_1(read: Callable[[Path], Any], tmp_path: Path) -> None:
    source = read(tmp_path)
    converted = to_onnx(source, None)
    assert sorted(parameters(converted)) == sorted(CONVNET)
    assert kinds(converted)["BatchNormalization"] == 2
    statistics = [n for n in CONVNET if "moving" in n]
    found = converted.model.graph.initializers
    assert [n for n in CONVNET if found[n].metadata_props[TRAINABLE] == "0"] == statistics
    images = tf1_convnet.inputs(small=True, batch=3)["images"]
    assert_close(evaluated(converted, images)[0], tf1_convnet.make(small=True)(tf.constant(images)))


def test_files_of_tensorflow_1_can_be_called(tmp_path: Path) -> None:
    images = tf.constant(tf1_convnet.inputs(small=True, batch=3)["images"])
    expected = tf1_convnet.make(small=True)(images)
    for read in (_frozen, _by_file, _meta):
        (got,) = read(tmp_path)(images).values()
        np.testing.assert_allclose(got, expected, rtol=1e-5)


# ---- Keras, exported ----


def seeded(model: keras.Model) -> keras.Model:
    rng = np.random.default_rng(0)
    for variable in model.variables:
        if "seed" not in variable.path:
            low = 0.5 if "variance" in variable.path or "gamma" in variable.path else -0.3
            variable.assign(rng.uniform(low, low + 0.6, variable.shape))
    return model


def exported(model: keras.Model, folder: Path) -> Converted:
    model.export(folder, verbose=False)
    return to_onnx(loading.saved_model(folder), None)


def test_an_exported_keras_model_has_its_layers_back(tmp_path: Path) -> None:
    layers = keras.layers
    keras.utils.clear_session()  # names of layers count from one
    model = seeded(
        keras.Sequential(
            [
                keras.Input((8, 7, 3), name="image"),
                layers.Conv2D(4, 3, padding="same", strides=2),
                layers.BatchNormalization(epsilon=2e-3),
                layers.Dropout(0.3),
                layers.DepthwiseConv2D(3),
                layers.BatchNormalization(scale=False, center=False),
                layers.LayerNormalization(epsilon=1e-4),
                layers.Dense(3, activation="gelu"),
            ],
            name="net",
        )
    )
    converted = exported(model, tmp_path / "net")
    found = kinds(converted)
    assert (found["BatchNormalization"], found["LayerNormalization"], found["Gelu"]) == (2, 1, 1)
    assert found["Conv"] == 2 and found["MatMul"] == 1
    assert [len(n.inputs) for n in converted.model.graph if n.op_type == "Conv"] == [3, 3]
    assert not found["Rsqrt"] and not found["Sqrt"] and not found["Reciprocal"]
    norms = [n for n in converted.model.graph if n.op_type == "BatchNormalization"]
    assert [n.attributes["epsilon"].as_float() for n in norms] == pytest.approx([2e-3, 1e-3])
    assert ['"affine": true' in n.metadata_props[TRAINING] for n in norms] == [True, False]
    assert parameters(converted)[:3] == ["net/conv2d/kernel", "net/conv2d/bias", "net/batch_normalization/moving_mean"]
    images = np.random.default_rng(1).standard_normal((5, 8, 7, 3)).astype(np.float32)
    assert_close(evaluated(converted, images)[0], model(images))


@pytest.mark.parametrize("axis", [1, -1])
def test_batch_norm_along_any_axis_of_equal_sizes(axis: int, tmp_path: Path) -> None:
    """Nothing is told from sizes: all are equal."""
    model = seeded(keras.Sequential([keras.Input((4, 4, 4)), keras.layers.BatchNormalization(axis=axis)]))
    converted = exported(model, tmp_path / "norm")
    assert kinds(converted)["BatchNormalization"] == 1
    images = np.random.default_rng(1).standard_normal((4, 4, 4, 4)).astype(np.float32)
    assert_close(evaluated(converted, images)[0], model(images))


def test_what_only_looks_like_a_batch_norm_stays_arithmetic() -> None:
    """The mean is of another vector than the one that the layer would subtract."""
    rng = np.random.default_rng(0)
    mean, variance, gamma, beta = (tf.Variable(rng.random(4).astype("f") + 0.5) for _ in range(4))

    def nearly(x: tf.Tensor) -> tf.Tensor:
        factor = tf.math.rsqrt(variance + 1e-3) * gamma
        return x * factor + (beta - mean * tf.math.rsqrt(variance + 1e-3))

    converted = to_onnx(tf.function(nearly), (rng.standard_normal((3, 5, 4)).astype("f"),))
    assert not kinds(converted)["BatchNormalization"]


@pytest.mark.slow
def test_all_batch_norms_of_mobilenet_v2(tmp_path: Path) -> None:
    model = seeded(keras.applications.MobileNetV2(weights=None, input_shape=(64, 64, 3), classes=10))
    converted = exported(model, tmp_path / "mobilenet")
    found = kinds(converted)
    assert found["BatchNormalization"] == 52 and found["Conv"] == 52
    assert not any(found[kind] for kind in ("Sqrt", "Reciprocal", "Mul"))
    paths = {variable.path for variable in model.variables}
    assert set(parameters(converted)) == paths


def test_a_recurrent_layer_of_an_export_is_a_loop_over_any_length(tmp_path: Path) -> None:
    model = seeded(keras.Sequential([keras.Input((None, 3)), keras.layers.LSTM(4, return_sequences=True)]))
    converted = exported(model, tmp_path / "lstm")
    assert kinds(converted)["Loop"] == 1
    for steps in (1, 6):
        series = np.random.default_rng(steps).standard_normal((2, steps, 3)).astype(np.float32)
        assert_close(evaluated(converted, series)[0], model(series))


# ---- names ----


class Block(tf.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.w = tf.Variable(np.random.default_rng(size).standard_normal((size, size)).astype("f"))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(x @ self.w)


class Stack(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = [Block(3), Block(3)]
        self.shift = tf.constant([1.0, -1.0, 0.5])
        self.tied = self.blocks[0].w

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for block in self.blocks:
            x = block(x)
        return {"sum": x + self.shift, "half": x @ self.tied / 2}


@pytest.mark.parametrize("saved", [False, True])
def test_weights_have_the_names_of_their_attributes(saved: bool, tmp_path: Path) -> None:
    source: Any = Stack()
    if saved:
        tf.saved_model.save(source, str(tmp_path / "stack"), signatures=source.__call__)
        source = loading.saved_model(tmp_path / "stack")
    converted = to_onnx(source, None)
    assert sorted(parameters(converted)) in (["blocks.0.w", "blocks.1.w"], ["blocks.1.w", "tied"])
    assert {output.name for output in converted.model.graph.outputs} == {"sum", "half"}
    assert converted.model.graph.inputs[0].name == "x"


def test_arguments_and_nested_inputs_have_their_names() -> None:
    def f(pair: dict[str, tf.Tensor], scale: tf.Tensor) -> tf.Tensor:
        return pair["a"] * scale + tf.reduce_sum(pair["b"])

    arrays = {"a": np.ones((2, 3), "f"), "b": np.ones((4, 2), "f")}
    converted = to_onnx(tf.function(f), {"pair": arrays, "scale": np.float32(2)})
    assert converted.arguments == ["pair", "scale"]
    assert [value.name for value in converted.model.graph.inputs] == ["pair_a", "pair_b", "scale"]
    assert [str(value.shape[0]) for value in converted.model.graph.inputs[:2]] == ["pair_a_dim0", "pair_b_dim0"]


def test_first_axes_that_must_be_equal_are_one_size() -> None:
    arrays = (np.ones((2, 3), "f"), np.ones((2, 4), "f"))
    converted = to_onnx(tf.function(lambda x, y: tf.concat([x, y], 1)), arrays)
    assert [str(value.shape[0]) for value in converted.model.graph.inputs] == ["batch", "batch"]


def test_sizes_that_the_model_fixes_do_not_vary() -> None:
    weight = tf.Variable(np.ones((48, 2), "f"))

    def f(x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, [tf.shape(x)[0], -1]) @ weight

    converted = to_onnx(tf.function(f), (np.ones((2, 4, 4, 3), "f"),))
    assert [str(size) for size in converted.model.graph.inputs[0].shape] == ["batch", "4", "4", "3"]


# ---- branches ----


def test_branches_and_nested_functions() -> None:
    weight = tf.Variable(2.0, name="weight")

    @tf.function
    def inner(x: tf.Tensor) -> tf.Tensor:
        if tf.reduce_sum(x) > 0:
            return x * weight
        return tf.exp(x)

    def outer(x: tf.Tensor) -> tf.Tensor:
        total = tf.zeros_like(x[0])
        for row in x:
            total += inner(row)
        return total

    converted = to_onnx(tf.function(outer), (np.array([[1.0, 2], [-3, -1]], "f"),))
    assert parameters(converted) == ["weight"]
    for rows in ([[1.0, 1]], [[-1.0, 0.5], [2, 3], [-2, -2]]):
        array = np.array(rows, "f")
        assert_close(evaluated(converted, array)[0], outer(tf.constant(array)))
