"""Encoder-decoder Transformer for translation, subclassed, on `layers.MultiHeadAttention`."""

import keras
import numpy as np
from keras import layers, ops

from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"source": {0: "batch", 1: "source_time"}, "target": {0: "batch", 1: "target_time"}}
FULL = {"words": 8000, "depth": 4, "width": 128, "heads": 8, "hidden": 512}
SMALL = {"words": 40, "depth": 2, "width": 16, "heads": 4, "hidden": 24}


def positions(length, width):
    """A sine and a cosine for each of `width / 2` wave lengths: (length, width)."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(width // 2)[None] / (width // 2))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype("float32")


@keras.saving.register_keras_serializable("zoo")
class PositionalEmbedding(layers.Layer):
    def __init__(self, words, width, longest=2048, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.embedding = layers.Embedding(words, width)
        self.positions = positions(longest, width)

    def call(self, tokens):
        x = self.embedding(tokens) * self.width**0.5
        length = ops.shape(tokens)[1]
        return x + ops.convert_to_tensor(self.positions, x.dtype)[None, :length]


@keras.saving.register_keras_serializable("zoo")
class FeedForward(layers.Layer):
    def __init__(self, width, hidden, dropout=0.1, **kwargs):
        super().__init__(**kwargs)
        self.mlp = keras.Sequential(
            [layers.Dense(hidden, activation="relu"), layers.Dense(width), layers.Dropout(dropout)]
        )
        self.add = layers.Add()
        self.norm = layers.LayerNormalization()

    def call(self, x):
        return self.norm(self.add([x, self.mlp(x)]))


@keras.saving.register_keras_serializable("zoo")
class EncoderLayer(layers.Layer):
    def __init__(self, width, heads, hidden, dropout=0.1, **kwargs):
        super().__init__(**kwargs)
        self.attention = layers.MultiHeadAttention(heads, width // heads, dropout=dropout)
        self.norm = layers.LayerNormalization(epsilon=1e-6)
        self.feed_forward = FeedForward(width, hidden, dropout)

    def call(self, x, mask):
        attended = self.attention(x, x, attention_mask=mask)
        return self.feed_forward(self.norm(x + attended))


@keras.saving.register_keras_serializable("zoo")
class DecoderLayer(layers.Layer):
    def __init__(self, width, heads, hidden, dropout=0.1, **kwargs):
        super().__init__(**kwargs)
        self.self_attention = layers.MultiHeadAttention(heads, width // heads, dropout=dropout)
        self.norm1 = layers.LayerNormalization(epsilon=1e-6)
        self.cross_attention = layers.MultiHeadAttention(heads, width // heads, dropout=dropout)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6)
        self.feed_forward = FeedForward(width, hidden, dropout)

    def call(self, x, memory, mask):
        x = self.norm1(x + self.self_attention(x, x, use_causal_mask=True))
        x = self.norm2(x + self.cross_attention(x, key=memory, value=memory, attention_mask=mask))
        return self.feed_forward(x)


@keras.saving.register_keras_serializable("zoo")
class TranslationTransformer(keras.Model):
    """Tokens (batch, source_time) and (batch, target_time), 0 for padding, to logits (batch, target_time, words)."""

    def __init__(self, words, depth, width, heads, hidden, dropout=0.1, **kwargs):
        super().__init__(**kwargs)
        self.source_embedding = PositionalEmbedding(words, width)
        self.target_embedding = PositionalEmbedding(words, width)
        self.dropout = layers.Dropout(dropout)
        self.encoder_layers = [EncoderLayer(width, heads, hidden, dropout) for _ in range(depth)]
        self.decoder_layers = [DecoderLayer(width, heads, hidden, dropout) for _ in range(depth)]
        self.final = layers.Dense(words)
        self.sizes = {"words": words, "depth": depth, "width": width, "heads": heads, "hidden": hidden}
        self.rate = dropout

    def get_config(self):
        return {**super().get_config(), **self.sizes, "dropout": self.rate}

    def build_from_config(self, config):
        # By itself Keras would build a loaded model on one input of floats.
        self(keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32"))

    def call(self, source, target):
        mask = ops.not_equal(source, 0)[:, None, :]
        memory = self.dropout(self.source_embedding(source))
        for layer in self.encoder_layers:
            memory = layer(memory, mask)
        x = self.dropout(self.target_embedding(target))
        for layer in self.decoder_layers:
            x = layer(x, memory, mask)
        return self.final(x)


def make(*, small: bool = False) -> keras.Model:
    model = TranslationTransformer(**(SMALL if small else FULL))
    model(keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32"))
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int32 (batch, time); sources but the first are padded with 0 at their end."""
    words, source_time, target_time = (SMALL["words"], 7, 5) if small else (FULL["words"], 48, 40)
    rng = np.random.default_rng(seed)
    source = rng.integers(1, words, (batch, source_time), dtype=np.int32)
    for row in source[1:]:
        row[rng.integers(1, source_time) :] = 0
    return {"source": source, "target": rng.integers(1, words, (batch, target_time), dtype=np.int32)}
