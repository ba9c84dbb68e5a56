"""BERT encoder with a padding mask and a pooler, at the size of BERT-tiny."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC: dict[str, dict[int, str]] = {
    "input_ids": {0: "batch", 1: "time"},
    "attention_mask": {0: "batch", 1: "time"},
    "token_type_ids": {0: "batch", 1: "time"},
}


@dataclass(frozen=True)
class BertConfig:
    vocab_size: int = 3000
    hidden_size: int = 128
    num_hidden_layers: int = 2
    num_attention_heads: int = 2
    intermediate_size: int = 512
    max_position_embeddings: int = 256
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1


SMALL = BertConfig(
    vocab_size=50, hidden_size=12, num_attention_heads=3, intermediate_size=20, max_position_embeddings=32
)


class BertEmbeddings(nn.Module):
    """Sum of word, position and token type embeddings, normalised: (batch, time, hidden_size)."""

    position_ids: Tensor

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("position_ids", torch.arange(config.max_position_embeddings)[None], persistent=False)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        positions = self.position_ids[:, : input_ids.size(1)]
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        embeddings = embeddings + self.position_embeddings(positions)
        return self.dropout(self.norm(embeddings))


class BertSelfAttention(nn.Module):
    """Multi-head attention over (batch, time, hidden_size); `mask` is added to the scores."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def split_heads(self, x: Tensor) -> Tensor:
        batch, time, _ = x.shape
        return x.view(batch, time, self.num_heads, self.head_size).transpose(1, 2)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        query, key, value = (self.split_heads(layer(hidden)) for layer in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_size)
        weights = self.dropout(torch.softmax(scores + mask, dim=-1))
        return torch.matmul(weights, value).transpose(1, 2).flatten(2)


class BertAttention(nn.Module):
    """Self-attention, projection, residual and norm."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self_attention = BertSelfAttention(config)
        self.projection = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        attended = self.dropout(self.projection(self.self_attention(hidden, mask)))
        return self.norm(hidden + attended)


class BertFeedForward(nn.Module):
    """Two dense layers with a GELU between them, residual and norm."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.expansion = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = nn.GELU()
        self.contraction = nn.Linear(config.intermediate_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:
        expanded = self.activation(self.expansion(hidden))
        return self.norm(hidden + self.dropout(self.contraction(expanded)))


class BertLayer(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = BertAttention(config)
        self.feed_forward = BertFeedForward(config)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        return self.feed_forward(self.attention(hidden, mask))


class BertPooler(nn.Module):
    """The first token's state through a dense layer and tanh: (batch, hidden_size)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = nn.Tanh()

    def forward(self, hidden: Tensor) -> Tensor:
        return self.activation(self.dense(hidden[:, 0]))


class BertModel(nn.Module):
    """Three int64 inputs (batch, time) to states (batch, time, hidden_size) and pooled (batch, hidden_size)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        self.encoder = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))
        self.pooler = BertPooler(config)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.embeddings(input_ids, token_type_ids)
        mask = (1.0 - attention_mask[:, None, None, :].to(hidden.dtype)) * -1e4
        for layer in self.encoder:
            hidden = layer(hidden, mask)
        return hidden, self.pooler(hidden)


def make(*, small: bool = False) -> nn.Module:
    """The encoder in eval mode with seeded weights."""
    return seed_weights(BertModel(SMALL if small else BertConfig()))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Three int64 arrays (batch, time): two segments, rows of different length, padded with 0."""
    config, time = (SMALL, 9) if small else (BertConfig(), 48)
    rng = np.random.default_rng(seed)
    lengths = np.linspace(time, time // 2, batch).astype(np.int64)[:, None]
    positions = np.arange(time)[None]
    attention_mask = (positions < lengths).astype(np.int64)
    return {
        "input_ids": rng.integers(1, config.vocab_size, (batch, time)) * attention_mask,
        "attention_mask": attention_mask,
        "token_type_ids": (positions >= lengths // 2).astype(np.int64) * attention_mask,
    }
