"""MLP, ported from PyTorch (zoo:mlp@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("mlp")
class MLP(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embed = layers.Dense(16)
        self.layers_ = [layers.Dense(16) for _ in range(12)]
        self.head = layers.Dense(5)

    def call(self, x):
        x = self.embed(x)
        for layer in self.layers_:
            x = ops.gelu(layer(x), approximate=False)
        return self.head(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = MLP()
    model(keras.Input((6,), name="x"))
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
