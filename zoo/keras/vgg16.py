"""VGG-16 with BatchNorm written by hand in Keras: the twin of `porter.zoo.torch.vgg16`."""

import math

import keras
import numpy as np
from keras import layers
from torch import nn

from porter.zoo.keras.carry import carry
from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"x": {0: "batch"}}
STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
SMALL_STAGES = ((4, 2), (8, 2), (12, 3), (16, 3), (16, 3))


class VGG(keras.Model):
    def __init__(self, stages=STAGES, hidden=4096, num_classes=1000, dropout=0.5):
        super().__init__()
        self.features = self._make_features(stages)
        self.flatten = layers.Flatten()
        self.classifier = keras.Sequential(
            [
                layers.Dense(hidden),
                layers.ReLU(),
                layers.Dropout(dropout),
                layers.Dense(hidden),
                layers.ReLU(),
                layers.Dropout(dropout),
                layers.Dense(num_classes),
            ]
        )

    @staticmethod
    def _make_features(stages):
        features = []
        for channels, convolutions in stages:
            for _ in range(convolutions):
                features.append(layers.Conv2D(channels, 3, padding="same"))
                features.append(layers.BatchNormalization(momentum=0.9, epsilon=1e-5))
                features.append(layers.ReLU())
            features.append(layers.MaxPooling2D(2))
        return keras.Sequential(features)

    def call(self, x):
        return self.classifier(self.flatten(self.features(x)))


def make(*, small: bool = False) -> keras.Model:
    model = VGG(SMALL_STAGES, hidden=32, num_classes=10) if small else VGG()
    side = 64 if small else 224
    model(keras.Input((side, side, 3)))
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 224, 224, 3), or 64 x 64 when small; the size is fixed by the first dense layer."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, side, side), dtype=np.float32).transpose(0, 2, 3, 1)}


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model."""
    channels = torch_model.features[-4].out_channels
    side = math.isqrt(torch_model.classifier[0].in_features // channels)
    carry(torch_model, keras_model, flattened={"classifier.0": (channels, side, side)})
