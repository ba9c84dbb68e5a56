"""WideResNet, ported from PyTorch (zoo:wrn16_4@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("wrn16_4")
class WideBlock(layers.Layer):
    def __init__(self, filters, strides=1, shortcut=False, **kwargs):
        super().__init__(**kwargs)
        self.bn1 = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.shortcut = layers.Conv2D(filters, 1, strides=strides, use_bias=False) if shortcut else None
        self.conv1_pad = layers.ZeroPadding2D(1)
        self.conv1 = layers.Conv2D(filters, 3, strides=strides, use_bias=False)
        self.bn2 = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.dropout = layers.Dropout(0.3)
        self.conv2_pad = layers.ZeroPadding2D(1)
        self.conv2 = layers.Conv2D(filters, 3, use_bias=False)

    def call(self, x):
        out = ops.relu(self.bn1(x))
        identity = self.shortcut(out) if self.shortcut else x
        out = ops.relu(self.bn2(self.conv1(self.conv1_pad(out))))
        out = self.conv2(self.conv2_pad(self.dropout(out)))
        return out + identity


@keras.saving.register_keras_serializable("wrn16_4")
class WideResNet(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = layers.Conv2D(4, 3, padding="same", use_bias=False)
        self.group1 = keras.Sequential([WideBlock(8, shortcut=True), WideBlock(8)])
        self.group2 = keras.Sequential([WideBlock(16, strides=2, shortcut=True), WideBlock(16)])
        self.group3 = keras.Sequential([WideBlock(32, strides=2, shortcut=True), WideBlock(32)])
        self.bn = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.fc = layers.Dense(10)

    def call(self, x, training=None):  # Keras hands it on to every layer
        x = self.conv1(x)
        x = self.group1(x)
        x = self.group2(x)
        x = self.group3(x)
        x = ops.relu(self.bn(x))
        x = ops.mean(x, axis=(1, 2))
        return self.fc(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = WideResNet()
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
