"""DenseNet (L = 40, k = 12) written by hand in PyTorch: the twin of `porter.zoo.keras.densenet40_12_functional`."""

import keras
import numpy as np
import torch
from torch import nn

from porter.zoo.torch.carry import carry, weighted_modules
from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"images": {0: "batch", 2: "height", 3: "width"}}


def bn_relu(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01), nn.ReLU())


class DenseLayer(nn.Module):
    def __init__(self, in_channels: int, growth: int, dropout: float) -> None:
        super().__init__()
        self.norm = bn_relu(in_channels)
        self.conv = nn.Conv2d(in_channels, growth, 3, padding=1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.dropout(self.conv(self.norm(x)))], dim=1)


def transition(channels: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        bn_relu(channels), nn.Conv2d(channels, channels, 1, bias=False), nn.Dropout(dropout), nn.AvgPool2d(2)
    )


class DenseNet(nn.Module):
    def __init__(
        self, depth: int = 40, growth: int = 12, stem: int = 16, num_classes: int = 10, dropout: float = 0.2
    ) -> None:
        super().__init__()
        count = (depth - 4) // 3
        self.stem = nn.Conv2d(3, stem, 3, padding=1, bias=False)
        self.features = nn.Sequential()
        channels = stem
        for block in range(3):
            for _ in range(count):
                self.features.append(DenseLayer(channels, growth, dropout))
                channels += growth
            if block < 2:
                self.features.append(transition(channels, dropout))
        self.norm = bn_relu(channels)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, num_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.features(self.stem(images)))
        return self.fc(self.pool(x).flatten(1))


def make(*, small: bool = False) -> nn.Module:
    return seed_weights(DenseNet(depth=13, growth=4, stem=8) if small else DenseNet(), gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width)."""
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, 32, 32, 3), dtype=np.float32).transpose(0, 3, 1, 2)}


def copy_weights(keras_model: keras.Model, torch_model: nn.Module) -> None:
    """Give the twin the weights of the Keras model, whose layers are found by their order: their names are counted."""
    paths = [path for path, _ in weighted_modules(torch_model)]
    layers = [layer for layer in keras_model.layers if layer.count_params()]
    carry(keras_model, torch_model, dict(zip(paths, layers, strict=True)).__getitem__)
