"""LeNet, ported from PyTorch (zoo:lenet@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("lenet")
class LeNet(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = layers.Conv2D(4, 5)
        self.pool = layers.AveragePooling2D(2)
        self.conv2 = layers.Conv2D(12, 5)
        self.fc1 = layers.Dense(32)
        self.fc2 = layers.Dense(84)
        self.fc3 = layers.Dense(10)

    def call(self, x):
        x = self.pool(ops.tanh(self.conv1(x)))
        x = self.pool(ops.tanh(self.conv2(x)))
        x = ops.reshape(x, (-1, 300))
        x = ops.tanh(self.fc1(x))
        x = ops.tanh(self.fc2(x))
        return self.fc3(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = LeNet()
    model(keras.Input((32, 32, 1), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, (layers.Dense, layers.Conv2D)):
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
