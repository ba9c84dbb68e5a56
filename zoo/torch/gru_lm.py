"""GRU language model whose output head shares its matrix with the embedding."""

import numpy as np
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {"vocab_size": 4000, "embedding_dim": 192, "hidden_size": 256, "num_layers": 2}
SMALL = {"vocab_size": 40, "embedding_dim": 12, "hidden_size": 14, "num_layers": 2}

DYNAMIC: dict[str, dict[int, str]] = {"tokens": {0: "batch", 1: "time"}, "hidden": {1: "batch"}}


class GRULanguageModel(nn.Module):
    """Next-token logits and the state to carry on with.

    tokens (batch, time), hidden (num_layers, batch, hidden_size) to
    logits (batch, time, vocab_size), hidden (num_layers, batch, hidden_size).
    """

    def __init__(
        self, vocab_size: int, embedding_dim: int, hidden_size: int, num_layers: int, dropout: float = 0.2
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(embedding_dim, hidden_size, num_layers, batch_first=True, dropout=dropout)
        self.projection = nn.Linear(hidden_size, embedding_dim)
        self.head = nn.Linear(embedding_dim, vocab_size)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        embedded = self.dropout(self.embedding(tokens))
        states, hidden = self.gru(embedded, hidden)
        return self.head(self.projection(self.dropout(states))), hidden


def make(*, small: bool = False) -> nn.Module:
    """The language model in eval mode with seeded weights."""
    return seed_weights(GRULanguageModel(**(SMALL if small else FULL)))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int64 (batch, time), padded with 0 in the last row; hidden: float32 (num_layers, batch, hidden_size)."""
    size, time = (SMALL, 6) if small else (FULL, 35)
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, size["vocab_size"], (batch, time))
    tokens[-1, -2:] = 0
    hidden = rng.standard_normal((size["num_layers"], batch, size["hidden_size"]), dtype=np.float32)
    return {"tokens": tokens, "hidden": np.tanh(hidden)}
