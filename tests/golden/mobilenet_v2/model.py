"""MobileNetV2, ported from PyTorch (zoo:mobilenet_v2@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("mobilenet_v2")
class ConvBNReLU(layers.Layer):
    def __init__(self, filters=None, kernel_size=3, strides=1, depthwise=False, **kwargs):
        super().__init__(**kwargs)
        self.layers = [
            layers.ZeroPadding2D(kernel_size // 2),
            layers.DepthwiseConv2D(kernel_size, strides=strides, use_bias=False)
            if depthwise
            else layers.Conv2D(filters, kernel_size, strides=strides, use_bias=False),
            layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
            layers.Activation("relu6"),
        ]

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@keras.saving.register_keras_serializable("mobilenet_v2")
class InvertedResidual(layers.Layer):
    def __init__(self, filters, strides, conv_filters=None, use_residual=False, **kwargs):
        super().__init__(**kwargs)
        self.use_residual = use_residual
        self.conv = keras.Sequential(
            [
                *([ConvBNReLU(conv_filters, kernel_size=1)] if conv_filters else []),
                ConvBNReLU(strides=strides, depthwise=True),
                layers.Conv2D(filters, 1, use_bias=False),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
            ]
        )

    def call(self, x):
        return x + self.conv(x) if self.use_residual else self.conv(x)


@keras.saving.register_keras_serializable("mobilenet_v2")
class MobileNetV2(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.features = keras.Sequential(
            [
                ConvBNReLU(8, strides=2),
                InvertedResidual(4, 1),
                InvertedResidual(6, 2, conv_filters=24),
                InvertedResidual(6, 1, conv_filters=36, use_residual=True),
                InvertedResidual(8, 2, conv_filters=36),
                *(InvertedResidual(8, 1, conv_filters=48, use_residual=True) for _ in range(2)),
                InvertedResidual(12, 2, conv_filters=48),
                InvertedResidual(12, 1, conv_filters=72, use_residual=True),
                ConvBNReLU(32, kernel_size=1),
            ]
        )
        self.classifier = keras.Sequential([layers.Dropout(0.2), layers.Dense(10)])

    def call(self, x, training=None):  # Keras hands it on to every layer
        x = self.features(x)
        x = ops.mean(x, axis=(1, 2))
        return self.classifier(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = MobileNetV2()
    model(keras.Input((None, None, 3), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, layers.DepthwiseConv2D):
        draw(layer, math.prod(layer.kernel.shape[:-2]) ** -0.5)
    elif isinstance(layer, (layers.Dense, layers.Conv2D)):
        draw(layer, math.prod(layer.kernel.shape[:-1]) ** -0.5)
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def draw(layer, bound):
    for variable in layer.weights:
        variable.assign(keras.random.uniform(variable.shape, -bound, bound))


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a list or chain, paddings left out."""
    for step in path.split("."):
        if step.isdigit():
            parts = getattr(model, "layers", model)
            numbered = [part for part in parts if not isinstance(part, layers.ZeroPadding2D)]
            model = numbered[int(step)]
        else:
            model = getattr(model, step)
    return model
