"""Seq2Seq, ported from PyTorch (zoo:seq2seq@small) by porter."""

import math
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

    def call(self, source):
        return self.gru(self.dropout(without_padding_gradient(self.embedding(source), source, 0)))


@keras.saving.register_keras_serializable("seq2seq")
class Attention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.query = layers.Dense(14)
        self.key = layers.Dense(14, use_bias=False)
        self.energy = layers.Dense(1, use_bias=False)

    def call(self, query, keys, padding):
        scores = ops.squeeze(self.energy(ops.tanh(self.query(query) + self.key(keys))), axis=2)
        weights = ops.softmax(ops.where(padding, float("-inf"), scores))
        context = ops.matmul(ops.expand_dims(weights, axis=1), keys)
        return context, weights


@keras.saving.register_keras_serializable("seq2seq")
class Decoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(36, 8)
        self.dropout = layers.Dropout(0.1)
        self.attention = Attention()
        self.gru = layers.GRU(12, return_sequences=True, return_state=True)
        self.out = layers.Dense(36)

    def call(self, token, hidden, states, padding):
        embedded = ops.expand_dims(self.dropout(self.embedding(token)), axis=1)
        query = ops.transpose(hidden, (1, 0, 2))
        context, weights = self.attention(query, states, padding)
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

    def call(self, source, token=None, hidden=None, training=None):  # Keras hands it on to every layer
        if isinstance(source, dict):  # fit() and predict() hand all inputs over as one
            return self.call(**source)
        if isinstance(source, (list, tuple)):
            return self.call(*source)
        states = self.encoder(source)
        x, y, z = self.decoder(token, hidden, states, ops.equal(source, 0))
        return x, y, z

    def build_from_config(self, config):
        self(symbolic_inputs())

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = Seq2Seq()
    model(symbolic_inputs())
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [
        keras.Input((None,), dtype="int64", name="source"),
        keras.Input((), dtype="int64", name="token"),
        keras.Input(batch_shape=(1, None, 12), name="hidden"),
    ]


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in, recurrent ±1/√units, normal embeddings."""
    if isinstance(layer, layers.Embedding):
        layer.embeddings.assign(keras.random.normal(layer.embeddings.shape))
    elif isinstance(layer, layers.GRUCell):
        draw(layer, layer.units**-0.5)
    elif isinstance(layer, layers.Dense):
        draw(layer, math.prod(layer.kernel.shape[:-1]) ** -0.5)
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def draw(layer, bound):
    for variable in layer.weights:
        variable.assign(keras.random.uniform(variable.shape, -bound, bound))


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
