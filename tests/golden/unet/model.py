"""UNet, ported from PyTorch (zoo:unet@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def bilinear_upsampling(factor):
    """Images `factor` times as large, exactly as interpolated: the mean over a pixel's width of repeated pixels."""
    width = 2 * factor
    return keras.Sequential([layers.UpSampling2D(width), layers.AveragePooling2D(width, strides=2, padding="same")])


@keras.saving.register_keras_serializable("unet")
class DoubleConv(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.layers = [
            layers.Conv2D(filters, 3, padding="same", use_bias=False),
            layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
            layers.ReLU(),
            layers.Conv2D(filters, 3, padding="same", use_bias=False),
            layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
            layers.ReLU(),
        ]

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@keras.saving.register_keras_serializable("unet")
class Down(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.pool = layers.MaxPooling2D(2)
        self.conv = DoubleConv(filters)

    def call(self, x):
        return self.conv(self.pool(x))


@keras.saving.register_keras_serializable("unet")
class Up(layers.Layer):
    def __init__(self, filters, transposed=False, **kwargs):
        super().__init__(**kwargs)
        self.up = (
            layers.Conv2DTranspose(filters, 2, strides=2)
            if transposed
            else keras.Sequential([bilinear_upsampling(2), layers.Conv2D(filters, 1)])
        )
        self.conv = DoubleConv(filters)

    def call(self, x, skip):
        x = ops.concatenate([skip, self.up(x)], axis=3)
        return self.conv(x)


@keras.saving.register_keras_serializable("unet")
class UNet(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inc = DoubleConv(4)
        self.down1 = Down(8)
        self.down2 = Down(16)
        self.down3 = Down(32)
        self.down4 = Down(64)
        self.up1 = Up(32, transposed=True)
        self.up2 = Up(16, transposed=True)
        self.up3 = Up(8)
        self.up4 = Up(4)
        self.outc = layers.Conv2D(2, 1)

    def call(self, x, training=None):  # Keras hands it on to every layer
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.down4(x4)
        x = self.up1(x, x4)
        x = self.up2(x, x3)
        x = self.up3(x, x2)
        x = self.up4(x, x1)
        return self.outc(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = UNet()
    model(keras.Input((None, None, 3), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, (layers.Conv2D, layers.Conv2DTranspose)):
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
