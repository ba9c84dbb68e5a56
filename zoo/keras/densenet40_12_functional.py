"""DenseNet (L = 40, k = 12) with the functional API, for CIFAR; its layers have the names that Keras counts out."""

import keras
import numpy as np
from keras import layers, regularizers

from porter.zoo.keras.seeding import seed_weights, settle_statistics

DYNAMIC = {"images": {0: "batch", 1: "height", 2: "width"}}
WEIGHT_DECAY = 1e-4


def conv(x, filters, kernel_size):
    return layers.Conv2D(
        filters,
        kernel_size,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
        kernel_regularizer=regularizers.L2(WEIGHT_DECAY),
    )(x)


def bn_relu(x):
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def dense_block(x, count, growth, dropout):
    for _ in range(count):
        new = conv(bn_relu(x), growth, 3)
        new = layers.Dropout(dropout)(new)
        x = layers.Concatenate()([x, new])
    return x


def transition(x, dropout):
    x = conv(bn_relu(x), x.shape[-1], 1)
    x = layers.Dropout(dropout)(x)
    return layers.AveragePooling2D(2)(x)


def densenet(depth=40, growth=12, stem=16, classes=10, dropout=0.2):
    count = (depth - 4) // 3
    images = keras.Input((None, None, 3), name="images")
    x = conv(images, stem, 3)
    for _ in range(2):
        x = dense_block(x, count, growth, dropout)
        x = transition(x, dropout)
    x = dense_block(x, count, growth, dropout)
    x = layers.GlobalAveragePooling2D()(bn_relu(x))
    logits = layers.Dense(classes, kernel_regularizer=regularizers.L2(WEIGHT_DECAY))(x)
    return keras.Model(images, logits, name="densenet40_12")


def make(*, small: bool = False) -> keras.Model:
    model = densenet(depth=13, growth=4, stem=8) if small else densenet()
    return settle_statistics(seed_weights(model, gain=2.0), inputs(small=small, batch=8, seed=1)["images"])


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, height, width, 3)."""
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, 32, 32, 3), dtype=np.float32)}
