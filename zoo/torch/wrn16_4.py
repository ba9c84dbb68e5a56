"""WRN-16-4: a wide pre-activation ResNet for 32 x 32 images, with Dropout inside each block."""

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


class WideBlock(nn.Module):
    """BatchNorm and ReLU come before each convolution; a projection starts from the activated input."""

    def __init__(self, in_planes: int, planes: int, stride: int = 1, dropout: float = 0.3) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_planes)
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, padding=1, bias=False)
        self.shortcut = None
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Conv2d(in_planes, planes, kernel_size=1, stride=stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.relu(self.bn1(x))
        identity = x if self.shortcut is None else self.shortcut(out)
        out = torch.relu(self.bn2(self.conv1(out)))
        out = self.conv2(self.dropout(out))
        return out + identity


class WideResNet(nn.Module):
    def __init__(self, depth: int = 16, widen: int = 4, base: int = 16, num_classes: int = 10) -> None:
        super().__init__()
        blocks = (depth - 4) // 6
        planes = [base, base * widen, 2 * base * widen, 4 * base * widen]
        self.conv1 = nn.Conv2d(3, planes[0], kernel_size=3, padding=1, bias=False)
        self.group1 = self._make_group(planes[0], planes[1], blocks, stride=1)
        self.group2 = self._make_group(planes[1], planes[2], blocks, stride=2)
        self.group3 = self._make_group(planes[2], planes[3], blocks, stride=2)
        self.bn = nn.BatchNorm2d(planes[3])
        self.fc = nn.Linear(planes[3], num_classes)

    @staticmethod
    def _make_group(in_planes: int, planes: int, blocks: int, stride: int) -> nn.Sequential:
        first = WideBlock(in_planes, planes, stride)
        return nn.Sequential(first, *(WideBlock(planes, planes) for _ in range(1, blocks)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv1(x)
        x = self.group1(x)
        x = self.group2(x)
        x = self.group3(x)
        x = torch.relu(self.bn(x))
        x = x.mean(dim=(2, 3))
        return self.fc(x)


def make(*, small: bool = False) -> nn.Module:
    model = WideResNet(widen=2, base=4) if small else WideResNet()
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width)."""
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, 32, 32), dtype=np.float32)}
