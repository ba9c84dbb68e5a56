"""LSTMClassifier, ported from PyTorch (zoo:lstm_classifier@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


class TwoBiases:
    """Gives a recurrent cell a second bias. It computes with their sum, so each of them gets the whole gradient."""

    @property
    def bias(self):
        return self.input_bias + self.recurrent_bias

    @bias.setter
    def bias(self, variable):  # as the cell is built
        self.input_bias = variable
        self.recurrent_bias = self.add_weight(shape=variable.shape, name="recurrent_bias", initializer="zeros")


class TwoBiasLSTMCell(TwoBiases, layers.LSTMCell):
    """An LSTM cell with `input_bias` and `recurrent_bias`."""


@keras.saving.register_keras_serializable()
class TwoBiasLSTM(layers.LSTM):
    """`layers.LSTM` with two biases; takes the same arguments."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self.cell.__class__ = TwoBiasLSTMCell


@keras.saving.register_keras_serializable("lstm_classifier")
class LSTMClassifier(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(50, 12)
        self.lstm_l0 = layers.Bidirectional(TwoBiasLSTM(10, return_sequences=True))
        self.lstm_dropout = layers.Dropout(0.3)
        self.lstm_l1 = layers.Bidirectional(TwoBiasLSTM(10, return_sequences=True))
        self.dropout = layers.Dropout(0.3)
        self.classifier = layers.Dense(3)

    def call(self, tokens, training=None):  # Keras hands it on to every layer
        tokens = self.lstm_l1(self.lstm_dropout(self.lstm_l0(self.embedding(tokens))))
        pooled = ops.mean(tokens, axis=1)
        return self.classifier(self.dropout(pooled))

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = LSTMClassifier()
    model(*symbolic_inputs())
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [keras.Input((None,), dtype="int64", name="tokens")]


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in, recurrent ±1/√units, normal embeddings."""
    if isinstance(layer, layers.Embedding):
        layer.embeddings.assign(keras.random.normal(layer.embeddings.shape))
    elif isinstance(layer, layers.LSTMCell):
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
