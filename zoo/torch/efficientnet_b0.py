"""EfficientNet-B0: mobile inverted bottlenecks with squeeze-and-excitation and SiLU."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
# expansion, kernel size, stride of the first block, output channels, blocks
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
SMALL_STAGES = ((1, 3, 1, 8, 1), (6, 3, 2, 12, 2), (6, 5, 2, 16, 3))


class ConvNormAct(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, groups: int = 1):
        super().__init__(
            nn.Conv2d(
                in_channels, out_channels, kernel_size, stride, padding=kernel_size // 2, groups=groups, bias=False
            ),
            nn.BatchNorm2d(out_channels),
            nn.SiLU(inplace=True),
        )


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, kernel_size=1)
        self.activation = nn.SiLU(inplace=True)
        self.fc2 = nn.Conv2d(squeezed, channels, kernel_size=1)
        self.scale_activation = nn.Sigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.activation(self.fc1(self.avgpool(x)))
        return x * self.scale_activation(self.fc2(scale))


class MBConv(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = in_channels * expansion
        self.use_residual = stride == 1 and in_channels == out_channels
        self.expand = ConvNormAct(in_channels, hidden, kernel_size=1) if expansion != 1 else nn.Identity()
        self.depthwise = ConvNormAct(hidden, hidden, kernel_size, stride, groups=hidden)
        self.se = SqueezeExcitation(hidden, max(1, in_channels // 4))
        self.project = nn.Conv2d(hidden, out_channels, kernel_size=1, bias=False)
        self.bn = nn.BatchNorm2d(out_channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.se(self.depthwise(self.expand(x)))
        out = self.bn(self.project(out))
        return x + out if self.use_residual else out


class EfficientNet(nn.Module):
    def __init__(
        self,
        stages: Sequence[tuple[int, int, int, int, int]] = STAGES,
        stem: int = 32,
        last: int = 1280,
        num_classes: int = 1000,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.stem = ConvNormAct(3, stem, kernel_size=3, stride=2)
        channels = stem
        self.stages = nn.ModuleList()
        for expansion, kernel_size, stride, out_channels, blocks in stages:
            stage = [MBConv(channels, out_channels, kernel_size, stride, expansion)]
            stage.extend(MBConv(out_channels, out_channels, kernel_size, 1, expansion) for _ in range(1, blocks))
            self.stages.append(nn.Sequential(*stage))
            channels = out_channels
        self.head = ConvNormAct(channels, last, kernel_size=1)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(last, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        x = torch.flatten(self.avgpool(self.head(x)), 1)
        return self.classifier(self.dropout(x))


def make(*, small: bool = False) -> nn.Module:
    model = EfficientNet(SMALL_STAGES, stem=8, last=32, num_classes=10) if small else EfficientNet()
    return seed_weights(model, gain=1.5)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, side, side), dtype=np.float32)}
