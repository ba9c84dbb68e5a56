"""The TensorFlow originals of the zoo: a module with a loop, and a graph of TensorFlow 1 with what it left on disk."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from porter.zoo.catalog import Entry, find, originals
from porter.zoo.tensorflow import cellular_automaton, tf1_convnet

tf1 = tf.compat.v1
VARIABLES = {
    *(f"conv{index}/kernel" for index in (1, 2)),
    *(f"bn{index}/{name}" for index in (1, 2) for name in ("gamma", "beta", "moving_mean", "moving_variance")),
    *(f"dense{index}/{name}" for index in (1, 2) for name in ("kernel", "bias")),
}

models = pytest.mark.parametrize("entry", originals("tensorflow"), ids=lambda entry: entry.name)


def run(entry: Entry, batch: int = 2) -> np.ndarray:
    tensors = [tf.constant(array) for array in entry.inputs(small=True, batch=batch).values()]
    return np.asarray(entry.make(small=True)(*tensors))


@models
def test_it_runs_and_the_seed_decides(entry: Entry) -> None:
    first = run(entry)
    assert np.array_equal(first, run(entry))
    assert np.isfinite(first).all()
    assert 1e-2 < first.std() < 1e2
    assert np.abs(first[0] - first[1]).max() > 1e-3 * np.abs(first).max()
    assert run(entry, batch=3).shape == (3, *first.shape[1:])


@models
def test_no_weight_is_trivial(entry: Entry) -> None:
    model = entry.make(small=True)
    assert len(model.variables) > 3
    for variable in model.variables:
        value = variable.numpy()
        assert (value != 0).all() and (value != 1).all(), variable.name
        assert value.ndim == 0 or len(np.unique(value)) > 1, variable.name


def test_the_automaton_takes_as_many_steps_as_asked() -> None:
    model = cellular_automaton.make(small=True)
    cells = tf.constant(cellular_automaton.inputs(small=True)["cells"])[:, :, :7]
    np.testing.assert_array_equal(model(cells, tf.constant(0)), cells)
    expected = cells
    for _ in range(5):
        expected = model.step(expected)
    np.testing.assert_allclose(model(cells, tf.constant(5)), expected, rtol=1e-5, atol=1e-6)


def test_the_automaton_is_a_loop_of_the_graph() -> None:
    model = cellular_automaton.make(small=True)
    spec = [tf.TensorSpec((None, None, None, 4)), tf.TensorSpec((), tf.int32)]
    operations = {operation.type for operation in model.__call__.get_concrete_function(*spec).graph.get_operations()}
    assert operations & {"While", "StatelessWhile"}


@pytest.fixture
def images() -> np.ndarray:
    return tf1_convnet.inputs(small=True, batch=3)["images"]


@pytest.fixture
def expected(images: np.ndarray) -> np.ndarray:
    return np.asarray(tf1_convnet.make(small=True)(tf.constant(images)))


def in_session(graph: tf.Graph, session: tf1.Session, images: np.ndarray) -> np.ndarray:
    return session.run(graph.get_tensor_by_name(tf1_convnet.OUTPUT), {tf1_convnet.INPUT: images})


def test_frozen_graph(tmp_path: Path, images: np.ndarray, expected: np.ndarray) -> None:
    definition = tf1.GraphDef.FromString(tf1_convnet.write_frozen_graph(tmp_path, small=True).read_bytes())
    kinds = {node.op for node in definition.node}
    assert "FusedBatchNormV3" in kinds
    assert not kinds & {"VarHandleOp", "VariableV2"}
    assert {node.name for node in definition.node if node.op == "Const"} >= VARIABLES
    with tf.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        tf.import_graph_def(definition, name="")
        np.testing.assert_allclose(in_session(graph, session, images), expected, rtol=1e-5)


def test_saved_model(tmp_path: Path, images: np.ndarray, expected: np.ndarray) -> None:
    place = tf1_convnet.write_saved_model(tmp_path, small=True)
    signature = tf.saved_model.load(str(place)).signatures["serving_default"]
    np.testing.assert_allclose(signature(images=tf.constant(images))["probabilities"], expected, rtol=1e-5)


def test_checkpoint(tmp_path: Path, images: np.ndarray, expected: np.ndarray) -> None:
    prefix = str(tf1_convnet.write_checkpoint(tmp_path, small=True))
    assert {name for name, _ in tf.train.list_variables(prefix)} == VARIABLES
    with tf.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        tf1.train.import_meta_graph(f"{prefix}.meta").restore(session, prefix)
        np.testing.assert_allclose(in_session(graph, session, images), expected, rtol=1e-5)


def test_the_files_leave_tensorflow_2_as_it_was() -> None:
    assert tf.executing_eagerly()
    assert find("tensorflow/tf1_convnet").framework == "tensorflow"
