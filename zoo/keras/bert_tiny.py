"""BERT encoder with a padding mask and a pooler, written by hand in Keras: the twin of `porter.zoo.torch.bert_tiny`."""

import math
from dataclasses import dataclass

import keras
import numpy as np
from keras import KerasTensor, layers, ops
from torch import nn

from porter.zoo.keras.carry import carry
from porter.zoo.keras.seeding import seed_weights

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


class BertEmbeddings(layers.Layer):
    """Sum of word, position and token type embeddings, normalised: (batch, time, hidden_size)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = layers.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = layers.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = layers.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = layers.LayerNormalization(epsilon=config.layer_norm_eps)
        self.dropout = layers.Dropout(config.dropout)

    def call(self, input_ids: KerasTensor, token_type_ids: KerasTensor) -> KerasTensor:
        positions = ops.arange(ops.shape(input_ids)[1])
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.norm(embeddings + self.position_embeddings(positions)))


class BertSelfAttention(layers.Layer):
    """Multi-head attention over (batch, time, hidden_size); `mask` is added to the scores."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.hidden_size = config.hidden_size
        self.head_size = config.hidden_size // config.num_attention_heads
        self.query = layers.Dense(config.hidden_size)
        self.key = layers.Dense(config.hidden_size)
        self.value = layers.Dense(config.hidden_size)
        self.dropout = layers.Dropout(config.dropout)

    def split_heads(self, x: KerasTensor) -> KerasTensor:
        time = ops.shape(x)[1]
        return ops.transpose(ops.reshape(x, (-1, time, self.num_heads, self.head_size)), (0, 2, 1, 3))

    def call(self, hidden: KerasTensor, mask: KerasTensor) -> KerasTensor:
        query, key, value = (self.split_heads(layer(hidden)) for layer in (self.query, self.key, self.value))
        scores = ops.matmul(query, ops.swapaxes(key, -1, -2)) / math.sqrt(self.head_size)
        weights = self.dropout(ops.softmax(scores + mask))
        context = ops.transpose(ops.matmul(weights, value), (0, 2, 1, 3))
        return ops.reshape(context, (-1, ops.shape(hidden)[1], self.hidden_size))


class BertAttention(layers.Layer):
    """Self-attention, projection, residual and norm."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self_attention = BertSelfAttention(config)
        self.projection = layers.Dense(config.hidden_size)
        self.dropout = layers.Dropout(config.dropout)
        self.norm = layers.LayerNormalization(epsilon=config.layer_norm_eps)

    def call(self, hidden: KerasTensor, mask: KerasTensor) -> KerasTensor:
        attended = self.dropout(self.projection(self.self_attention(hidden, mask)))
        return self.norm(hidden + attended)


class BertFeedForward(layers.Layer):
    """Two dense layers with a GELU between them, residual and norm."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.expansion = layers.Dense(config.intermediate_size, activation="gelu")
        self.contraction = layers.Dense(config.hidden_size)
        self.dropout = layers.Dropout(config.dropout)
        self.norm = layers.LayerNormalization(epsilon=config.layer_norm_eps)

    def call(self, hidden: KerasTensor) -> KerasTensor:
        return self.norm(hidden + self.dropout(self.contraction(self.expansion(hidden))))


class BertLayer(layers.Layer):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = BertAttention(config)
        self.feed_forward = BertFeedForward(config)

    def call(self, hidden: KerasTensor, mask: KerasTensor) -> KerasTensor:
        return self.feed_forward(self.attention(hidden, mask))


class BertPooler(layers.Layer):
    """The first token's state through a dense layer and tanh: (batch, hidden_size)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = layers.Dense(config.hidden_size, activation="tanh")

    def call(self, hidden: KerasTensor) -> KerasTensor:
        return self.dense(hidden[:, 0])


class BertModel(keras.Model):
    """Three int64 inputs (batch, time) to states (batch, time, hidden_size) and pooled (batch, hidden_size)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        self.encoder = [BertLayer(config) for _ in range(config.num_hidden_layers)]
        self.pooler = BertPooler(config)

    def call(
        self, input_ids: KerasTensor, attention_mask: KerasTensor, token_type_ids: KerasTensor
    ) -> tuple[KerasTensor, KerasTensor]:
        hidden = self.embeddings(input_ids, token_type_ids)
        mask = (1.0 - ops.cast(attention_mask[:, None, None, :], hidden.dtype)) * -1e4
        for layer in self.encoder:
            hidden = layer(hidden, mask)
        return hidden, self.pooler(hidden)


def make(*, small: bool = False) -> keras.Model:
    """The encoder, built, with seeded weights."""
    model = BertModel(SMALL if small else BertConfig())
    model(*(keras.Input((None,), dtype="int64", name=name) for name in DYNAMIC))
    return seed_weights(model)


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


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model."""
    carry(torch_model, keras_model)
