"""GRULanguageModel, ported from PyTorch (zoo:gru_lm@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def without_padding_gradient(vectors, indices, padding_index):
    """Embedded `indices`, with no gradient to the vector of `padding_index`."""
    padding = ops.expand_dims(ops.equal(indices, padding_index), -1)
    return ops.where(padding, ops.stop_gradient(vectors), vectors)


@keras.saving.register_keras_serializable("gru_lm")
class GRULanguageModel(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(40, 12)
        self.dropout = layers.Dropout(0.2)
        self.gru_l0 = layers.GRU(14, return_sequences=True, return_state=True)
        self.gru_dropout = layers.Dropout(0.2)
        self.gru_l1 = layers.GRU(14, return_sequences=True, return_state=True)
        self.projection = layers.Dense(12)
        self.head_bias = self.add_weight(name="head_bias", shape=(40,))

    def call(self, tokens, hidden=None, training=None):
        if isinstance(tokens, (list, tuple)):  # fit() and predict() hand all inputs over as one
            tokens, hidden = tokens
        embedded = self.dropout(without_padding_gradient(self.embedding(tokens), tokens, 0), training=training)
        states, x = self.gru_l0(embedded, initial_state=hidden[0])
        states, hidden = self.gru_l1(self.gru_dropout(states, training=training), initial_state=hidden[1])
        x = ops.stack([x, hidden])
        states = (
            ops.matmul(
                self.projection(self.dropout(states, training=training)),
                ops.transpose(self.embedding.embeddings, (1, 0)),
            )
            + self.head_bias
        )
        return states, x


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = GRULanguageModel()
    model(keras.Input((None,), dtype="int64", name="tokens"), keras.Input(batch_shape=(2, None, 14), name="hidden"))
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
