"""Vision Transformer written by hand in Keras, channels last: the twin of `porter.zoo.torch.vit_tiny`."""

import keras
import numpy as np
from keras import KerasTensor, layers, ops
from torch import nn

from porter.zoo.keras.carry import carry
from porter.zoo.keras.seeding import seed_weights

FULL = {"image_size": 224, "patch_size": 16, "dim": 192, "depth": 12, "num_heads": 3, "num_classes": 1000}
SMALL = {"image_size": 16, "patch_size": 4, "dim": 24, "depth": 2, "num_heads": 3, "num_classes": 10}

DYNAMIC: dict[str, dict[int, str]] = {"images": {0: "batch"}}


class PatchEmbed(layers.Layer):
    """Images (batch, height, width, 3) to one vector per patch: (batch, patches, dim)."""

    def __init__(self, image_size: int, patch_size: int, dim: int) -> None:
        super().__init__()
        self.num_patches = (image_size // patch_size) ** 2
        self.proj = layers.Conv2D(dim, patch_size, strides=patch_size)
        self.flatten = layers.Reshape((self.num_patches, dim))

    def call(self, images: KerasTensor) -> KerasTensor:
        return self.flatten(self.proj(images))


class Attention(layers.Layer):
    """Multi-head self-attention over (batch, tokens, dim)."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = layers.Dense(3 * dim)
        self.proj = layers.Dense(dim)

    def call(self, x: KerasTensor) -> KerasTensor:
        _, tokens, dim = x.shape
        qkv = ops.reshape(self.qkv(x), (-1, tokens, 3, self.num_heads, dim // self.num_heads))
        query, key, value = ops.unstack(ops.transpose(qkv, (2, 0, 3, 1, 4)), axis=0)
        weights = ops.softmax(ops.matmul(query, ops.swapaxes(key, -2, -1)) * self.scale)
        x = ops.transpose(ops.matmul(weights, value), (0, 2, 1, 3))
        return self.proj(ops.reshape(x, (-1, tokens, dim)))


class MLP(layers.Layer):
    def __init__(self, dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.fc1 = layers.Dense(hidden_dim, activation="gelu")
        self.fc2 = layers.Dense(dim)
        self.drop = layers.Dropout(dropout)

    def call(self, x: KerasTensor) -> KerasTensor:
        return self.drop(self.fc2(self.fc1(x)))


class Block(layers.Layer):
    def __init__(self, dim: int, num_heads: int, mlp_ratio: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm1 = layers.LayerNormalization(epsilon=1e-6)
        self.attn = Attention(dim, num_heads)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6)
        self.mlp = MLP(dim, mlp_ratio * dim, dropout)

    def call(self, x: KerasTensor) -> KerasTensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(keras.Model):
    """Images (batch, image_size, image_size, 3) to logits (batch, num_classes), read off the class token."""

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        dim: int,
        depth: int,
        num_heads: int,
        num_classes: int,
    ) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed(image_size, patch_size, dim)
        self.cls_token = self.add_weight(shape=(1, 1, dim), name="cls_token")
        self.pos_embed = self.add_weight(shape=(1, 1 + self.patch_embed.num_patches, dim), name="pos_embed")
        self.blocks = keras.Sequential([Block(dim, num_heads) for _ in range(depth)])
        self.norm = layers.LayerNormalization(epsilon=1e-6)
        self.head = layers.Dense(num_classes)

    def call(self, images: KerasTensor) -> KerasTensor:
        x = self.patch_embed(images)
        cls_token = ops.repeat(self.cls_token, ops.shape(x)[0], axis=0)
        x = ops.concatenate([cls_token, x], axis=1) + self.pos_embed
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0])


def make(*, small: bool = False) -> keras.Model:
    """The classifier, built, with seeded weights."""
    size = SMALL if small else FULL
    model = VisionTransformer(**size)
    model(keras.Input((size["image_size"], size["image_size"], 3)))
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images: float32 (batch, image_size, image_size, 3)."""
    size = (SMALL if small else FULL)["image_size"]
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, 3, size, size), dtype=np.float32).transpose(0, 2, 3, 1)}


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model."""
    carry(torch_model, keras_model)
