"""UNet, ported from PyTorch (zoo:unet@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def along(weights, axis, rank):
    """A vector made ready for a broadcast along an axis."""
    return ops.reshape(weights, (-1,) + (1,) * (rank - 1 - axis))


def resized_axes(x, size, scale):
    """(axis, old size, new size, step between samples) of every axis that is resized."""
    for axis, given in enumerate(size or scale, start=1):
        if given is None:
            continue
        old = ops.shape(x)[axis]
        new, step = given, None
        if scale:
            new = (
                int(old * given)
                if isinstance(old, int)
                else ops.cast(ops.floor(ops.cast(old, "float64") * given), "int32")
            )
            step = 1 / given
        yield axis, old, new, step


def source_positions(old, new, step, coordinates):
    """Where the samples of an axis of `new` elements lie on the axis of `old` elements that they are made of."""
    dtype = keras.config.floatx()
    position = ops.arange(new, dtype=dtype)
    old, new = ops.convert_to_tensor(old, dtype=dtype), ops.convert_to_tensor(new, dtype=dtype)
    if coordinates == "align_corners":
        return position * ((old - 1) / ops.maximum(new - 1, 1))
    if coordinates == "asymmetric":
        return position * (old / new if step is None else step)
    centre = (position + 0.5) * (old / new if step is None else step) - 0.5
    if coordinates == "pytorch_half_pixel":
        return ops.where(new > 1, centre, ops.zeros_like(centre))
    if coordinates == "half_pixel_symmetric" and step is not None:
        return centre + old / 2 * (1 - new * step / old)
    return centre


def resize_linear(x, size=None, scale=None, coordinates="half_pixel"):
    """Linear interpolation; beyond its ends an axis goes on as it ends."""
    for axis, old, new, step in resized_axes(x, size, scale):
        position = source_positions(old, new, step, coordinates)
        position = ops.clip(position, 0, ops.cast(old - 1, position.dtype))
        low = ops.floor(position)
        share = ops.cast(along(position - low, axis, len(x.shape)), x.dtype)
        low = ops.cast(low, "int32")
        high = ops.minimum(low + 1, old - 1)
        x = ops.take(x, low, axis=axis) * (1 - share) + ops.take(x, high, axis=axis) * share
    return x


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
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.up_1 = layers.Conv2D(filters, 1)
        self.conv = DoubleConv(filters)

    def call(self, x, skip):
        x = ops.concatenate([skip, self.up_1(resize_linear(x, scale=(2.0, 2.0)))], axis=3)
        return self.conv(x)


@keras.saving.register_keras_serializable("unet")
class UpVariant(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.up = layers.Conv2DTranspose(filters, 2, strides=2)
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
        self.up1 = UpVariant(32)
        self.up2 = UpVariant(16)
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


def initialize(model):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    for layer in model._flatten_layers():
        if isinstance(layer, (layers.Conv2D, layers.Conv2DTranspose)):
            draw(layer, math.prod(layer.kernel.shape[:-1]) ** -0.5)


def draw(layer, bound):
    for variable in layer.weights:
        variable.assign(keras.random.uniform(variable.shape, -bound, bound))


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
