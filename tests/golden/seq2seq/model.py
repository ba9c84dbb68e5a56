"""Seq2Seq, ported from PyTorch (zoo:seq2seq@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def without_padding_gradient(vectors, indices, padding_index):
    """Embedded `indices`, with no gradient to the vector of `padding_index`."""
    padding = ops.expand_dims(ops.equal(indices, padding_index), -1)
    return ops.where(padding, ops.stop_gradient(vectors), vectors)


@keras.saving.register_keras_serializable("seq2seq")
class Encoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(30, 8)
        self.dropout = layers.Dropout(0.1)
        self.gru = layers.GRU(10, return_sequences=True)

    def call(self, source, training=None):
        return self.gru(self.dropout(without_padding_gradient(self.embedding(source), source, 0), training=training))


@keras.saving.register_keras_serializable("seq2seq")
class Attention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.query = layers.Dense(14)
        self.key = layers.Dense(14, use_bias=False)
        self.energy = layers.Dense(1, use_bias=False)

    def call(self, padding, keys, padding_node_GRU_29_sequence):
        scores = ops.squeeze(
            self.energy(ops.tanh(self.query(keys) + ops.transpose(self.key(padding_node_GRU_29_sequence), (1, 0, 2)))),
            axis=2,
        )
        weights = ops.softmax(ops.where(ops.transpose(padding, (1, 0)), float("-inf"), scores), axis=0)
        x = ops.transpose(weights, (1, 0))
        context = ops.matmul(ops.transpose(ops.expand_dims(weights, axis=0), (2, 0, 1)), padding_node_GRU_29_sequence)
        return context, x


@keras.saving.register_keras_serializable("seq2seq")
class Decoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(36, 8)
        self.dropout = layers.Dropout(0.1)
        self.attention_ = layers.Attention()
        self.gru = layers.GRU(12, return_sequences=True, return_state=True)
        self.out = layers.Dense(36)

    def call(self, token, hidden, padding, padding_node_GRU_29_sequence, training=None):
        embedded = ops.expand_dims(self.dropout(self.embedding(token), training=training), axis=1)
        context, weights = self.attention_(padding, hidden, padding_node_GRU_29_sequence)
        output, hidden = self.gru(ops.concatenate([embedded, context], axis=-1), initial_state=hidden[0])
        hidden = ops.expand_dims(hidden, axis=0)
        logits = self.out(ops.squeeze(ops.concatenate([output, context], axis=-1), axis=1))
        return logits, hidden, weights


@keras.saving.register_keras_serializable("seq2seq")
class Seq2Seq(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = Encoder()
        self.decoder = Decoder()

    def call(self, source, token=None, hidden=None, training=None):
        if isinstance(source, (list, tuple)):  # fit() and predict() hand all inputs over as one
            source, token, hidden = source
        states = self.encoder(source, training=training)
        x, y, z = self.decoder(token, hidden, ops.equal(source, 0), states, training=training)
        return x, y, z


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = Seq2Seq()
    model(
        keras.Input((None,), dtype="int64", name="source"),
        keras.Input((), dtype="int64", name="token"),
        keras.Input(batch_shape=(1, None, 12), name="hidden"),
    )
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    return model


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        *owners, variable = name.split(".")
        layer = model
        for owner in owners:
            layer = getattr(layer, "layers", layer)[int(owner)] if owner.isdigit() else getattr(layer, owner)
        getattr(layer, variable).assign(array)
