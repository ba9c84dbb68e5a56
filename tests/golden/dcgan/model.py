"""Generator, ported from PyTorch (zoo:dcgan@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("dcgan")
class Generator(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.main = keras.Sequential([layers.Conv2DTranspose(16, 4, use_bias=False)])
        for filters in (8, 4, 3):
            self.main.add(layers.BatchNormalization(momentum=0.9, epsilon=1e-05))
            self.main.add(layers.ReLU())
            self.main.add(layers.Conv2DTranspose(filters, 4, strides=2, padding="same", use_bias=False))
        self.main.add(layers.Activation("tanh"))

    def call(self, z, training=None):  # Keras hands it on to every layer
        return self.main(z)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = Generator()
    model(keras.Input((1, 1, 12), name="z"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, layers.Conv2DTranspose):
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
