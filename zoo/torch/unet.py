"""U-Net: the deep half of the decoder learns its upsampling, the shallow half interpolates."""

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


class DoubleConv(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )


class Down(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(self.pool(x))


class Up(nn.Module):
    """Doubles the size, halves the channels, and joins the skip connection of that size."""

    def __init__(self, in_channels: int, out_channels: int, bilinear: bool) -> None:
        super().__init__()
        self.up: nn.Module
        if bilinear:
            self.up = nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
                nn.Conv2d(in_channels, out_channels, kernel_size=1),
            )
        else:
            self.up = nn.ConvTranspose2d(in_channels, out_channels, kernel_size=2, stride=2)
        self.conv = DoubleConv(2 * out_channels, out_channels)

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        x = torch.cat([skip, self.up(x)], dim=1)
        return self.conv(x)


class UNet(nn.Module):
    """Height and width must be multiples of 16."""

    def __init__(self, width: int = 64, num_classes: int = 2) -> None:
        super().__init__()
        self.inc = DoubleConv(3, width)
        self.down1 = Down(width, 2 * width)
        self.down2 = Down(2 * width, 4 * width)
        self.down3 = Down(4 * width, 8 * width)
        self.down4 = Down(8 * width, 16 * width)
        self.up1 = Up(16 * width, 8 * width, bilinear=False)
        self.up2 = Up(8 * width, 4 * width, bilinear=False)
        self.up3 = Up(4 * width, 2 * width, bilinear=True)
        self.up4 = Up(2 * width, width, bilinear=True)
        self.outc = nn.Conv2d(width, num_classes, kernel_size=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.down4(x4)
        x = self.up1(x, x4)
        x = self.up2(x, x3)
        x = self.up3(x, x2)
        x = self.up4(x, x1)
        return self.outc(x)


def make(*, small: bool = False) -> nn.Module:
    model = UNet(width=4) if small else UNet()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, height, width), both multiples of 16 and deliberately different."""
    height, width = (32, 48) if small else (256, 320)
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, height, width), dtype=np.float32)}
