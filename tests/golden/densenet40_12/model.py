"""DenseNet, ported from PyTorch (zoo:densenet40_12@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("densenet40_12")
class DenseLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.conv = layers.Conv2D(4, 3, padding="same", use_bias=False)
        self.dropout = layers.Dropout(0.2)

    def call(self, x):
        new = self.dropout(self.conv(ops.relu(self.norm(x))))
        return ops.concatenate([x, new], axis=3)


@keras.saving.register_keras_serializable("densenet40_12")
class Transition(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.conv = layers.Conv2D(filters, 1, use_bias=False)
        self.pool = layers.AveragePooling2D(2)

    def call(self, x):
        return self.pool(self.conv(ops.relu(self.norm(x))))


@keras.saving.register_keras_serializable("densenet40_12")
class DenseNet(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = layers.Conv2D(8, 3, padding="same", use_bias=False)
        self.block1 = keras.Sequential([DenseLayer() for _ in range(3)])
        self.trans1 = Transition(20)
        self.block2 = keras.Sequential([DenseLayer() for _ in range(3)])
        self.trans2 = Transition(32)
        self.block3 = keras.Sequential([DenseLayer() for _ in range(3)])
        self.norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.fc = layers.Dense(10)

    def call(self, x, training=None):  # Keras hands it on to every layer
        x = self.conv1(x)
        x = self.trans1(self.block1(x))
        x = self.trans2(self.block2(x))
        x = ops.relu(self.norm(self.block3(x)))
        x = ops.mean(x, axis=(1, 2))
        return self.fc(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = DenseNet()
    model(keras.Input((None, None, 3), name="x"))
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
