"""Decoder-only language model in the manner of GPT-2."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC: dict[str, dict[int, str]] = {"tokens": {0: "batch", 1: "time"}}


@dataclass(frozen=True)
class GPTConfig:
    vocab_size: int = 2000
    block_size: int = 256
    n_layer: int = 4
    n_head: int = 6
    n_embd: int = 192
    dropout: float = 0.1


SMALL = GPTConfig(vocab_size=40, block_size=32, n_layer=2, n_head=3, n_embd=12)


class CausalSelfAttention(nn.Module):
    """Each position of (batch, time, n_embd) attends to itself and what came before."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.dropout = config.dropout
        self.resid_dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, channels = x.shape
        query, key, value = (
            part.view(batch, time, self.n_head, channels // self.n_head).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, dim=-1)
        )
        attended = F.scaled_dot_product_attention(
            query, key, value, dropout_p=self.dropout if self.training else 0.0, is_causal=True
        )
        attended = attended.transpose(1, 2).reshape(batch, time, channels)
        return self.resid_dropout(self.c_proj(attended))


class MLP(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Tokens (batch, time ≤ block_size) to logits (batch, time, vocab_size); the head is the token embedding."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.size(1), device=tokens.device)
        x = self.drop(self.wte(tokens) + self.wpe(positions))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def make(*, small: bool = False) -> nn.Module:
    """The language model in eval mode with seeded weights."""
    return seed_weights(GPT(SMALL if small else GPTConfig()))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int64 (batch, time)."""
    config, time = (SMALL, 7) if small else (GPTConfig(), 64)
    rng = np.random.default_rng(seed)
    return {"tokens": rng.integers(0, config.vocab_size, (batch, time))}
