"""Sub-pixel super-resolution: all work at low resolution, then one PixelShuffle."""

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


class SuperResolution(nn.Module):
    def __init__(self, upscale: int = 3, width: int = 64, channels: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(width, width, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2d(width, width // 2, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(width // 2, channels * upscale**2, kernel_size=3, padding=1)
        self.pixel_shuffle = nn.PixelShuffle(upscale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.conv3(x))
        return self.pixel_shuffle(self.conv4(x))


def make(*, small: bool = False) -> nn.Module:
    # Two channels when small: with one, a wrong channel order inside PixelShuffle would not show.
    model = SuperResolution(upscale=2, width=8, channels=2) if small else SuperResolution()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Low-resolution images (batch, channels, height, width) with values in [0, 1]."""
    shape = (batch, 2, 12, 16) if small else (batch, 1, 224, 224)
    rng = np.random.default_rng(seed)
    return {"x": rng.random(shape, dtype=np.float32)}
