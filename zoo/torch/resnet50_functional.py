"""ResNet-50 written by hand in PyTorch: the twin of `porter.zoo.keras.resnet50_functional`."""

from collections.abc import Sequence

import keras
import numpy as np
import torch
from torch import nn

from porter.zoo.torch.carry import carry
from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"images": {0: "batch", 2: "height", 3: "width"}}


def conv_bn(in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding),
        nn.BatchNorm2d(out_channels, eps=1.001e-5, momentum=0.01),
    )


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, in_channels: int, width: int, stride: int = 1, project: bool = False) -> None:
        super().__init__()
        out_channels = width * self.expansion
        self.shortcut = conv_bn(in_channels, out_channels, 1, stride) if project else nn.Identity()
        self.conv1 = conv_bn(in_channels, width, 1, stride)
        self.conv2 = conv_bn(width, width, 3, padding=1)
        self.conv3 = conv_bn(width, out_channels, 1)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu(self.conv1(x))
        out = self.relu(self.conv2(out))
        return self.relu(self.shortcut(x) + self.conv3(out))


class ResNet(nn.Module):
    def __init__(self, blocks: Sequence[int] = (3, 4, 6, 3), width: int = 64, num_classes: int = 1000) -> None:
        super().__init__()
        self.stem = conv_bn(3, width, 7, stride=2, padding=3)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = nn.ModuleList()
        channels = width
        for stage, count in enumerate(blocks):
            stride = 1 if stage == 0 else 2
            first = Bottleneck(channels, width * 2**stage, stride, project=True)
            channels = width * 2**stage * Bottleneck.expansion
            rest = [Bottleneck(channels, width * 2**stage) for _ in range(1, count)]
            self.stages.append(nn.Sequential(first, *rest))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, num_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.stem(images)))
        for stage in self.stages:
            x = stage(x)
        x = self.avgpool(x).flatten(1)
        return self.fc(x).softmax(dim=1)


def make(*, small: bool = False) -> nn.Module:
    return seed_weights(ResNet(blocks=(2, 3, 3, 2), width=8, num_classes=10) if small else ResNet())


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, side, side, 3), dtype=np.float32).transpose(0, 3, 1, 2)}


def copy_weights(keras_model: keras.Model, torch_model: nn.Module) -> None:
    """Give the twin the weights of the Keras model."""
    carry(keras_model, torch_model, lambda path: keras_model.get_layer(_layer_name(path)))


def _layer_name(path: str) -> str:
    """`stages.0.1.conv2.0` is `conv2_block2_2_conv` in Keras."""
    if path == "fc":
        return "predictions"
    *place, part = path.split(".")
    kind = ("conv", "bn")[int(part)]
    if place == ["stem"]:
        return f"conv1_{kind}"
    _, stage, block, member = place
    index = {"shortcut": 0, "conv1": 1, "conv2": 2, "conv3": 3}[member]
    return f"conv{int(stage) + 2}_block{int(block) + 1}_{index}_{kind}"
