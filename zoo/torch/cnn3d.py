"""A 3-D convolutional classifier of short clips."""

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "frames", 3: "height", 4: "width"}}


class ConvBlock3d(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, pool: int | tuple[int, int, int]) -> None:
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size=3, padding=1)
        self.bn = nn.BatchNorm3d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool3d(pool)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(self.relu(self.bn(self.conv(x))))


class CNN3d(nn.Module):
    def __init__(self, width: int = 32, num_classes: int = 101, dropout: float = 0.5) -> None:
        super().__init__()
        # The first pooling keeps every frame: motion is fast, clips are short.
        self.block1 = ConvBlock3d(3, width, pool=(1, 2, 2))
        self.block2 = ConvBlock3d(width, 2 * width, pool=2)
        self.block3 = ConvBlock3d(2 * width, 4 * width, pool=2)
        self.avgpool = nn.AdaptiveAvgPool3d(1)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(4 * width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block1(x)
        x = self.block2(x)
        x = self.block3(x)
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(self.dropout(x))


def make(*, small: bool = False) -> nn.Module:
    model = CNN3d(width=4, num_classes=10) if small else CNN3d()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Clips (batch, 3, frames, height, width)."""
    frames, side = (8, 16) if small else (16, 112)
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, frames, side, side), dtype=np.float32)}
