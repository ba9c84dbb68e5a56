"""ResNet-50 written by hand in Keras: the twin of `porter.zoo.torch.resnet50`."""

import keras
import numpy as np
from keras import layers, ops
from torch import nn

from porter.zoo.keras.carry import carry
from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 1: "height", 2: "width"}}


def batch_norm() -> layers.Layer:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)


class Bottleneck(layers.Layer):
    expansion = 4

    def __init__(self, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = layers.Conv2D(planes, 1, use_bias=False)
        self.bn1 = batch_norm()
        # "same" pads a strided convolution on one side only
        self.pad = layers.ZeroPadding2D(1)
        self.conv2 = layers.Conv2D(planes, 3, strides=stride, use_bias=False)
        self.bn2 = batch_norm()
        self.conv3 = layers.Conv2D(planes * self.expansion, 1, use_bias=False)
        self.bn3 = batch_norm()
        self.downsample = downsample

    def call(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = ops.relu(self.bn1(self.conv1(x)))
        out = ops.relu(self.bn2(self.conv2(self.pad(out))))
        out = self.bn3(self.conv3(out))
        return ops.relu(out + identity)


class ResNet(keras.Model):
    def __init__(self, blocks=(3, 4, 6, 3), width=64, num_classes=1000):
        super().__init__()
        self.pad3 = layers.ZeroPadding2D(3)
        self.conv1 = layers.Conv2D(width, 7, strides=2, use_bias=False)
        self.bn1 = batch_norm()
        self.pad1 = layers.ZeroPadding2D(1)  # after a ReLU, 0 is as good as -inf
        self.maxpool = layers.MaxPooling2D(3, strides=2)
        self.layer1 = self._make_layer(width, blocks[0])
        self.layer2 = self._make_layer(2 * width, blocks[1], stride=2)
        self.layer3 = self._make_layer(4 * width, blocks[2], stride=2)
        self.layer4 = self._make_layer(8 * width, blocks[3], stride=2)
        self.avgpool = layers.GlobalAveragePooling2D()
        self.fc = layers.Dense(num_classes)

    @staticmethod
    def _make_layer(planes, blocks, stride=1):
        projection = layers.Conv2D(planes * Bottleneck.expansion, 1, strides=stride, use_bias=False)
        first = Bottleneck(planes, stride, downsample=keras.Sequential([projection, batch_norm()]))
        return keras.Sequential([first, *(Bottleneck(planes) for _ in range(1, blocks))])

    def call(self, x):
        x = ops.relu(self.bn1(self.conv1(self.pad3(x))))
        x = self.maxpool(self.pad1(x))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        return self.fc(self.avgpool(x))


def make(*, small: bool = False) -> keras.Model:
    model = ResNet(blocks=(2, 3, 3, 2), width=8, num_classes=10) if small else ResNet()
    model(keras.Input((None, None, 3)))
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, height, width, 3)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, side, side), dtype=np.float32).transpose(0, 2, 3, 1)}


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model."""
    carry(torch_model, keras_model)
