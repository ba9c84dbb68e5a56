"""ResNet, ported from PyTorch (zoo:resnet50) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("resnet50")
class Bottleneck(layers.Layer):
    def __init__(self, filters, strides=1, downsample=False, **kwargs):
        super().__init__(**kwargs)
        self.downsample = None
        if downsample:
            self.downsample = keras.Sequential(
                [
                    layers.Conv2D(4 * filters, 1, strides=strides, use_bias=False),
                    layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                ]
            )
        self.conv1 = layers.Conv2D(filters, 1, use_bias=False)
        self.bn1 = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.conv2_pad = layers.ZeroPadding2D(1)
        self.conv2 = layers.Conv2D(filters, 3, strides=strides, use_bias=False)
        self.bn2 = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.conv3 = layers.Conv2D(4 * filters, 1, use_bias=False)
        self.bn3 = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)

    def call(self, x):
        identity = self.downsample(x) if self.downsample else x
        out = ops.relu(self.bn1(self.conv1(x)))
        out = ops.relu(self.bn2(self.conv2(self.conv2_pad(out))))
        out = self.bn3(self.conv3(out))
        return ops.relu(out + identity)


@keras.saving.register_keras_serializable("resnet50")
class ResNet(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1_pad = layers.ZeroPadding2D(3)
        self.conv1 = layers.Conv2D(64, 7, strides=2, use_bias=False)
        self.bn1 = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.maxpool_pad = layers.ZeroPadding2D(1)
        self.maxpool = layers.MaxPooling2D(3, strides=2)
        self.layer1 = keras.Sequential([Bottleneck(64, downsample=True), *(Bottleneck(64) for _ in range(2))])
        self.layer2 = keras.Sequential(
            [Bottleneck(128, strides=2, downsample=True), *(Bottleneck(128) for _ in range(3))]
        )
        self.layer3 = keras.Sequential(
            [Bottleneck(256, strides=2, downsample=True), *(Bottleneck(256) for _ in range(5))]
        )
        self.layer4 = keras.Sequential(
            [Bottleneck(512, strides=2, downsample=True), *(Bottleneck(512) for _ in range(2))]
        )
        self.fc = layers.Dense(1000)

    def call(self, x, training=None):  # Keras hands it on to every layer
        x = self.maxpool(self.maxpool_pad(ops.relu(self.bn1(self.conv1(self.conv1_pad(x))))))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = ops.mean(x, axis=(1, 2))
        return self.fc(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = ResNet()
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
