"""VGG-16 written by hand in PyTorch: the twin of `porter.zoo.keras.vgg16_sequential`."""

import math
from collections.abc import Sequence

import keras
import numpy as np
import torch
from torch import nn

from porter.zoo.torch.carry import carry, weighted_modules
from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"images": {0: "batch"}}
STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
SMALL_STAGES = ((4, 2), (8, 2), (12, 3), (16, 3), (16, 3))


class VGG(nn.Module):
    def __init__(
        self,
        stages: Sequence[tuple[int, int]] = STAGES,
        side: int = 224,
        hidden: int = 4096,
        num_classes: int = 1000,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.features = nn.Sequential()
        channels = 3
        for out_channels, convolutions in stages:
            for _ in range(convolutions):
                self.features.append(nn.Conv2d(channels, out_channels, 3, padding=1))
                self.features.append(nn.ReLU())
                channels = out_channels
            self.features.append(nn.MaxPool2d(2))
        self.flatten = nn.Flatten()
        self.classifier = nn.Sequential(
            nn.Linear(channels * (side // 2 ** len(stages)) ** 2, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, num_classes),
            nn.Softmax(dim=1),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.flatten(self.features(images)))


def make(*, small: bool = False) -> nn.Module:
    return seed_weights(VGG(SMALL_STAGES, side=64, hidden=32, num_classes=10) if small else VGG(), gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, 224, 224), or 64 x 64 when small; the size is fixed by the first linear layer."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, side, side, 3), dtype=np.float32).transpose(0, 3, 1, 2)}


def copy_weights(keras_model: keras.Model, torch_model: nn.Module) -> None:
    """Give the twin the weights of the Keras model: both are one chain of layers."""
    paths = [path for path, _ in weighted_modules(torch_model)]
    layers = [layer for layer in keras_model.layers if layer.count_params()]
    channels = torch_model.features[-3].out_channels
    side = math.isqrt(torch_model.classifier[0].in_features // channels)
    place = dict(zip(paths, layers, strict=True))
    carry(keras_model, torch_model, place.__getitem__, flattened={"classifier.0": (channels, side, side)})
