"""MLPMixer, ported from PyTorch (zoo:mixer@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("mixer")
class MlpBlock(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.n0 = layers.Dense(18)
        self.n2 = layers.Dense(16)
        self.n3 = layers.Dropout(0.1)

    def call(self, input_, training=None):
        return self.n3(
            self.n2(ops.gelu(self.n0(ops.transpose(input_, (0, 2, 1))), approximate=False)), training=training
        )


@keras.saving.register_keras_serializable("mixer")
class ChannelMixingMlpBlock(keras.Sequential):
    def __init__(self, **kwargs):
        super().__init__([layers.Dense(40), layers.Activation("gelu"), layers.Dense(24), layers.Dropout(0.1)], **kwargs)


@keras.saving.register_keras_serializable("mixer")
class MixerBlock(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.token_norm = layers.LayerNormalization(epsilon=1e-05)
        self.token_mixing = MlpBlock()
        self.channel_norm = layers.LayerNormalization(epsilon=1e-05)
        self.channel_mixing = ChannelMixingMlpBlock()

    def call(self, x, training=None):
        x = ops.transpose(x, (0, 2, 1)) + self.token_mixing(self.token_norm(x), training=training)
        return x + ops.transpose(
            self.channel_mixing(self.channel_norm(ops.transpose(x, (0, 2, 1))), training=training), (0, 2, 1)
        )


@keras.saving.register_keras_serializable("mixer")
class BlocksMixerBlock(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.token_norm = layers.LayerNormalization(epsilon=1e-05)
        self.token_mixing = MlpBlock()
        self.channel_norm = layers.LayerNormalization(epsilon=1e-05)
        self.channel_mixing = ChannelMixingMlpBlock()

    def call(self, x, training=None):
        x = x + self.token_mixing(self.token_norm(ops.transpose(x, (0, 2, 1))), training=training)
        return x + ops.transpose(
            self.channel_mixing(self.channel_norm(ops.transpose(x, (0, 2, 1))), training=training), (0, 2, 1)
        )


@keras.saving.register_keras_serializable("mixer")
class MLPMixer(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.stem = layers.Conv2D(24, 4, strides=4)
        self.blocks = keras.Sequential([MixerBlock(), BlocksMixerBlock()])
        self.norm = layers.LayerNormalization(epsilon=1e-05)
        self.head = layers.Dense(10)

    def call(self, images, training=None):
        x = ops.reshape(self.stem(images), (-1, 16, 24))
        x = self.norm(ops.transpose(self.blocks(x, training=training), (0, 2, 1)))
        return self.head(ops.mean(x, axis=1))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = MLPMixer()
    model(keras.Input((16, 16, 3), name="images"))
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
