"""DenseNet (L = 40, k = 12), the plain variant: each layer sees the concatenation of all before it."""

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


class DenseLayer(nn.Module):
    def __init__(self, in_channels: int, growth: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(in_channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(in_channels, growth, kernel_size=3, padding=1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        new = self.dropout(self.conv(self.relu(self.norm(x))))
        return torch.cat([x, new], dim=1)


class Transition(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(channels, channels, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(self.conv(self.relu(self.norm(x))))


class DenseNet(nn.Module):
    def __init__(
        self, depth: int = 40, growth: int = 12, stem: int = 16, num_classes: int = 10, dropout: float = 0.2
    ) -> None:
        super().__init__()
        layers = (depth - 4) // 3
        added = layers * growth
        self.conv1 = nn.Conv2d(3, stem, kernel_size=3, padding=1, bias=False)
        self.block1 = self._make_block(stem, layers, growth, dropout)
        self.trans1 = Transition(stem + added)
        self.block2 = self._make_block(stem + added, layers, growth, dropout)
        self.trans2 = Transition(stem + 2 * added)
        self.block3 = self._make_block(stem + 2 * added, layers, growth, dropout)
        self.norm = nn.BatchNorm2d(stem + 3 * added)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(stem + 3 * added, num_classes)

    @staticmethod
    def _make_block(in_channels: int, layers: int, growth: int, dropout: float) -> nn.Sequential:
        return nn.Sequential(*(DenseLayer(in_channels + i * growth, growth, dropout) for i in range(layers)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv1(x)
        x = self.trans1(self.block1(x))
        x = self.trans2(self.block2(x))
        x = self.relu(self.norm(self.block3(x)))
        x = self.pool(x).flatten(1)
        return self.fc(x)


def make(*, small: bool = False) -> nn.Module:
    model = DenseNet(depth=13, growth=4, stem=8) if small else DenseNet()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width)."""
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, 32, 32), dtype=np.float32)}
