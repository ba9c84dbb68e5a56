"""Recurrent layers with two biases, one for the input and one for the state, where Keras has only one."""

from __future__ import annotations

import keras
from keras import layers, ops


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


class TwoBiasGRUCell(TwoBiases, layers.GRUCell):
    """A GRU cell whose reset gate acts before the recurrent product, with `input_bias` and `recurrent_bias`."""


class TwoBiasSimpleRNNCell(TwoBiases, layers.SimpleRNNCell):
    """A fully connected cell with `input_bias` and `recurrent_bias`."""


@keras.saving.register_keras_serializable()
class TwoBiasLSTM(layers.LSTM):
    """`layers.LSTM` with two biases; takes the same arguments."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self._layers.remove(self.cell)
        self.cell = TwoBiasLSTMCell.from_config(self.cell.get_config())


@keras.saving.register_keras_serializable()
class TwoBiasGRU(layers.GRU):
    """`layers.GRU` with `reset_after=False` and two biases; takes the same arguments."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self._layers.remove(self.cell)
        self.cell = TwoBiasGRUCell.from_config(self.cell.get_config())


@keras.saving.register_keras_serializable()
class TwoBiasSimpleRNN(layers.SimpleRNN):
    """`layers.SimpleRNN` with two biases; takes the same arguments."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self._layers.remove(self.cell)
        self.cell = TwoBiasSimpleRNNCell.from_config(self.cell.get_config())


def in_input_order(outputs):
    """The outputs of a recurrent layer that runs backwards, its sequence turned to the order of the input."""
    sequence, *states = outputs
    return ops.flip(sequence, axis=1), *states
