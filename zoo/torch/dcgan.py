"""DCGAN generator: transposed convolutions from a latent vector to an image."""

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"z": {0: "batch"}}


class Generator(nn.Module):
    def __init__(self, latent: int = 100, width: int = 64, channels: int = 3, doublings: int = 3) -> None:
        super().__init__()
        wide = width * 2**doublings
        layers: list[nn.Module] = [
            nn.ConvTranspose2d(latent, wide, kernel_size=4, stride=1, padding=0, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(inplace=True),
        ]
        for _ in range(doublings):
            layers += [
                nn.ConvTranspose2d(wide, wide // 2, kernel_size=4, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(wide // 2),
                nn.ReLU(inplace=True),
            ]
            wide //= 2
        layers += [nn.ConvTranspose2d(wide, channels, kernel_size=4, stride=2, padding=1, bias=False), nn.Tanh()]
        self.main = nn.Sequential(*layers)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.main(z)


def make(*, small: bool = False) -> nn.Module:
    model = Generator(latent=12, width=4, doublings=2) if small else Generator()
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Latent vectors (batch, latent, 1, 1)."""
    rng = np.random.default_rng(seed)
    return {"z": rng.standard_normal((batch, 12 if small else 100, 1, 1), dtype=np.float32)}
