"""EfficientNet, ported from PyTorch (zoo:efficientnet_b0@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("efficientnet_b0")
class ConvNormAct(layers.Layer):
    def __init__(self, kernel_size, filters=None, strides=1, depthwise=False, **kwargs):
        super().__init__(**kwargs)
        self.layers = [
            layers.ZeroPadding2D(kernel_size // 2),
            layers.DepthwiseConv2D(kernel_size, strides=strides, use_bias=False)
            if depthwise
            else layers.Conv2D(filters, kernel_size, strides=strides, use_bias=False),
            layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
            layers.Activation("silu"),
        ]

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@keras.saving.register_keras_serializable("efficientnet_b0")
class SqueezeExcitation(layers.Layer):
    def __init__(self, filters, fc2_filters, **kwargs):
        super().__init__(**kwargs)
        self.fc1 = layers.Conv2D(filters, 1)
        self.fc2 = layers.Conv2D(fc2_filters, 1)

    def call(self, x):
        scale = ops.silu(self.fc1(ops.mean(x, axis=(1, 2), keepdims=True)))
        return x * ops.sigmoid(self.fc2(scale))


@keras.saving.register_keras_serializable("efficientnet_b0")
class MBConv(layers.Layer):
    def __init__(
        self, filters, project_filters, fc2_filters, kernel_size, strides, expand_=False, use_residual=False, **kwargs
    ):
        super().__init__(**kwargs)
        self.use_residual = use_residual
        self.expand = ConvNormAct(1, filters=24 * filters) if expand_ else None
        self.depthwise = ConvNormAct(kernel_size, strides=strides, depthwise=True)
        self.se = SqueezeExcitation(filters, fc2_filters)
        self.project = layers.Conv2D(project_filters, 1, use_bias=False)
        self.bn = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)

    def call(self, x):
        out = self.expand(x) if self.expand else x
        out = self.se(self.depthwise(out))
        out = self.bn(self.project(out))
        return x + out if self.use_residual else out


@keras.saving.register_keras_serializable("efficientnet_b0")
class EfficientNet(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.stem = ConvNormAct(3, filters=8, strides=2)
        self.stages = [
            keras.Sequential([MBConv(2, 8, fc2_filters=8, kernel_size=3, strides=1, use_residual=True)]),
            keras.Sequential(
                [
                    MBConv(2, 12, fc2_filters=48, kernel_size=3, strides=2, expand_=True),
                    MBConv(3, 12, fc2_filters=72, kernel_size=3, strides=1, expand_=True, use_residual=True),
                ]
            ),
            keras.Sequential(
                [
                    MBConv(3, 16, fc2_filters=72, kernel_size=5, strides=2, expand_=True),
                    *(
                        MBConv(4, 16, fc2_filters=96, kernel_size=5, strides=1, expand_=True, use_residual=True)
                        for _ in range(2)
                    ),
                ]
            ),
        ]
        self.head = ConvNormAct(1, filters=32)
        self.dropout = layers.Dropout(0.2)
        self.classifier = layers.Dense(10)

    def call(self, x, training=None):  # Keras hands it on to every layer
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        x = ops.mean(self.head(x), axis=(1, 2))
        return self.classifier(self.dropout(x))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = EfficientNet()
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
