"""T5 encoder: relative position bias shared by all layers, RMS norms, gated feed-forward."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC: dict[str, dict[int, str]] = {"input_ids": {0: "batch", 1: "time"}}


@dataclass(frozen=True)
class T5Config:
    vocab_size: int = 3000
    d_model: int = 256
    d_kv: int = 48
    d_ff: int = 640
    num_heads: int = 4
    num_layers: int = 4
    num_buckets: int = 32
    max_distance: int = 128
    layer_norm_eps: float = 1e-6
    dropout: float = 0.1


SMALL = T5Config(vocab_size=40, d_model=14, d_kv=6, d_ff=22, num_heads=3, num_layers=2, num_buckets=8, max_distance=20)


class T5LayerNorm(nn.Module):
    """Scales by the root mean square of the last axis: no mean is taken off, no bias added."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        variance = x.pow(2).mean(dim=-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.eps))


class RelativePositionBias(nn.Module):
    """Learned bias per head and bucket of distance: (1, num_heads, time, time).

    Half of the buckets are for keys to the right. In each half the first ones hold one distance each, the others grow
    logarithmically up to `max_distance`, and everything beyond shares the last.
    """

    def __init__(self, num_buckets: int, max_distance: int, num_heads: int) -> None:
        super().__init__()
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.embedding = nn.Embedding(num_buckets, num_heads)

    def bucket(self, relative_position: Tensor) -> Tensor:
        half = self.num_buckets // 2
        exact = half // 2
        distance = relative_position.abs()
        # log(0) would be -inf: the clamp only changes distances that the exact buckets take anyway.
        logarithmic = torch.log(distance.clamp(min=1).float() / exact) / math.log(self.max_distance / exact)
        far = (exact + (logarithmic * (half - exact)).long()).clamp(max=half - 1)
        return torch.where(relative_position > 0, half, 0) + torch.where(distance < exact, distance, far)

    def forward(self, time: int, device: torch.device) -> Tensor:
        position = torch.arange(time, device=device)
        buckets = self.bucket(position[None, :] - position[:, None])
        return self.embedding(buckets).permute(2, 0, 1).unsqueeze(0)


class T5Attention(nn.Module):
    """Attention without bias or scaling; the inner width num_heads · d_kv need not be d_model."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        inner_dim = config.num_heads * config.d_kv
        self.num_heads = config.num_heads
        self.d_kv = config.d_kv
        self.q = nn.Linear(config.d_model, inner_dim, bias=False)
        self.k = nn.Linear(config.d_model, inner_dim, bias=False)
        self.v = nn.Linear(config.d_model, inner_dim, bias=False)
        self.o = nn.Linear(inner_dim, config.d_model, bias=False)
        self.dropout = nn.Dropout(config.dropout)

    def split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.d_kv)).transpose(1, 2)

    def forward(self, x: Tensor, position_bias: Tensor) -> Tensor:
        query, key, value = self.split_heads(self.q(x)), self.split_heads(self.k(x)), self.split_heads(self.v(x))
        scores = query @ key.transpose(-1, -2) + position_bias
        weights = self.dropout(scores.softmax(dim=-1))
        return self.o((weights @ value).transpose(1, 2).flatten(2))


class T5GatedFeedForward(nn.Module):
    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.wi_0 = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wi_1 = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.act = nn.GELU(approximate="tanh")
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        gated = self.act(self.wi_0(x)) * self.wi_1(x)
        return self.wo(self.dropout(gated))


class T5Block(nn.Module):
    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.attention_norm = T5LayerNorm(config.d_model, config.layer_norm_eps)
        self.attention = T5Attention(config)
        self.feed_forward_norm = T5LayerNorm(config.d_model, config.layer_norm_eps)
        self.feed_forward = T5GatedFeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, position_bias: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), position_bias))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class T5Encoder(nn.Module):
    """Token ids (batch, time) to states (batch, time, d_model)."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.relative_position_bias = RelativePositionBias(config.num_buckets, config.max_distance, config.num_heads)
        self.blocks = nn.ModuleList(T5Block(config) for _ in range(config.num_layers))
        self.final_norm = T5LayerNorm(config.d_model, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.dropout(self.embed_tokens(input_ids))
        position_bias = self.relative_position_bias(input_ids.size(1), input_ids.device)
        for block in self.blocks:
            x = block(x, position_bias)
        return self.dropout(self.final_norm(x))


def make(*, small: bool = False) -> nn.Module:
    """The encoder in eval mode with seeded weights."""
    config = SMALL if small else T5Config()
    model = T5Encoder(config)
    seed_weights(model)
    for block in model.blocks:
        block.attention.q.weight.data *= config.d_kv**-0.5  # T5 keeps the scale of the scores in this matrix
    return model


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Token ids: int64 (batch, time), long enough to reach the logarithmic buckets."""
    config, time = (SMALL, 11) if small else (T5Config(), 64)
    rng = np.random.default_rng(seed)
    return {"input_ids": rng.integers(0, config.vocab_size, (batch, time))}
