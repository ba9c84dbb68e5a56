"""Vision Transformer, at the size of ViT-Ti/16."""

import numpy as np
import torch
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {"image_size": 224, "patch_size": 16, "dim": 192, "depth": 12, "num_heads": 3, "num_classes": 1000}
SMALL = {"image_size": 16, "patch_size": 4, "dim": 24, "depth": 2, "num_heads": 3, "num_classes": 10}

DYNAMIC: dict[str, dict[int, str]] = {"images": {0: "batch"}}


class PatchEmbed(nn.Module):
    """Images (batch, 3, height, width) to one vector per patch: (batch, patches, dim)."""

    def __init__(self, image_size: int, patch_size: int, dim: int) -> None:
        super().__init__()
        self.num_patches = (image_size // patch_size) ** 2
        self.proj = nn.Conv2d(3, dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        return self.proj(images).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """Multi-head self-attention over (batch, tokens, dim)."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, dim = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, dim // self.num_heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = (query @ key.transpose(-2, -1) * self.scale).softmax(dim=-1)
        x = (weights @ value).transpose(1, 2).reshape(batch, tokens, dim)
        return self.proj(x)


class MLP(nn.Module):
    def __init__(self, dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.fc2(self.act(self.fc1(x))))


class Block(nn.Module):
    def __init__(self, dim: int, num_heads: int, mlp_ratio: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim, num_heads)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = MLP(dim, mlp_ratio * dim, dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Images (batch, 3, image_size, image_size) to logits (batch, num_classes), read off the class token."""

    def __init__(
        self, image_size: int, patch_size: int, dim: int, depth: int, num_heads: int, num_classes: int
    ) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed(image_size, patch_size, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + self.patch_embed.num_patches, dim))
        self.blocks = nn.Sequential(*(Block(dim, num_heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch_embed(images)
        cls_token = self.cls_token.expand(x.size(0), -1, -1)
        x = torch.cat([cls_token, x], dim=1) + self.pos_embed
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0])


def make(*, small: bool = False) -> nn.Module:
    """The classifier in eval mode with seeded weights."""
    return seed_weights(VisionTransformer(**(SMALL if small else FULL)))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images: float32 (batch, 3, image_size, image_size)."""
    size = (SMALL if small else FULL)["image_size"]
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, 3, size, size), dtype=np.float32)}
