"""EfficientNet-B0 written by hand in PyTorch: the twin of `porter.zoo.keras.efficientnet_b0_functional`."""

from collections.abc import Sequence

import keras
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from porter.zoo.torch.carry import carry
from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"pixels": {0: "batch", 2: "height", 3: "width"}}
MEAN, VARIANCE = (0.485, 0.456, 0.406), (0.229**2, 0.224**2, 0.225**2)
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


class Conv2dSame(nn.Conv2d):
    """TensorFlow's SAME padding: as little as gives ceil(size / stride), the odd row and column below and right."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        height, width = (
            max((-(-size // stride) - 1) * stride + kernel - size, 0)
            for size, stride, kernel in zip(x.shape[2:], self.stride, self.kernel_size, strict=True)
        )
        x = F.pad(x, (width // 2, width - width // 2, height // 2, height - height // 2))
        return super().forward(x)


class ConvBlock(nn.Sequential):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, groups: int = 1, act: bool = True
    ) -> None:
        super().__init__()
        if stride == 1:
            padding = kernel_size // 2
            self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, groups=groups, bias=False)
        else:
            self.conv = Conv2dSame(in_channels, out_channels, kernel_size, stride, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(out_channels, eps=1e-3, momentum=0.01)
        if act:
            self.act = nn.SiLU()


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.expand = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = x.mean((2, 3), keepdim=True)
        scale = self.expand(F.silu(self.reduce(scale)))
        return x * scale.sigmoid()


class DropPath(nn.Module):
    """Drops the whole branch of an image at once."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.rate == 0:
            return x
        return x * F.dropout(x.new_ones(x.shape[0], 1, 1, 1), self.rate)


class MBConv(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, expansion: int, drop_rate: float
    ) -> None:
        super().__init__()
        hidden = in_channels * expansion
        self.use_residual = stride == 1 and in_channels == out_channels
        self.expand = ConvBlock(in_channels, hidden, 1) if expansion > 1 else nn.Identity()
        self.depthwise = ConvBlock(hidden, hidden, kernel_size, stride, groups=hidden)
        self.se = SqueezeExcite(hidden, max(1, in_channels // 4))
        self.project = ConvBlock(hidden, out_channels, 1, act=False)
        self.drop = DropPath(drop_rate) if self.use_residual else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.project(self.se(self.depthwise(self.expand(x))))
        return x + self.drop(out) if self.use_residual else out


class EfficientNet(nn.Module):
    def __init__(
        self,
        stages: Sequence[tuple[int, int, int, int, int]] = STAGES,
        stem: int = 32,
        last: int = 1280,
        num_classes: int = 1000,
        dropout: float = 0.2,
        drop_connect: float = 0.2,
    ) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(VARIANCE)[:, None, None].sqrt(), persistent=False)
        self.stem = ConvBlock(3, stem, 3, stride=2)
        self.stages = nn.ModuleList()
        channels, index, total = stem, 0, sum(blocks for *_, blocks in stages)
        for expansion, kernel_size, stride, out_channels, blocks in stages:
            stage = nn.Sequential()
            for block in range(blocks):
                drop_rate = drop_connect * index / total
                first_stride = stride if block == 0 else 1
                stage.append(MBConv(channels, out_channels, kernel_size, first_stride, expansion, drop_rate))
                channels, index = out_channels, index + 1
            self.stages.append(stage)
        self.top = ConvBlock(channels, last, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(last, num_classes)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = (pixels / 255 - self.mean) / self.std
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        x = self.dropout(self.pool(self.top(x)).flatten(1))
        return self.fc(x).softmax(dim=1)


def make(*, small: bool = False) -> nn.Module:
    return seed_weights(EfficientNet(SMALL_STAGES, stem=8, last=32, num_classes=10) if small else EfficientNet())


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Pixels (batch, 3, height, width) of 0 to 255."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"pixels": rng.integers(0, 256, (batch, side, side, 3)).astype(np.float32).transpose(0, 3, 1, 2)}


def copy_weights(keras_model: keras.Model, torch_model: nn.Module) -> None:
    """Give the twin the weights of the Keras model."""
    carry(keras_model, torch_model, lambda path: keras_model.get_layer(_layer_name(path)))


def _layer_name(path: str) -> str:
    """`stages.1.0.depthwise.bn` is `block2a_bn` in Keras."""
    if path == "fc":
        return "predictions"
    first, *rest = path.split(".")
    if first != "stages":
        return "_".join((first, *rest))
    stage, block, *member = rest
    name = "_".join(member)
    name = {"depthwise_conv": "dwconv", "depthwise_bn": "bn"}.get(name, name)
    return f"block{int(stage) + 1}{chr(ord('a') + int(block))}_{name}"
