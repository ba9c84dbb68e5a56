"""Bidirectional LSTM classifier written by hand in Keras: the twin of `porter.zoo.torch.lstm_classifier`."""

import keras
import numpy as np
from keras import KerasTensor, layers, ops
from torch import nn

from porter.zoo.keras.seeding import seed_weights

FULL = {"vocab_size": 5000, "embedding_dim": 200, "hidden_size": 256, "num_classes": 5}
SMALL = {"vocab_size": 50, "embedding_dim": 12, "hidden_size": 10, "num_classes": 3}

DYNAMIC: dict[str, dict[int, str]] = {"tokens": {0: "batch", 1: "time"}}


class LSTMClassifier(keras.Model):
    """Tokens (batch, time) to logits (batch, num_classes)."""

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        hidden_size: int,
        num_classes: int,
        num_layers: int = 2,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.embedding = layers.Embedding(vocab_size, embedding_dim)
        self.lstm = keras.Sequential()
        for layer in range(num_layers):
            if layer > 0:
                self.lstm.add(layers.Dropout(dropout))
            self.lstm.add(layers.Bidirectional(layers.LSTM(hidden_size, return_sequences=True)))
        self.dropout = layers.Dropout(dropout)
        self.classifier = layers.Dense(num_classes)

    def call(self, tokens: KerasTensor) -> KerasTensor:
        states = self.lstm(self.embedding(tokens))
        pooled = ops.mean(states, axis=1)
        return self.classifier(self.dropout(pooled))


def make(*, small: bool = False) -> keras.Model:
    """The classifier, built, with seeded weights."""
    model = LSTMClassifier(**(SMALL if small else FULL))
    model(keras.Input((None,), dtype="int64"))
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Tokens: int64 (batch, time)."""
    size, time = (SMALL, 7) if small else (FULL, 40)
    rng = np.random.default_rng(seed)
    return {"tokens": rng.integers(0, size["vocab_size"], (batch, time))}


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model.

    The gates are in the same order on both sides; torch has two biases where Keras has their sum.
    """
    weights = {name: parameter.detach().numpy() for name, parameter in torch_model.named_parameters()}
    keras_model.embedding.set_weights([weights["embedding.weight"]])
    keras_model.classifier.set_weights([weights["classifier.weight"].T, weights["classifier.bias"]])
    recurrent = [layer for layer in keras_model.lstm.layers if isinstance(layer, layers.Bidirectional)]
    for index, layer in enumerate(recurrent):
        for direction, suffix in ((layer.forward_layer, f"l{index}"), (layer.backward_layer, f"l{index}_reverse")):
            kernel, recurrent_kernel = weights[f"lstm.weight_ih_{suffix}"].T, weights[f"lstm.weight_hh_{suffix}"].T
            bias = weights[f"lstm.bias_ih_{suffix}"] + weights[f"lstm.bias_hh_{suffix}"]
            direction.set_weights([kernel, recurrent_kernel, bias])
