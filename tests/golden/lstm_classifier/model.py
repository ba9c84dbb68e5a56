"""LSTMClassifier, ported from PyTorch (zoo:lstm_classifier@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


class TwoBiases:
    """Gives a recurrent cell a second bias. It computes with their sum, so each of them gets the whole gradient."""

    def build(self, input_shape):
        super().build(input_shape)
        self.recurrent_bias = self.add_weight(shape=self.input_bias.shape, name="recurrent_bias", initializer="zeros")

    @property
    def bias(self):
        return self.input_bias + self.recurrent_bias

    @bias.setter
    def bias(self, variable):
        self.input_bias = variable


class TwoBiasLSTMCell(TwoBiases, layers.LSTMCell):
    """An LSTM cell with `input_bias` and `recurrent_bias`."""


@keras.saving.register_keras_serializable()
class TwoBiasLSTM(layers.LSTM):
    """`layers.LSTM` with two biases; takes the same arguments."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self._layers.remove(self.cell)
        self.cell = TwoBiasLSTMCell.from_config(self.cell.get_config())


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

    def call(self, tokens, training=None):
        tokens = self.lstm_l1(self.lstm_dropout(self.lstm_l0(self.embedding(tokens)), training=training))
        pooled = ops.mean(tokens, axis=1)
        return self.classifier(self.dropout(pooled, training=training))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = LSTMClassifier()
    model(keras.Input((None,), dtype="int64", name="tokens"))
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
