"""CNN3d, ported from PyTorch (zoo:cnn3d@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def pool_3d(pool, x, pool_size, strides, padding="valid"):
    """`pool` (`ops.max_pool` or `ops.average_pool`) over volumes: within planes first, then along the depth.

    TensorFlow's own 3-D pooling stops at float32.
    """
    _, depth, height, width, channels = ops.shape(x)
    x = ops.reshape(x, (-1, height, width, channels))
    x = pool(x, tuple(pool_size[1:]), tuple(strides[1:]), padding)
    _, height, width, _ = ops.shape(x)
    x = ops.reshape(x, (-1, depth, height * width, channels))
    x = pool(x, (pool_size[0], 1), (strides[0], 1), padding)
    return ops.reshape(x, (-1, ops.shape(x)[1], height, width, channels))


@keras.saving.register_keras_serializable("cnn3d")
class ConvBlock3d(layers.Layer):
    def __init__(self, filters, size, **kwargs):
        super().__init__(**kwargs)
        self.size = size
        self.conv = layers.Conv3D(filters, 3, padding="same")
        self.bn = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)

    def call(self, x):
        return pool_3d(
            ops.max_pool, ops.relu(self.bn(self.conv(x))), (self.size, 2, 2), (self.size, 2, 2), padding="valid"
        )


@keras.saving.register_keras_serializable("cnn3d")
class CNN3d(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.block1 = ConvBlock3d(4, 1)
        self.block2 = ConvBlock3d(8, 2)
        self.block3 = ConvBlock3d(16, 2)
        self.dropout = layers.Dropout(0.5)
        self.fc = layers.Dense(10)

    def call(self, x, training=None):  # Keras hands it on to every layer
        x = self.block1(x)
        x = self.block2(x)
        x = self.block3(x)
        x = ops.mean(x, axis=(1, 2, 3))
        return self.fc(self.dropout(x))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = CNN3d()
    model(keras.Input((None, None, None, 3), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, (layers.Dense, layers.Conv3D)):
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
