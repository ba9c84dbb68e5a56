"""WRN-16-4 written by hand in Keras: the twin of `porter.zoo.torch.wrn16_4`."""

import keras
import numpy as np
from keras import layers, ops
from torch import nn

from porter.zoo.keras.carry import carry
from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 1: "height", 2: "width"}}


def batch_norm() -> layers.Layer:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)


class WideBlock(layers.Layer):
    """BatchNorm and ReLU come before each convolution; a projection starts from the activated input."""

    def __init__(self, in_planes, planes, stride=1, dropout=0.3):
        super().__init__()
        self.bn1 = batch_norm()
        # "same" pads a strided convolution on one side only
        self.pad = layers.ZeroPadding2D(1)
        self.conv1 = layers.Conv2D(planes, 3, strides=stride, use_bias=False)
        self.bn2 = batch_norm()
        self.dropout = layers.Dropout(dropout)
        self.conv2 = layers.Conv2D(planes, 3, padding="same", use_bias=False)
        self.shortcut = None
        if stride != 1 or in_planes != planes:
            self.shortcut = layers.Conv2D(planes, 1, strides=stride, use_bias=False)

    def call(self, x):
        out = ops.relu(self.bn1(x))
        identity = x if self.shortcut is None else self.shortcut(out)
        out = ops.relu(self.bn2(self.conv1(self.pad(out))))
        out = self.conv2(self.dropout(out))
        return out + identity


class WideResNet(keras.Model):
    def __init__(self, depth=16, widen=4, base=16, num_classes=10):
        super().__init__()
        blocks = (depth - 4) // 6
        planes = [base, base * widen, 2 * base * widen, 4 * base * widen]
        self.conv1 = layers.Conv2D(planes[0], 3, padding="same", use_bias=False)
        self.group1 = self._make_group(planes[0], planes[1], blocks, stride=1)
        self.group2 = self._make_group(planes[1], planes[2], blocks, stride=2)
        self.group3 = self._make_group(planes[2], planes[3], blocks, stride=2)
        self.bn = batch_norm()
        self.fc = layers.Dense(num_classes)

    @staticmethod
    def _make_group(in_planes, planes, blocks, stride):
        first = WideBlock(in_planes, planes, stride)
        return keras.Sequential([first, *(WideBlock(planes, planes) for _ in range(1, blocks))])

    def call(self, x):
        x = self.conv1(x)
        x = self.group1(x)
        x = self.group2(x)
        x = self.group3(x)
        x = ops.relu(self.bn(x))
        x = ops.mean(x, axis=(1, 2))
        return self.fc(x)


def make(*, small: bool = False) -> keras.Model:
    model = WideResNet(widen=2, base=4) if small else WideResNet()
    model(keras.Input((None, None, 3)))
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, height, width, 3)."""
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, 32, 32), dtype=np.float32).transpose(0, 2, 3, 1)}


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model."""
    carry(torch_model, keras_model)
