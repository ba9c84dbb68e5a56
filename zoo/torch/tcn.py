"""TCN: residual blocks of causal dilated 1-D convolutions; no output looks at a later input."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "time"}}


class CausalConv1d(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, dilation: int) -> None:
        super().__init__()
        self.left = (kernel_size - 1) * dilation
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, dilation=dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(F.pad(x, (self.left, 0)))


class TemporalBlock(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, dilation: int, dropout: float = 0.2
    ) -> None:
        super().__init__()
        self.conv1 = CausalConv1d(in_channels, out_channels, kernel_size, dilation)
        self.conv2 = CausalConv1d(out_channels, out_channels, kernel_size, dilation)
        self.dropout = nn.Dropout(dropout)
        self.downsample = nn.Conv1d(in_channels, out_channels, kernel_size=1) if in_channels != out_channels else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.dropout(torch.relu(self.conv1(x)))
        out = self.dropout(torch.relu(self.conv2(out)))
        residual = x if self.downsample is None else self.downsample(x)
        return torch.relu(out + residual)


class TCN(nn.Module):
    def __init__(
        self,
        in_channels: int = 8,
        channels: Sequence[int] = (64, 64, 64, 64, 64, 64),
        kernel_size: int = 3,
        num_outputs: int = 10,
    ) -> None:
        super().__init__()
        blocks = []
        for level, out_channels in enumerate(channels):
            blocks.append(TemporalBlock(in_channels, out_channels, kernel_size, dilation=2**level))
            in_channels = out_channels
        self.network = nn.Sequential(*blocks)
        self.head = nn.Conv1d(in_channels, num_outputs, kernel_size=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.network(x))


def make(*, small: bool = False) -> nn.Module:
    model = TCN(in_channels=3, channels=(8, 8, 8), num_outputs=5) if small else TCN()
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Series (batch, channels, time)."""
    shape = (batch, 3, 24) if small else (batch, 8, 256)
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal(shape, dtype=np.float32)}
