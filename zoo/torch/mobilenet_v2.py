"""MobileNetV2: inverted residuals of depthwise convolutions, ReLU6, linear bottlenecks."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
# expansion, output channels, blocks, stride of the first block
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
SMALL_STAGES = ((1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 12, 2, 2))


class ConvBNReLU(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int = 3, stride: int = 1, groups: int = 1):
        padding = (kernel_size - 1) // 2
        super().__init__(
            nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, groups=groups, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = in_channels * expansion
        self.use_residual = stride == 1 and in_channels == out_channels
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(ConvBNReLU(in_channels, hidden, kernel_size=1))
        layers.append(ConvBNReLU(hidden, hidden, stride=stride, groups=hidden))
        layers.append(nn.Conv2d(hidden, out_channels, kernel_size=1, bias=False))
        layers.append(nn.BatchNorm2d(out_channels))
        self.conv = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.use_residual:
            return x + self.conv(x)
        return self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(
        self,
        stages: Sequence[tuple[int, int, int, int]] = STAGES,
        stem: int = 32,
        last: int = 1280,
        num_classes: int = 1000,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [ConvBNReLU(3, stem, stride=2)]
        channels = stem
        for expansion, out_channels, blocks, first_stride in stages:
            for i in range(blocks):
                stride = first_stride if i == 0 else 1
                layers.append(InvertedResidual(channels, out_channels, stride, expansion))
                channels = out_channels
        layers.append(ConvBNReLU(channels, last, kernel_size=1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(last, num_classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x)
        x = x.mean(dim=(2, 3))
        return self.classifier(x)


def make(*, small: bool = False) -> nn.Module:
    model = MobileNetV2(SMALL_STAGES, stem=8, last=32, num_classes=10) if small else MobileNetV2()
    return seed_weights(model, gain=1.5)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, side, side), dtype=np.float32)}
