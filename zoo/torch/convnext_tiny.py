"""ConvNeXt-V2 Tiny: depthwise 7 x 7, then channels-last linear layers with global response normalisation."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


class LayerNorm2d(nn.LayerNorm):
    """LayerNorm over the channels of (batch, channels, height, width)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.permute(0, 2, 3, 1)
        x = super().forward(x)
        return x.permute(0, 3, 1, 2)


class GRN(nn.Module):
    """Global response normalisation of (batch, height, width, channels): channels compete by their spatial norm."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.zeros(1, 1, 1, dim))
        self.beta = nn.Parameter(torch.zeros(1, 1, 1, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        response = torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True)
        response = response / (response.mean(dim=-1, keepdim=True) + self.eps)
        return self.gamma * (x * response) + self.beta + x


class Block(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.grn = GRN(4 * dim)
        self.pwconv2 = nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x
        x = self.dwconv(x)
        x = x.permute(0, 2, 3, 1)
        x = self.pwconv1(self.norm(x))
        x = self.pwconv2(self.grn(self.act(x)))
        x = x.permute(0, 3, 1, 2)
        return shortcut + x


class ConvNeXtV2(nn.Module):
    def __init__(
        self,
        depths: Sequence[int] = (3, 3, 9, 3),
        dims: Sequence[int] = (96, 192, 384, 768),
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        stem = nn.Sequential(nn.Conv2d(3, dims[0], kernel_size=4, stride=4), LayerNorm2d(dims[0], eps=1e-6))
        self.downsample_layers = nn.ModuleList([stem])
        for narrow, wide in pairwise(dims):
            self.downsample_layers.append(
                nn.Sequential(LayerNorm2d(narrow, eps=1e-6), nn.Conv2d(narrow, wide, kernel_size=2, stride=2))
            )
        self.stages = nn.ModuleList(
            nn.Sequential(*(Block(dim) for _ in range(depth))) for depth, dim in zip(depths, dims, strict=True)
        )
        self.norm = nn.LayerNorm(dims[-1], eps=1e-6)
        self.head = nn.Linear(dims[-1], num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for downsample, stage in zip(self.downsample_layers, self.stages, strict=True):
            x = stage(downsample(x))
        x = self.norm(x.mean(dim=(-2, -1)))
        return self.head(x)


def make(*, small: bool = False) -> nn.Module:
    model = ConvNeXtV2(depths=(2, 2, 3, 2), dims=(4, 8, 12, 16), num_classes=10) if small else ConvNeXtV2()
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, side, side), dtype=np.float32)}
