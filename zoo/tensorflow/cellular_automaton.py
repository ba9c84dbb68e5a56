"""Neural cellular automaton as a `tf.Module`: one small rule applied to every cell, `steps` times over."""

import numpy as np
import tensorflow as tf

DYNAMIC = {"cells": {0: "batch", 1: "height", 2: "width"}}


class CellularAutomaton(tf.Module):
    """Cells (batch, height, width, channels) after `steps` updates; the edges of the grid see zeros beyond."""

    def __init__(self, channels, hidden, seed=0, name=None):
        super().__init__(name=name)
        rng = np.random.default_rng(seed)
        self.filters = tf.constant(perception(channels))
        self.hidden_kernel = self._kernel(rng, 3 * channels, hidden, "hidden_kernel")
        self.hidden_bias = tf.Variable(rng.standard_normal(hidden).astype("float32") * 0.1, name="hidden_bias")
        self.update_kernel = self._kernel(rng, hidden, channels, "update_kernel")
        self.rate = tf.Variable(0.3, trainable=False, name="rate")

    @staticmethod
    def _kernel(rng, rows, columns, name):
        value = rng.standard_normal((1, 1, rows, columns)) / np.sqrt(rows)
        return tf.Variable(value.astype("float32"), name=name)

    def step(self, cells):
        """The cells after one update."""
        seen = tf.nn.depthwise_conv2d(cells, self.filters, strides=[1, 1, 1, 1], padding="SAME")
        hidden = tf.nn.relu(tf.nn.conv2d(seen, self.hidden_kernel, strides=1, padding="SAME") + self.hidden_bias)
        update = tf.nn.conv2d(hidden, self.update_kernel, strides=1, padding="SAME")
        return cells + self.rate * tf.tanh(update)

    @tf.function
    def __call__(self, cells, steps):
        _, cells = tf.while_loop(
            lambda step, _: step < steps,
            lambda step, cells: (step + 1, self.step(cells)),
            (tf.constant(0), cells),
            shape_invariants=(tf.TensorShape([]), cells.shape),
        )
        return cells


def perception(channels):
    """What a cell sees of each channel: itself and both slopes around it, (3, 3, channels, 3)."""
    slope = np.outer([1, 2, 1], [-1, 0, 1]) / 8
    itself = np.outer([0, 1, 0], [0, 1, 0])
    kernel = np.stack([itself, slope, slope.T], axis=-1)[:, :, None, :]
    return np.tile(kernel, (1, 1, channels, 1)).astype("float32")


def make(*, small: bool = False) -> tf.Module:
    return CellularAutomaton(channels=4, hidden=8) if small else CellularAutomaton(channels=16, hidden=128)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Cells (batch, height, width, channels), and how often they are updated: an int32 scalar."""
    side, channels, steps = (9, 4, 3) if small else (40, 16, 20)
    rng = np.random.default_rng(seed)
    cells = rng.standard_normal((batch, side, side, channels), dtype=np.float32)
    return {"cells": cells, "steps": np.array(steps, dtype=np.int32)}
