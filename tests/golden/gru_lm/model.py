"""GRULanguageModel, ported from PyTorch (zoo:gru_lm@small) by porter."""

import math
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
        self.head_bias = self.add_weight(name="head_bias", shape=(40,), initializer="zeros")

    def call(self, tokens, hidden=None, training=None):  # Keras hands it on to every layer
        if isinstance(tokens, dict):  # fit() and predict() hand all inputs over as one
            return self.call(**tokens)
        if isinstance(tokens, (list, tuple)):
            return self.call(*tokens)
        embedded = self.dropout(without_padding_gradient(self.embedding(tokens), tokens, 0))
        states, x = self.gru_l0(embedded, initial_state=hidden[0])
        states, hidden = self.gru_l1(self.gru_dropout(states), initial_state=hidden[1])
        x = ops.stack([x, hidden])
        states = (
            ops.matmul(self.projection(self.dropout(states)), ops.transpose(self.embedding.embeddings)) + self.head_bias
        )
        return states, x

    def build_from_config(self, config):
        self(symbolic_inputs())

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = GRULanguageModel()
    model(symbolic_inputs())
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [keras.Input((None,), dtype="int64", name="tokens"), keras.Input(batch_shape=(2, None, 14), name="hidden")]


def initialize(layer):
    """Draw weights as the source does."""
    if isinstance(layer, layers.Embedding):
        layer.embeddings.assign(keras.random.normal(layer.embeddings.shape))
    elif isinstance(layer, layers.GRUCell):
        draw(layer, layer.units**-0.5)
    elif isinstance(layer, layers.Dense):
        draw(layer, math.prod(layer.kernel.shape[:-1]) ** -0.5)
    elif isinstance(layer, GRULanguageModel):
        redraw(layer.head_bias, keras.initializers.RandomUniform(-0.28867513, 0.28867513))
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def draw(layer, bound):
    for variable in layer.weights:
        variable.assign(keras.random.uniform(variable.shape, -bound, bound))


def redraw(variable, initializer):
    variable.assign(initializer(variable.shape, variable.dtype))


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
