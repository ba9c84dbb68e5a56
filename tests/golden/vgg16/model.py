"""VGG, ported from PyTorch (zoo:vgg16@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("vgg16")
class VGG(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.features = keras.Sequential(
            [
                layers.Conv2D(4, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2D(4, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.MaxPooling2D(2, strides=2),
                layers.Conv2D(8, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2D(8, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.MaxPooling2D(2, strides=2),
                layers.Conv2D(12, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2D(12, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2D(12, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.MaxPooling2D(2, strides=2),
                layers.Conv2D(16, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2D(16, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2D(16, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.MaxPooling2D(2, strides=2),
                layers.Conv2D(16, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2D(16, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.Conv2D(16, 3, padding="same"),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-05),
                layers.ReLU(),
                layers.MaxPooling2D(2, strides=2),
            ]
        )
        self.classifier = keras.Sequential(
            [
                layers.Dense(32),
                layers.ReLU(),
                layers.Dropout(0.5),
                layers.Dense(32),
                layers.ReLU(),
                layers.Dropout(0.5),
                layers.Dense(10),
            ]
        )

    def call(self, x, training=None):
        x = self.features(x, training=training)
        x = ops.reshape(x, (-1, 64))
        return self.classifier(x, training=training)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = VGG()
    model(keras.Input((64, 64, 3), name="x"))
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
