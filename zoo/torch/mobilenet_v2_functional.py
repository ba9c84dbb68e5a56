"""MobileNetV2 written by hand in PyTorch: the twin of `porter.zoo.keras.mobilenet_v2_functional`."""

from collections.abc import Sequence

import keras
import numpy as np
import torch
from torch import nn

from porter.zoo.torch.carry import carry
from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"images": {0: "batch", 2: "height", 3: "width"}}
# expansion, output channels, blocks, stride of the first block
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
SMALL_STAGES = ((1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 12, 2, 2))


class ConvBN(nn.Sequential):
    """TensorFlow pads a strided convolution below and to the right only."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, groups: int = 1, relu: bool = True
    ) -> None:
        padding = kernel_size // 2 if stride == 1 else 0
        super().__init__()
        if stride == 2:
            self.pad = nn.ZeroPad2d((0, 1, 0, 1))
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(out_channels, eps=1e-3, momentum=0.001)
        if relu:
            self.relu = nn.ReLU6()


class InvertedResidual(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = in_channels * expansion
        self.use_residual = stride == 1 and in_channels == out_channels
        self.expand = ConvBN(in_channels, hidden, 1) if expansion > 1 else nn.Identity()
        self.depthwise = ConvBN(hidden, hidden, 3, stride, groups=hidden)
        self.project = ConvBN(hidden, out_channels, 1, relu=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.project(self.depthwise(self.expand(x)))
        return x + out if self.use_residual else out


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
        self.stem = ConvBN(3, stem, 3, stride=2)
        blocks = []
        channels = stem
        for expansion, out_channels, count, stride in stages:
            for i in range(count):
                blocks.append(InvertedResidual(channels, out_channels, stride if i == 0 else 1, expansion))
                channels = out_channels
        self.blocks = nn.Sequential(*blocks)
        self.head = ConvBN(channels, last, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(last, num_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.head(self.blocks(self.stem(images)))
        x = self.dropout(self.pool(x).flatten(1))
        return self.fc(x).softmax(dim=1)


def make(*, small: bool = False) -> nn.Module:
    return seed_weights(MobileNetV2(SMALL_STAGES, stem=8, last=32, num_classes=10) if small else MobileNetV2())


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, side, side, 3), dtype=np.float32).transpose(0, 3, 1, 2)}


def copy_weights(keras_model: keras.Model, torch_model: nn.Module) -> None:
    """Give the twin the weights of the Keras model."""
    carry(keras_model, torch_model, lambda path: keras_model.get_layer(_layer_name(path)))


def _layer_name(path: str) -> str:
    """`blocks.3.depthwise.bn` is `block_3_depthwise_bn` in Keras."""
    if path == "fc":
        return "predictions"
    name = path.replace("blocks.", "block_").replace(".", "_")
    return name.removesuffix("_conv")
