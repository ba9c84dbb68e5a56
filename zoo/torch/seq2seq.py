"""Recurrent translation model with additive attention: one call is one step of decoding."""

import numpy as np
import torch
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {
    "source_vocab": 3000,
    "target_vocab": 3500,
    "embedding_dim": 160,
    "encoder_size": 192,
    "decoder_size": 256,
    "attention_size": 128,
}
SMALL = {
    "source_vocab": 30,
    "target_vocab": 36,
    "embedding_dim": 8,
    "encoder_size": 10,
    "decoder_size": 12,
    "attention_size": 14,
}

DYNAMIC: dict[str, dict[int, str]] = {
    "source": {0: "batch", 1: "time"},
    "token": {0: "batch"},
    "hidden": {1: "batch"},
}


class Encoder(nn.Module):
    """Source tokens (batch, time) to states (batch, time, hidden_size)."""

    def __init__(self, vocab_size: int, embedding_dim: int, hidden_size: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(embedding_dim, hidden_size, batch_first=True)

    def forward(self, source: Tensor) -> Tensor:
        states, _ = self.gru(self.dropout(self.embedding(source)))
        return states


class Attention(nn.Module):
    """Additive attention: v · tanh(W query + U key), a softmax over the keys that are no padding."""

    def __init__(self, query_size: int, key_size: int, attention_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, attention_size)
        self.key = nn.Linear(key_size, attention_size, bias=False)
        self.energy = nn.Linear(attention_size, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        """query (batch, 1, query_size), keys (batch, time, key_size), padding (batch, time) to context, weights."""
        scores = self.energy(torch.tanh(self.query(query) + self.key(keys))).squeeze(-1)
        weights = scores.masked_fill(padding, float("-inf")).softmax(dim=-1)
        context = torch.bmm(weights.unsqueeze(1), keys)
        return context, weights


class Decoder(nn.Module):
    """One step: the previous token (batch,) and state (1, batch, hidden_size) to logits, state, attention weights."""

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        encoder_size: int,
        hidden_size: int,
        attention_size: int,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.dropout = nn.Dropout(dropout)
        self.attention = Attention(hidden_size, encoder_size, attention_size)
        self.gru = nn.GRU(embedding_dim + encoder_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size + encoder_size, vocab_size)

    def forward(self, token: Tensor, hidden: Tensor, states: Tensor, padding: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        embedded = self.dropout(self.embedding(token)).unsqueeze(1)
        query = hidden.transpose(0, 1)
        context, weights = self.attention(query, states, padding)
        output, hidden = self.gru(torch.cat([embedded, context], dim=-1), hidden)
        logits = self.out(torch.cat([output, context], dim=-1).squeeze(1))
        return logits, hidden, weights


class Seq2Seq(nn.Module):
    """source (batch, time), token (batch,), hidden (1, batch, decoder_size) to logits, hidden, attention weights."""

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        embedding_dim: int,
        encoder_size: int,
        decoder_size: int,
        attention_size: int,
    ) -> None:
        super().__init__()
        self.encoder = Encoder(source_vocab, embedding_dim, encoder_size)
        self.decoder = Decoder(target_vocab, embedding_dim, encoder_size, decoder_size, attention_size)

    def forward(self, source: Tensor, token: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states = self.encoder(source)
        return self.decoder(token, hidden, states, source == 0)


def make(*, small: bool = False) -> nn.Module:
    """The model in eval mode with seeded weights."""
    return seed_weights(Seq2Seq(**(SMALL if small else FULL)))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """source int64 (batch, time), the last row padded with 0; token int64 (batch,); hidden float32 (1, batch, size)."""
    size, time = (SMALL, 7) if small else (FULL, 24)
    rng = np.random.default_rng(seed)
    source = rng.integers(1, size["source_vocab"], (batch, time))
    source[-1, -2:] = 0
    hidden = rng.standard_normal((1, batch, size["decoder_size"]), dtype=np.float32)
    return {"source": source, "token": rng.integers(0, size["target_vocab"], (batch,)), "hidden": np.tanh(hidden)}
