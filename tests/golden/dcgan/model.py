"""Generator, ported from PyTorch (zoo:dcgan@small) by porter."""

from pathlib import Path

import keras
from keras import layers
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("dcgan")
class Generator(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.main = keras.Sequential(
            [
                layers.Conv2DTranspose(16, 4, use_bias=False),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2DTranspose(8, 4, strides=2, padding="same", use_bias=False),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2DTranspose(4, 4, strides=2, padding="same", use_bias=False),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2DTranspose(3, 4, strides=2, padding="same", use_bias=False),
                layers.Activation("tanh"),
            ]
        )

    def call(self, z, training=None):
        return self.main(z, training=training)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = Generator()
    model(keras.Input((1, 1, 12), name="z"))
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
