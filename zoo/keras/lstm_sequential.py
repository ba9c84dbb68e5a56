"""Text classifier as a Sequential model: an LSTM over the words, a bidirectional one over its states."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"tokens": {0: "batch", 1: "time"}}


def lstm_classifier(vocabulary=20000, embedding=128, units=64, classes=5, dropout=0.3):
    return keras.Sequential(
        [
            keras.Input((None,), dtype="int32", name="tokens"),
            layers.Embedding(vocabulary, embedding),
            layers.LSTM(units, return_sequences=True),
            layers.Dropout(dropout),
            layers.Bidirectional(layers.LSTM(units)),
            layers.Dense(units, activation="relu"),
            layers.Dropout(dropout),
            layers.Dense(classes, activation="softmax"),
        ]
    )


def make(*, small: bool = False) -> keras.Model:
    model = lstm_classifier(vocabulary=50, embedding=12, units=10, classes=3) if small else lstm_classifier()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int32 (batch, time)."""
    vocabulary, time = (50, 7) if small else (20000, 80)
    rng = np.random.default_rng(seed)
    return {"tokens": rng.integers(0, vocabulary, (batch, time), dtype=np.int32)}
