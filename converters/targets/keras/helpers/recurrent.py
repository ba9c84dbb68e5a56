"""Recurrent layers with two biases, one for the input and one for the state, where Keras has only one."""

from __future__ import annotations

import keras
from keras import layers, ops


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


class TwoBiasGRUCell(TwoBiases, layers.GRUCell):
    """A GRU cell whose reset gate acts before the recurrent product, with `input_bias` and `recurrent_bias`."""


class TwoBiasSimpleRNNCell(TwoBiases, layers.SimpleRNNCell):
    """A fully connected cell with `input_bias` and `recurrent_bias`."""


@keras.saving.register_keras_serializable()
class TwoBiasLSTM(layers.LSTM):
    """`layers.LSTM` with two biases; takes the same arguments."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self.cell.__class__ = TwoBiasLSTMCell


@keras.saving.register_keras_serializable()
class TwoBiasGRU(layers.GRU):
    """`layers.GRU` with `reset_after=False` and two biases; takes the same arguments."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self.cell.__class__ = TwoBiasGRUCell


@keras.saving.register_keras_serializable()
class TwoBiasSimpleRNN(layers.SimpleRNN):
    """`layers.SimpleRNN` with two biases; takes the same arguments."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self.cell.__class__ = TwoBiasSimpleRNNCell


def in_input_order(outputs):
    """The outputs of a recurrent layer that runs backwards, its sequence turned to the order of the input."""
    sequence, *states = outputs
    return ops.flip(sequence, axis=1), *states
