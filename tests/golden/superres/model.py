"""SuperResolution, ported from PyTorch (zoo:superres@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def pixel_shuffle(x, factor):
    """Channels counted as (depth, row, column) become blocks of `factor` x `factor` pixels: torch's order."""
    _, height, width, channels = ops.shape(x)
    depth = channels // factor**2
    x = ops.reshape(x, (-1, height, width, depth, factor, factor))
    x = ops.transpose(x, (0, 1, 4, 2, 5, 3))
    return ops.reshape(x, (-1, height * factor, width * factor, depth))


@keras.saving.register_keras_serializable("superres")
class SuperResolution(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = layers.Conv2D(8, 5, padding="same")
        self.conv2 = layers.Conv2D(8, 3, padding="same")
        self.conv3 = layers.Conv2D(4, 3, padding="same")
        self.conv4 = layers.Conv2D(8, 3, padding="same")

    def call(self, x):
        x = ops.relu(self.conv1(x))
        x = ops.relu(self.conv2(x))
        x = ops.relu(self.conv3(x))
        return pixel_shuffle(self.conv4(x), 2)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = SuperResolution()
    model(keras.Input((None, None, 2), name="x"))
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
