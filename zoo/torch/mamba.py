"""Selective state-space language model in the manner of Mamba-2, with the scan as one matrix of decays.

The recurrence h[t] = exp(a[t]) · h[t-1] + b[t] ⊗ x[t], y[t] = c[t] · h[t] unrolls to a sum over s ≤ t whose weights are
exp(a[s+1] + … + a[t]): differences of one cumulative sum. Every a is negative, so no weight exceeds 1 at any length.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC: dict[str, dict[int, str]] = {"tokens": {0: "batch", 1: "time"}}


@dataclass(frozen=True)
class MambaConfig:
    vocab_size: int = 1500
    d_model: int = 192
    n_layer: int = 4
    d_state: int = 32
    d_conv: int = 4
    expand: int = 2
    head_dim: int = 48

    @property
    def d_inner(self) -> int:
        return self.expand * self.d_model

    @property
    def n_heads(self) -> int:
        return self.d_inner // self.head_dim


SMALL = MambaConfig(vocab_size=40, d_model=10, n_layer=2, d_state=6, d_conv=3, head_dim=4)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def selective_scan(x: Tensor, log_decay: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Run the state space over time without a loop.

    x (batch, time, heads, head_dim), log_decay (batch, time, heads), b and c (batch, time, d_state) to the shape of x.
    """
    time = x.size(1)
    cumulative = log_decay.cumsum(dim=1)
    between = cumulative.unsqueeze(2) - cumulative.unsqueeze(1)  # (batch, to, from, heads)
    causal = torch.ones(time, time, dtype=torch.bool, device=x.device).tril()
    decay = between.masked_fill(~causal[None, :, :, None], float("-inf")).exp()
    scores = torch.einsum("btn,bsn->bts", c, b)
    return torch.einsum("btsh,bshp->bthp", scores.unsqueeze(-1) * decay, x)


class MambaMixer(nn.Module):
    """Short causal convolution, selective scan, gated norm: (batch, time, d_model) is kept."""

    def __init__(self, config: MambaConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.head_dim = config.head_dim
        conv_dim = config.d_inner + 2 * config.d_state
        self.splits = [config.d_inner, conv_dim, config.n_heads]
        self.conv_splits = [config.d_inner, config.d_state, config.d_state]
        self.in_proj = nn.Linear(config.d_model, sum(self.splits), bias=False)
        self.conv1d = nn.Conv1d(conv_dim, conv_dim, config.d_conv, groups=conv_dim, padding=config.d_conv - 1)
        self.A_log = nn.Parameter(torch.zeros(config.n_heads))
        self.D = nn.Parameter(torch.ones(config.n_heads))
        self.dt_bias = nn.Parameter(torch.zeros(config.n_heads))
        self.norm = RMSNorm(config.d_inner)
        self.out_proj = nn.Linear(config.d_inner, config.d_model, bias=False)

    def forward(self, u: Tensor) -> Tensor:
        gate, conv_input, dt = self.in_proj(u).split(self.splits, dim=-1)
        convolved = self.conv1d(conv_input.transpose(1, 2))[..., : u.size(1)].transpose(1, 2)
        x, b, c = F.silu(convolved).split(self.conv_splits, dim=-1)
        x = x.unflatten(-1, (self.n_heads, self.head_dim))
        dt = F.softplus(dt + self.dt_bias)
        y = selective_scan(x * dt.unsqueeze(-1), -self.A_log.exp() * dt, b, c)
        y = (y + self.D[:, None] * x).flatten(2)
        return self.out_proj(self.norm(y * F.silu(gate)))


class ResidualBlock(nn.Module):
    def __init__(self, config: MambaConfig) -> None:
        super().__init__()
        self.norm = RMSNorm(config.d_model)
        self.mixer = MambaMixer(config)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mixer(self.norm(x))


class Mamba(nn.Module):
    """Tokens (batch, time) to logits (batch, time, vocab_size); the head is the embedding."""

    def __init__(self, config: MambaConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.layers = nn.ModuleList(ResidualBlock(config) for _ in range(config.n_layer))
        self.norm_f = RMSNorm(config.d_model)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.lm_head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm_f(x))


@torch.no_grad()
def make(*, small: bool = False) -> nn.Module:
    """The language model in eval mode with seeded weights; memories of a few steps to a few hundred."""
    model = Mamba(SMALL if small else MambaConfig())
    seed_weights(model)
    for layer in model.layers:
        mixer = layer.mixer
        mixer.A_log.copy_(torch.linspace(1.0, 16.0, mixer.n_heads).log())
        step = torch.logspace(-3, -1, mixer.n_heads)
        mixer.dt_bias.copy_(step.expm1().log())  # the inverse of softplus
    return model


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int64 (batch, time)."""
    config, time = (SMALL, 9) if small else (MambaConfig(), 64)
    rng = np.random.default_rng(seed)
    return {"tokens": rng.integers(0, config.vocab_size, (batch, time))}
