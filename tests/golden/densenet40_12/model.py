"""DenseNet, ported from PyTorch (zoo:densenet40_12@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("densenet40_12")
class DenseLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.conv = layers.Conv2D(4, 3, padding="same", use_bias=False)
        self.dropout = layers.Dropout(0.2)

    def call(self, x, training=None):
        new = self.dropout(self.conv(ops.relu(self.norm(x, training=training))), training=training)
        return ops.concatenate([x, new], axis=3)


@keras.saving.register_keras_serializable("densenet40_12")
class Transition(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.conv = layers.Conv2D(filters, 1, use_bias=False)
        self.pool = layers.AveragePooling2D(2, strides=2)

    def call(self, x, training=None):
        return self.pool(self.conv(ops.relu(self.norm(x, training=training))))

    def get_config(self):
        return {**super().get_config(), "filters": self.filters}


@keras.saving.register_keras_serializable("densenet40_12")
class DenseNet(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = layers.Conv2D(8, 3, padding="same", use_bias=False)
        self.block1 = keras.Sequential([*(DenseLayer() for _ in range(3))])
        self.trans1 = Transition(20)
        self.block2 = keras.Sequential([*(DenseLayer() for _ in range(3))])
        self.trans2 = Transition(32)
        self.block3 = keras.Sequential([*(DenseLayer() for _ in range(3))])
        self.norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-05)
        self.fc = layers.Dense(10)

    def call(self, x, training=None):
        x = self.conv1(x)
        x = self.trans1(self.block1(x, training=training), training=training)
        x = self.trans2(self.block2(x, training=training), training=training)
        x = ops.relu(self.norm(self.block3(x, training=training), training=training))
        x = ops.reshape(ops.mean(x, axis=(1, 2), keepdims=True), (-1, 44))
        return self.fc(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = DenseNet()
    model(keras.Input((None, None, 3), name="x"))
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
