"""What cannot be ported is refused in one clear message."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import porter
from porter.converters.frontends.tensorflow import loading, to_onnx
from porter.errors import ExportError, InputError, UnsupportedError
from porter.zoo.tensorflow import tf1_convnet

tf1 = tf.compat.v1
X = (np.ones((2, 3), "f"),)


def saved(folder: Path, signatures: Any, module: tf.Module | None = None) -> Path:
    tf.saved_model.save(module or tf.Module(), str(folder), signatures=signatures)
    return folder


def doubling(name: str = "x") -> Any:
    signature = [tf.TensorSpec([None, 3], name=name)]
    return tf.function(lambda x: {"y": 2 * x}, input_signature=signature).get_concrete_function()


# ---- SavedModels ----


def test_a_saved_model_without_signature(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no signature.*signatures="):
        loading.saved_model(saved(tmp_path / "none", {}))


def test_several_signatures(tmp_path: Path) -> None:
    folder = saved(tmp_path / "several", {"first": doubling("a"), "second": doubling("b")})
    with pytest.raises(InputError, match=r"choose one with signature= \(--signature\): first, second"):
        loading.saved_model(folder)
    assert to_onnx(loading.saved_model(folder, "second"), None).arguments == ["b"]
    with pytest.raises(InputError, match="no signature 'third'; it has first, second"):
        loading.saved_model(folder, "third")


@pytest.mark.parametrize("size", [0, 40, 400])
def test_a_truncated_saved_model(size: int, tmp_path: Path) -> None:
    file = saved(tmp_path / "cut", {"serving_default": doubling()}) / "saved_model.pb"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(InputError, match=r"saved_model\.pb.*damaged or cut off"):
        loading.saved_model(file.parent)


def test_variables_of_another_size(tmp_path: Path) -> None:
    folder = tf1_convnet.write_saved_model(tmp_path, small=True)
    other = tmp_path / "other"
    with tf.Graph().as_default(), tf1.Session() as session:
        for name, shape in (("conv1/kernel", (5, 5, 1, 7)), ("dense1/bias", (8,))):
            tf1.get_variable(name, shape, use_resource=True)
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver().save(session, str(other), write_meta_graph=False)
    for suffix in (".index", ".data-00000-of-00001"):
        shutil.copy(f"{other}{suffix}", folder / "variables" / f"variables{suffix}")
    source = loading._from_file(folder, None, Exception())
    with pytest.raises(InputError, match=r"'conv1/kernel' is \[5, 5, 1, 7\] in the checkpoint and \[5, 5, 1, 4\]"):
        to_onnx(source, None)


def test_a_variable_that_the_checkpoint_lacks(tmp_path: Path) -> None:
    prefix = tf1_convnet.write_checkpoint(tmp_path, small=True)
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("something", (1,), use_resource=True)
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver().save(session, str(prefix), write_meta_graph=False)
    with pytest.raises(InputError, match="has no variable 'conv1/kernel'"):
        to_onnx(loading.meta_graph(Path(f"{prefix}.meta")), None)


# ---- TensorFlow 1 ----


def test_a_meta_graph_without_checkpoint(tmp_path: Path) -> None:
    prefix = tf1_convnet.write_checkpoint(tmp_path, small=True)
    Path(f"{prefix}.index").unlink()
    with pytest.raises(InputError, match=r"no checkpoint .*model\.ckpt\.index"):
        loading.meta_graph(Path(f"{prefix}.meta"))


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_truncated_frozen_graph(share: float, tmp_path: Path) -> None:
    file = tf1_convnet.write_frozen_graph(tmp_path, small=True)
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    with pytest.raises(InputError, match=r"frozen\.pb cannot be read as a frozen TensorFlow graph.*cut off"):
        loading.frozen_graph(file)


def two_ends(folder: Path) -> Path:
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, (None, 3), name="x")
        tf1.placeholder(tf.float32, (), name="unused")
        hidden = tf.tanh(x, name="hidden")
        tf.exp(hidden, name="large")
        tf.abs(hidden, name="small")
    (folder / "two.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return folder / "two.pb"


def test_a_graph_with_several_ends(tmp_path: Path) -> None:
    file = two_ends(tmp_path)
    with pytest.raises(InputError, match=r"which of its nodes is the output \(large, small\).*input,input->output"):
        loading.frozen_graph(file)
    converted = to_onnx(loading.frozen_graph(file, "x->hidden,small"), None)
    assert [output.name for output in converted.model.graph.outputs] == ["hidden", "small"]
    assert converted.arguments == ["x"]
    with pytest.raises(InputError, match="no node 'hiden'"):
        loading.frozen_graph(file, "x->hiden")


def test_the_control_flow_of_tensorflow_1(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        tf1.disable_control_flow_v2()
        try:
            x = tf1.placeholder(tf.float32, (3,), name="x")
            tf.identity(tf1.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: -x), name="y")
        finally:
            tf1.enable_control_flow_v2()
    (tmp_path / "jump.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(UnsupportedError, match="enable_control_flow_v2"):
        to_onnx(loading.frozen_graph(tmp_path / "jump.pb", "x->y"), None)


# ---- what holds no numbers ----


def test_strings_and_ragged_and_sparse_inputs() -> None:
    text = tf.function(lambda s: tf.strings.length(s)).get_concrete_function(tf.TensorSpec([None], tf.string, name="s"))
    with pytest.raises(InputError, match="the input 's' holds strings"):
        to_onnx(text, None)
    ragged = tf.function(lambda r: tf.reduce_sum(r, 1)).get_concrete_function(tf.RaggedTensorSpec([None, None]))
    with pytest.raises(InputError, match=r"RaggedTensor.*dense"):
        to_onnx(ragged, None)
    sparse = tf.function(tf.sparse.to_dense).get_concrete_function(tf.SparseTensorSpec([3, 3]))
    with pytest.raises(InputError, match=r"SparseTensor.*dense"):
        to_onnx(sparse, None)


def test_complex_inputs() -> None:
    with pytest.raises(UnsupportedError, match="complex"):
        to_onnx(tf.function(tf.math.real), (np.ones(3, np.complex64),))
    with pytest.raises(UnsupportedError, match="complex"):
        to_onnx(tf.function(tf.signal.rfft), (np.ones(4, "f"),))


def test_look_up_tables() -> None:
    initializer = tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4], tf.int64, tf.int64)
    table = tf.lookup.StaticHashTable(initializer, -1)
    with pytest.raises(UnsupportedError, match=r"no variable.*look up before"):
        to_onnx(tf.function(table.lookup), (np.array([1, 2]),))


# ---- operators ----


def test_everything_missing_is_told_at_once() -> None:
    def f(x: tf.Tensor) -> tf.Tensor:
        return tf.math.lgamma(x) + tf.random.uniform([3]) + tf.linalg.svd(x)[0][:1] + tf.math.lgamma(2 * x)

    with pytest.raises(UnsupportedError) as told:
        to_onnx(tf.function(f), X, "none")
    text = str(told.value)
    assert "3 operator(s) of f" in text
    assert "Lgamma (2x)" in text and "Svd (1x)" in text and "RandomUniform (1x)" in text and "random numbers" in text


def test_a_model_that_changes_its_variables() -> None:
    count = tf.Variable(0.0)

    def f(x: tf.Tensor) -> tf.Tensor:
        count.assign_add(1.0)
        return x + count

    with pytest.raises(UnsupportedError, match="changes a variable while the model runs"):
        to_onnx(tf.function(f), X)


def test_a_change_inside_of_a_loop_or_call() -> None:
    count = tf.Variable(0.0)

    @tf.function
    def inner(x: tf.Tensor) -> tf.Tensor:
        count.assign(x[0, 0])
        return x

    def f(x: tf.Tensor) -> tf.Tensor:
        for _ in tf.range(3):
            count.assign_add(1.0)
        return x

    for function in (tf.function(lambda x: 2 * inner(x)), tf.function(f)):
        with pytest.raises(UnsupportedError, match="changes a variable while the model runs"):
            to_onnx(function, X)


def test_bicubic_weights_that_tensorflow_rounds() -> None:
    image = np.ones((1, 5, 5, 1), "f")
    with pytest.raises(UnsupportedError, match="steps of 1/1024"):
        to_onnx(tf.function(lambda x: tf.image.resize(x, [7, 7], "bicubic")), (image,), "none")


# ---- inputs ----


def test_inputs_that_do_not_fit() -> None:
    function = tf.function(lambda x: x @ tf.ones([3, 2]))
    with pytest.raises(InputError, match="no example inputs"):
        to_onnx(function, None)
    with pytest.raises(ExportError, match=r"cannot be traced.*(compatible|equal)"):
        to_onnx(function, (np.ones((2, 4), "f"),), "none")
    fixed = function.get_concrete_function(tf.TensorSpec([None, 3], name="x"))
    with pytest.raises(InputError, match=r"the input 'x' has shape \[2, 4\]"):
        to_onnx(fixed, (np.ones((2, 4), "f"),))
    with pytest.raises(InputError, match="takes x"):
        to_onnx(fixed, {"y": np.ones((2, 3), "f")})
    with pytest.raises(InputError, match="not a list"):
        to_onnx([1], None)


def test_ports_to_onnx_from_references(tmp_path: Path) -> None:
    file = tf1_convnet.write_frozen_graph(tmp_path, small=True)
    for number, reference in enumerate((str(file), "zoo:tensorflow/tf1_convnet@small")):
        port = porter.port(reference, to="onnx", out=tmp_path / f"port{number}")
        assert port.manifest["source"]["framework"] == "tensorflow"
        assert (port.path / "model.onnx").is_file()
    two = porter.port(str(two_ends(tmp_path)), to="onnx", out=tmp_path / "two", signature="x->large")
    assert two.manifest["arguments"] == ["x"]
