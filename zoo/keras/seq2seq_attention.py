"""Translation with GRUs and dot-product attention, subclassed: the decoder is fed the right words."""

import keras
import numpy as np
from keras import layers, ops

from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"source": {0: "batch", 1: "source_time"}, "target": {0: "batch", 1: "target_time"}}
FULL = {"source_words": 8000, "target_words": 8000, "embedding": 128, "units": 256}
SMALL = {"source_words": 40, "target_words": 30, "embedding": 10, "units": 8}


@keras.saving.register_keras_serializable("zoo")
class GRUEncoder(layers.Layer):
    def __init__(self, words, embedding, units, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(words, embedding, mask_zero=True)
        self.gru = layers.GRU(units, return_sequences=True, return_state=True)

    def call(self, tokens):
        mask = self.embedding.compute_mask(tokens)
        states, last = self.gru(self.embedding(tokens), mask=mask)
        return states, last, mask


@keras.saving.register_keras_serializable("zoo")
class AttentionDecoder(layers.Layer):
    def __init__(self, words, embedding, units, dropout=0.2, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(words, embedding)
        self.dropout = layers.Dropout(dropout)
        self.gru = layers.GRU(units, return_sequences=True)
        self.attention = layers.Attention()
        self.combine = layers.Dense(units, activation="tanh", use_bias=False)
        self.words = layers.Dense(words)

    def call(self, tokens, memory, state, memory_mask):
        x = self.dropout(self.embedding(tokens))
        x = self.gru(x, initial_state=state)
        context = self.attention([x, memory], mask=[None, memory_mask])
        x = self.combine(ops.concatenate([context, x], axis=-1))
        return self.words(x)


@keras.saving.register_keras_serializable("zoo")
class Seq2Seq(keras.Model):
    """Tokens (batch, source_time) and (batch, target_time) to logits (batch, target_time, target_words)."""

    def __init__(self, source_words, target_words, embedding, units, **kwargs):
        super().__init__(**kwargs)
        self.encoder = GRUEncoder(source_words, embedding, units)
        self.decoder = AttentionDecoder(target_words, embedding, units)
        self.config = {
            "source_words": source_words,
            "target_words": target_words,
            "embedding": embedding,
            "units": units,
        }

    def get_config(self):
        return {**super().get_config(), **self.config}

    def build_from_config(self, config):
        # By itself Keras would build a loaded model on one input of floats.
        self(keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32"))

    def call(self, source, target):
        memory, state, mask = self.encoder(source)
        return self.decoder(target, memory, state, mask)


def make(*, small: bool = False) -> keras.Model:
    model = Seq2Seq(**(SMALL if small else FULL))
    model(keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32"))
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int32 (batch, time); sources but the first are padded with 0 at their end."""
    words, source_time, target_time = (SMALL, 7, 5) if small else (FULL, 30, 24)
    rng = np.random.default_rng(seed)
    source = rng.integers(1, words["source_words"], (batch, source_time), dtype=np.int32)
    for row in source[1:]:
        row[rng.integers(1, source_time) :] = 0
    return {"source": source, "target": rng.integers(1, words["target_words"], (batch, target_time), dtype=np.int32)}
