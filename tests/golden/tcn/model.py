"""TCN, ported from PyTorch (zoo:tcn@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("tcn")
class CausalConv1d(layers.Layer):
    def __init__(self, left, dilation_rate=1, **kwargs):
        super().__init__(**kwargs)
        self.left = left
        self.conv = layers.Conv1D(8, 3, dilation_rate=dilation_rate)

    def call(self, x):
        return self.conv(ops.pad(x, [(0, 0), (self.left, 0), (0, 0)]))


@keras.saving.register_keras_serializable("tcn")
class TemporalBlock(layers.Layer):
    def __init__(self, dilation_rate, left, downsample=False, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = CausalConv1d(left, dilation_rate=dilation_rate)
        self.dropout = layers.Dropout(0.2)
        self.conv2 = CausalConv1d(left, dilation_rate=dilation_rate)
        self.downsample = layers.Conv1D(8, 1) if downsample else None

    def call(self, x):
        out = self.dropout(ops.relu(self.conv1(x)))
        out = self.dropout(ops.relu(self.conv2(out)))
        residual = self.downsample(x) if self.downsample else x
        return ops.relu(out + residual)


@keras.saving.register_keras_serializable("tcn")
class TCN(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.network = keras.Sequential(
            [TemporalBlock(1, 2, downsample=True), TemporalBlock(2, 4), TemporalBlock(4, 8)]
        )
        self.head = layers.Conv1D(5, 1)

    def call(self, x, training=None):  # Keras hands it on to every layer
        return self.head(self.network(x))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = TCN()
    model(keras.Input((None, 3), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, layers.Conv1D):
        bound = math.prod(layer.kernel.shape[:-1]) ** -0.5
        for variable in layer.weights:
            variable.assign(keras.random.uniform(variable.shape, -bound, bound))
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
