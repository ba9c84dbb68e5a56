"""Noise in training that PyTorch has no layers for."""

from __future__ import annotations

import torch
from torch import nn


class GaussianNoise(nn.Module):
    """Adds normal noise in training."""

    def __init__(self, std):
        super().__init__()
        self.std = std

    def forward(self, x):
        return x + self.std * torch.randn_like(x) if self.training else x


class GaussianDropout(nn.Module):
    """Multiplies by normal noise around one in training, as strong as what a Dropout of rate `p` does."""

    def __init__(self, p):
        super().__init__()
        self.std = (p / (1 - p)) ** 0.5

    def forward(self, x):
        return x * (1 + self.std * torch.randn_like(x)) if self.training else x
