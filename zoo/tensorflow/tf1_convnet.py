"""A convolutional classifier as it was written for TensorFlow 1: a graph, a session, variables found by scope.

`make` wraps the graph as a function that TensorFlow 2 can call. The three `write_*` functions leave what such a
program left behind: a frozen graph, a SavedModel, or a checkpoint beside its graph.
"""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

DYNAMIC = {"images": {0: "batch"}}
FULL: dict[str, Any] = {"side": 28, "widths": (32, 64), "hidden": 256, "classes": 10}
SMALL: dict[str, Any] = {"side": 12, "widths": (4, 6), "hidden": 8, "classes": 5}
INPUT, OUTPUT = "images:0", "softmax:0"


def variable(name, shape, value, trainable=True):
    def initializer(shape, dtype=None, partition_info=None):
        return tf.constant(value.astype("float32"))

    return tf1.get_variable(name, shape, initializer=initializer, trainable=trainable, use_resource=True)


def conv2d(x, filters, name, rng):
    with tf1.variable_scope(name):
        shape = (5, 5, int(x.shape[-1]), filters)
        kernel = variable("kernel", shape, rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[:3])))
        return tf1.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME", name="conv2d")


def batch_norm(x, name, rng):
    with tf1.variable_scope(name):
        shape = (int(x.shape[-1]),)
        gamma = variable("gamma", shape, rng.random(shape) + 0.5)
        beta = variable("beta", shape, rng.standard_normal(shape) * 0.1)
        mean = variable("moving_mean", shape, rng.standard_normal(shape) * 0.1, trainable=False)
        variance = variable("moving_variance", shape, rng.random(shape) + 0.5, trainable=False)
        x, _, _ = tf1.nn.fused_batch_norm(
            x, gamma, beta, mean, variance, epsilon=1e-3, is_training=False, name="fused_batch_norm"
        )
        return x


def dense(x, units, name, rng):
    with tf1.variable_scope(name):
        shape = (int(x.shape[-1]), units)
        kernel = variable("kernel", shape, rng.standard_normal(shape) * np.sqrt(1 / shape[0]))
        bias = variable("bias", (units,), rng.standard_normal(units) * 0.1)
        return tf1.nn.bias_add(tf1.matmul(x, kernel, name="matmul"), bias, name="bias_add")


def network(images, side, widths, hidden, classes, seed=0):
    """Images (batch, side * side), as the digits came, to probabilities (batch, classes)."""
    rng = np.random.default_rng(seed)
    x = tf1.reshape(images, [-1, side, side, 1], name="as_images")
    for index, width in enumerate(widths, start=1):
        x = conv2d(x, width, f"conv{index}", rng)
        x = tf1.nn.relu(batch_norm(x, f"bn{index}", rng), name=f"relu{index}")
        x = tf1.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME", name=f"pool{index}")
    x = tf1.reshape(x, [-1, int(np.prod(x.shape[1:]))], name="flat")
    x = tf1.nn.relu(dense(x, hidden, "dense1", rng), name="relu_dense")
    logits = dense(x, classes, "dense2", rng)
    return tf1.nn.softmax(logits, name="softmax")


def make(*, small: bool = False) -> tf.types.experimental.ConcreteFunction:
    sizes = SMALL if small else FULL
    signature = [tf.TensorSpec((None, sizes["side"] ** 2), tf.float32, name="images")]
    return tf1.wrap_function(lambda images: network(images, **sizes), signature)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Flat grey images (batch, side * side) of 0 to 1."""
    side = (SMALL if small else FULL)["side"]
    rng = np.random.default_rng(seed)
    return {"images": rng.random((batch, side * side), dtype=np.float32)}


def session(small):
    """A session of a graph of its own, with the variables set; the caller closes it."""
    sizes = SMALL if small else FULL
    with tf.Graph().as_default() as graph:
        network(tf1.placeholder(tf.float32, (None, sizes["side"] ** 2), name="images"), **sizes)
        opened = tf1.Session(graph=graph)
        opened.run(tf1.global_variables_initializer())
    return opened


def write_frozen_graph(folder: Path, *, small: bool = False) -> Path:
    """`frozen.pb` in `folder`: one GraphDef whose variables are constants."""
    with session(small) as opened:
        graph = opened.graph
        frozen = tf1.graph_util.convert_variables_to_constants(opened, graph.as_graph_def(), [OUTPUT.split(":")[0]])
    file = folder / "frozen.pb"
    file.write_bytes(frozen.SerializeToString())
    return file


def write_saved_model(folder: Path, *, small: bool = False) -> Path:
    """A SavedModel in `folder`, with the signature `serving_default`."""
    place = folder / "saved_model"
    with session(small) as opened:
        graph = opened.graph
        tf1.saved_model.simple_save(
            opened,
            str(place),
            inputs={"images": graph.get_tensor_by_name(INPUT)},
            outputs={"probabilities": graph.get_tensor_by_name(OUTPUT)},
        )
    return place


def write_checkpoint(folder: Path, *, small: bool = False) -> Path:
    """`model.ckpt` in `folder`: the graph in .meta, the variables in .index and .data; returns the common prefix."""
    with session(small) as opened, opened.graph.as_default():
        return Path(tf1.train.Saver().save(opened, str(folder / "model.ckpt")))
