"""Encoder-decoder Transformer built on `nn.Transformer`."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {
    "source_vocab": 3000,
    "target_vocab": 3500,
    "d_model": 256,
    "nhead": 8,
    "num_encoder_layers": 3,
    "num_decoder_layers": 3,
    "dim_feedforward": 1024,
}
SMALL = {
    "source_vocab": 30,
    "target_vocab": 36,
    "d_model": 12,
    "nhead": 2,
    "num_encoder_layers": 2,
    "num_decoder_layers": 1,
    "dim_feedforward": 20,
}

DYNAMIC: dict[str, dict[int, str]] = {
    "source": {0: "batch", 1: "source_time"},
    "target": {0: "batch", 1: "target_time"},
}


class PositionalEncoding(nn.Module):
    """Adds sines and cosines of geometrically spaced wavelengths to (batch, time, d_model)."""

    encoding: Tensor

    def __init__(self, d_model: int, dropout: float = 0.1, max_length: int = 512) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_length).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        encoding = torch.zeros(1, max_length, d_model)
        encoding[0, :, 0::2] = torch.sin(position * frequency)
        encoding[0, :, 1::2] = torch.cos(position * frequency)
        self.register_buffer("encoding", encoding)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.encoding[:, : x.size(1)])


class TranslationTransformer(nn.Module):
    """source (batch, source_time), target (batch, target_time) to logits (batch, target_time, target_vocab)."""

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int,
        nhead: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        dim_feedforward: int,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.source_embedding = nn.Embedding(source_vocab, d_model)
        self.target_embedding = nn.Embedding(target_vocab, d_model)
        self.positional_encoding = PositionalEncoding(d_model, dropout)
        self.transformer = nn.Transformer(
            d_model=d_model,
            nhead=nhead,
            num_encoder_layers=num_encoder_layers,
            num_decoder_layers=num_decoder_layers,
            dim_feedforward=dim_feedforward,
            dropout=dropout,
            batch_first=True,
        )
        self.generator = nn.Linear(d_model, target_vocab)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_embedded = self.positional_encoding(self.source_embedding(source) * self.scale)
        target_embedded = self.positional_encoding(self.target_embedding(target) * self.scale)
        causal_mask = nn.Transformer.generate_square_subsequent_mask(
            target.size(1), device=target.device, dtype=target_embedded.dtype
        )
        decoded = self.transformer(source_embedded, target_embedded, tgt_mask=causal_mask, tgt_is_causal=True)
        return self.generator(decoded)


def make(*, small: bool = False) -> nn.Module:
    """The model in eval mode with seeded weights."""
    return seed_weights(TranslationTransformer(**(SMALL if small else FULL)))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """source: int64 (batch, source_time); target: int64 (batch, target_time)."""
    size, source_time, target_time = (SMALL, 7, 5) if small else (FULL, 24, 20)
    rng = np.random.default_rng(seed)
    return {
        "source": rng.integers(0, size["source_vocab"], (batch, source_time)),
        "target": rng.integers(0, size["target_vocab"], (batch, target_time)),
    }
