"""MLPMixer, ported from PyTorch (zoo:mixer@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("mixer")
class MlpBlock(layers.Layer):
    def __init__(self, units, inner_units, **kwargs):
        super().__init__(**kwargs)
        self.layers = [layers.Dense(inner_units), layers.Activation("gelu"), layers.Dense(units), layers.Dropout(0.1)]

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@keras.saving.register_keras_serializable("mixer")
class MixerBlock(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.token_norm = layers.LayerNormalization(epsilon=1e-05)
        self.token_mixing = MlpBlock(16, 18)
        self.channel_norm = layers.LayerNormalization(epsilon=1e-05)
        self.channel_mixing = MlpBlock(24, 40)

    def call(self, x):
        x = x + ops.transpose(self.token_mixing(ops.transpose(self.token_norm(x), (0, 2, 1))), (0, 2, 1))
        return x + self.channel_mixing(self.channel_norm(x))


@keras.saving.register_keras_serializable("mixer")
class MLPMixer(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.stem = layers.Conv2D(24, 4, strides=4)
        self.blocks = keras.Sequential([MixerBlock() for _ in range(2)])
        self.norm = layers.LayerNormalization(epsilon=1e-05)
        self.head = layers.Dense(10)

    def call(self, images, training=None):  # Keras hands it on to every layer
        x = ops.reshape(self.stem(images), (-1, 16, 24))
        x = self.norm(self.blocks(x))
        return self.head(ops.mean(x, axis=1))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = MLPMixer()
    model(keras.Input((16, 16, 3), name="images"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, (layers.Dense, layers.Conv2D)):
        bound = math.prod(layer.kernel.shape[:-1]) ** -0.5
        for variable in layer.weights:
            variable.assign(keras.random.uniform(variable.shape, -bound, bound))
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
