"""MLP, ported from PyTorch (zoo:mlp@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("mlp")
class MLP(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embed = layers.Dense(16)
        self.layers_ = [layers.Dense(16) for _ in range(12)]
        self.head = layers.Dense(5)

    def call(self, x):
        x = self.embed(x)
        for layer in self.layers_:
            x = ops.gelu(layer(x), approximate=False)
        return self.head(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = MLP()
    model(keras.Input((6,), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, layers.Dense):
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
