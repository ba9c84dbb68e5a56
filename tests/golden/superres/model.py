"""SuperResolution, ported from PyTorch (zoo:superres@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def pixel_shuffle(x, factor):
    """Channels counted as (depth, row, column) become blocks of `factor` x `factor` pixels: torch's order."""
    _, height, width, channels = ops.shape(x)
    depth = channels // factor**2
    x = ops.reshape(x, (-1, height, width, depth, factor, factor))
    x = ops.transpose(x, (0, 1, 4, 2, 5, 3))
    return ops.reshape(x, (-1, height * factor, width * factor, depth))


@keras.saving.register_keras_serializable("superres")
class SuperResolution(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = layers.Conv2D(8, 5, padding="same")
        self.conv2 = layers.Conv2D(8, 3, padding="same")
        self.conv3 = layers.Conv2D(4, 3, padding="same")
        self.conv4 = layers.Conv2D(8, 3, padding="same")

    def call(self, x):
        x = ops.relu(self.conv1(x))
        x = ops.relu(self.conv2(x))
        x = ops.relu(self.conv3(x))
        return pixel_shuffle(self.conv4(x), 2)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = SuperResolution()
    model(keras.Input((None, None, 2), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, layers.Conv2D):
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
