"""Tagger and classifier of padded sentences: token 0 is padding, and the mask goes from layer to layer by itself."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"tokens": {0: "batch", 1: "time"}}


def masked_lstm(vocabulary=20000, embedding=128, units=64, tags=17, classes=5, dropout=0.3):
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    x = layers.Embedding(vocabulary, embedding, mask_zero=True, name="embedding")(tokens)
    x = layers.Dropout(dropout, name="dropout")(x)
    states = layers.Bidirectional(layers.LSTM(units, return_sequences=True), name="encoder")(x)
    tagged = layers.TimeDistributed(layers.Dense(tags), name="tags")(states)
    last = layers.LSTM(units, name="reader")(states)
    mean = layers.GlobalAveragePooling1D(name="mean")(states)
    summary = layers.Concatenate(name="summary")([last, mean])
    label = layers.Dense(classes, name="label")(summary)
    return keras.Model(tokens, [tagged, label], name="masked_lstm")


def make(*, small: bool = False) -> keras.Model:
    model = masked_lstm(vocabulary=50, embedding=12, units=10, tags=4, classes=3) if small else masked_lstm()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int32 (batch, time), each row but the first padded with 0 at its end."""
    vocabulary, time = (50, 7) if small else (20000, 80)
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, vocabulary, (batch, time), dtype=np.int32)
    for row in tokens[1:]:
        row[rng.integers(1, time) :] = 0
    return {"tokens": tokens}
