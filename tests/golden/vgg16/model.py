"""VGG, ported from PyTorch (zoo:vgg16@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("vgg16")
class VGG(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.features = keras.Sequential()
        for filters, count in ((4, 2), (8, 2), (12, 3), (16, 3), (16, 3)):
            for _ in range(count):
                self.features.add(layers.Conv2D(filters, 3, padding="same"))
                self.features.add(layers.BatchNormalization(momentum=0.9, epsilon=1e-05))
                self.features.add(layers.ReLU())
            self.features.add(layers.MaxPooling2D(2))
        self.classifier = keras.Sequential(
            [
                layers.Dense(32),
                layers.ReLU(),
                layers.Dropout(0.5),
                layers.Dense(32),
                layers.ReLU(),
                layers.Dropout(0.5),
                layers.Dense(10),
            ]
        )

    def call(self, x, training=None):  # Keras hands it on to every layer
        x = self.features(x)
        x = ops.reshape(x, (-1, 64))
        return self.classifier(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = VGG()
    model(keras.Input((64, 64, 3), name="x"))
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
