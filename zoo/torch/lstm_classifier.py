"""Text classifier: embedding, stacked bidirectional LSTM, mean pooling."""

import numpy as np
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {"vocab_size": 5000, "embedding_dim": 200, "hidden_size": 256, "num_classes": 5}
SMALL = {"vocab_size": 50, "embedding_dim": 12, "hidden_size": 10, "num_classes": 3}

DYNAMIC: dict[str, dict[int, str]] = {"tokens": {0: "batch", 1: "time"}}


class LSTMClassifier(nn.Module):
    """Tokens (batch, time) to logits (batch, num_classes)."""

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        hidden_size: int,
        num_classes: int,
        num_layers: int = 2,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(
            embedding_dim, hidden_size, num_layers, batch_first=True, dropout=dropout, bidirectional=True
        )
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * hidden_size, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        pooled = states.mean(dim=1)
        return self.classifier(self.dropout(pooled))


def make(*, small: bool = False) -> nn.Module:
    """The classifier in eval mode with seeded weights."""
    return seed_weights(LSTMClassifier(**(SMALL if small else FULL)))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int64 (batch, time)."""
    size, time = (SMALL, 7) if small else (FULL, 40)
    rng = np.random.default_rng(seed)
    return {"tokens": rng.integers(0, size["vocab_size"], (batch, time))}
