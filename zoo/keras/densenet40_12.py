"""DenseNet (L = 40, k = 12) written by hand in Keras: the twin of `porter.zoo.torch.densenet40_12`."""

import keras
import numpy as np
from keras import layers, ops
from torch import nn

from porter.zoo.keras.carry import carry
from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 1: "height", 2: "width"}}


def batch_norm() -> layers.Layer:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)


class DenseLayer(layers.Layer):
    def __init__(self, growth, dropout):
        super().__init__()
        self.norm = batch_norm()
        self.conv = layers.Conv2D(growth, 3, padding="same", use_bias=False)
        self.dropout = layers.Dropout(dropout)

    def call(self, x):
        new = self.dropout(self.conv(ops.relu(self.norm(x))))
        return ops.concatenate([x, new], axis=-1)


class Transition(layers.Layer):
    def __init__(self, channels):
        super().__init__()
        self.norm = batch_norm()
        self.conv = layers.Conv2D(channels, 1, use_bias=False)
        self.pool = layers.AveragePooling2D(2)

    def call(self, x):
        return self.pool(self.conv(ops.relu(self.norm(x))))


class DenseNet(keras.Model):
    def __init__(self, depth=40, growth=12, stem=16, num_classes=10, dropout=0.2):
        super().__init__()
        layers_per_block = (depth - 4) // 3
        added = layers_per_block * growth
        self.conv1 = layers.Conv2D(stem, 3, padding="same", use_bias=False)
        self.block1 = self._make_block(layers_per_block, growth, dropout)
        self.trans1 = Transition(stem + added)
        self.block2 = self._make_block(layers_per_block, growth, dropout)
        self.trans2 = Transition(stem + 2 * added)
        self.block3 = self._make_block(layers_per_block, growth, dropout)
        self.norm = batch_norm()
        self.pool = layers.GlobalAveragePooling2D()
        self.fc = layers.Dense(num_classes)

    @staticmethod
    def _make_block(count, growth, dropout):
        return keras.Sequential([DenseLayer(growth, dropout) for _ in range(count)])

    def call(self, x):
        x = self.conv1(x)
        x = self.trans1(self.block1(x))
        x = self.trans2(self.block2(x))
        x = ops.relu(self.norm(self.block3(x)))
        return self.fc(self.pool(x))


def make(*, small: bool = False) -> keras.Model:
    model = DenseNet(depth=13, growth=4, stem=8) if small else DenseNet()
    model(keras.Input((None, None, 3)))
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, height, width, 3)."""
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, 32, 32), dtype=np.float32).transpose(0, 2, 3, 1)}


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model."""
    carry(torch_model, keras_model)
