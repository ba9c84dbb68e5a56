"""ConvNeXtV2, ported from PyTorch (zoo:convnext_tiny@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def l2_norm(x, axis=None, keepdims=False):
    """The Euclidean norm, with gradient 0 rather than NaN where it is 0."""
    squares = ops.sum(ops.square(x), axis=axis, keepdims=keepdims)
    zero = ops.equal(squares, 0)
    return ops.where(zero, 0, ops.sqrt(ops.where(zero, 1, squares)))


@keras.saving.register_keras_serializable("convnext_tiny")
class LayerNorm2d(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.layer_normalization = layers.LayerNormalization(epsilon=1e-06)

    def call(self, x):
        return self.layer_normalization(x)


@keras.saving.register_keras_serializable("convnext_tiny")
class GRN(layers.Layer):
    def __init__(self, shape, **kwargs):
        super().__init__(**kwargs)
        self.gamma = self.add_weight(name="gamma", shape=(1, 1, 1, shape))
        self.beta = self.add_weight(name="beta", shape=(1, 1, 1, shape))

    def call(self, x):
        response = l2_norm(x, axis=(1, 2), keepdims=True)
        response = response / (ops.mean(response, axis=-1, keepdims=True) + 1e-06)
        return self.gamma * (x * response) + self.beta + x


@keras.saving.register_keras_serializable("convnext_tiny")
class Block(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.dwconv = layers.DepthwiseConv2D(7, padding="same")
        self.norm = layers.LayerNormalization(epsilon=1e-06)
        self.pwconv1 = layers.Dense(4 * units)
        self.grn = GRN(4 * units)
        self.pwconv2 = layers.Dense(units)

    def call(self, x):
        y = self.dwconv(x)
        y = self.pwconv1(self.norm(y))
        y = self.pwconv2(self.grn(ops.gelu(y, approximate=False)))
        return x + y


@keras.saving.register_keras_serializable("convnext_tiny")
class ConvNeXtV2(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.downsample_layers = [
            keras.Sequential([layers.Conv2D(4, 4, strides=4), LayerNorm2d()]),
            keras.Sequential([LayerNorm2d(), layers.Conv2D(8, 2, strides=2)]),
            keras.Sequential([LayerNorm2d(), layers.Conv2D(12, 2, strides=2)]),
            keras.Sequential([LayerNorm2d(), layers.Conv2D(16, 2, strides=2)]),
        ]
        self.stages = [
            keras.Sequential([Block(4) for _ in range(2)]),
            keras.Sequential([Block(8) for _ in range(2)]),
            keras.Sequential([Block(12) for _ in range(3)]),
            keras.Sequential([Block(16) for _ in range(2)]),
        ]
        self.norm = layers.LayerNormalization(epsilon=1e-06)
        self.head = layers.Dense(10)

    def call(self, x):
        for downsample_layer, stage in zip(self.downsample_layers, self.stages, strict=True):
            x = stage(downsample_layer(x))
        x = self.norm(ops.mean(x, axis=(1, 2)))
        return self.head(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = ConvNeXtV2()
    model(keras.Input((None, None, 3), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as the source does."""
    if isinstance(layer, layers.DepthwiseConv2D):
        draw(layer, math.prod(layer.kernel.shape[:-2]) ** -0.5)
    elif isinstance(layer, (layers.Dense, layers.Conv2D)):
        draw(layer, math.prod(layer.kernel.shape[:-1]) ** -0.5)
    elif isinstance(layer, GRN):
        redraw(layer.gamma, keras.initializers.Zeros())
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def draw(layer, bound):
    for variable in layer.weights:
        variable.assign(keras.random.uniform(variable.shape, -bound, bound))


def redraw(variable, initializer):
    variable.assign(initializer(variable.shape, variable.dtype))


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
