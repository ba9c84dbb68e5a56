"""MLP-Mixer: mixes patches and channels in turn, at the size of Mixer-S/16."""

import numpy as np
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {
    "image_size": 224,
    "patch_size": 16,
    "dim": 512,
    "depth": 8,
    "token_dim": 256,
    "channel_dim": 2048,
    "num_classes": 1000,
}
SMALL = {
    "image_size": 16,
    "patch_size": 4,
    "dim": 24,
    "depth": 2,
    "token_dim": 18,
    "channel_dim": 40,
    "num_classes": 10,
}

DYNAMIC: dict[str, dict[int, str]] = {"images": {0: "batch"}}


class MlpBlock(nn.Sequential):
    """Two dense layers with a GELU between them, over the last axis."""

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.1) -> None:
        super().__init__(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )


class MixerBlock(nn.Module):
    """Shape (batch, patches, dim) is kept."""

    def __init__(self, num_patches: int, dim: int, token_dim: int, channel_dim: int) -> None:
        super().__init__()
        self.token_norm = nn.LayerNorm(dim)
        self.token_mixing = MlpBlock(num_patches, token_dim)
        self.channel_norm = nn.LayerNorm(dim)
        self.channel_mixing = MlpBlock(dim, channel_dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.token_mixing(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mixing(self.channel_norm(x))


class MLPMixer(nn.Module):
    """Images (batch, 3, image_size, image_size) to logits (batch, num_classes)."""

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        dim: int,
        depth: int,
        token_dim: int,
        channel_dim: int,
        num_classes: int,
    ) -> None:
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.stem = nn.Conv2d(3, dim, kernel_size=patch_size, stride=patch_size)
        self.blocks = nn.Sequential(*(MixerBlock(num_patches, dim, token_dim, channel_dim) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2)
        x = self.norm(self.blocks(x))
        return self.head(x.mean(dim=1))


def make(*, small: bool = False) -> nn.Module:
    """The classifier in eval mode with seeded weights."""
    return seed_weights(MLPMixer(**(SMALL if small else FULL)))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images: float32 (batch, 3, image_size, image_size)."""
    size = (SMALL if small else FULL)["image_size"]
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, 3, size, size), dtype=np.float32)}
