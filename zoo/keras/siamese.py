"""Two pictures in, two answers out: how alike they are, and what each one shows, with one encoder and one head."""

import keras
import numpy as np
from keras import layers, ops

from porter.zoo.keras.seeding import seed_weights, settle_statistics

DYNAMIC = {
    "left": {0: "batch", 1: "left_height", 2: "left_width"},
    "right": {0: "batch", 1: "right_height", 2: "right_width"},
}


def encoder(widths, embedding):
    images = keras.Input((None, None, 1), name="images")
    x = images
    for index, width in enumerate(widths, start=1):
        x = layers.Conv2D(width, 3, padding="same", use_bias=False, name=f"conv{index}")(x)
        x = layers.BatchNormalization(name=f"norm{index}")(x)
        x = layers.LeakyReLU(0.1, name=f"relu{index}")(x)
        x = layers.MaxPooling2D(2, padding="same", name=f"pool{index}")(x)
    x = layers.GlobalMaxPooling2D(name="pool")(x)
    return keras.Model(images, layers.Dense(embedding, name="embed")(x), name="encoder")


def siamese(widths=(32, 64, 128), embedding=64, classes=100):
    left = keras.Input((None, None, 1), name="left")
    right = keras.Input((None, None, 1), name="right")
    encode = encoder(widths, embedding)
    classify = layers.Dense(classes, name="classify")
    a, b = encode(left), encode(right)
    distance = ops.abs(a - b)
    alike = layers.Dense(1, activation="sigmoid", name="alike")(distance)
    shown = layers.Concatenate(axis=1, name="shown")([ops.expand_dims(classify(x), 1) for x in (a, b)])
    return keras.Model([left, right], [alike, shown], name="siamese")


def make(*, small: bool = False) -> keras.Model:
    model = siamese(widths=(4, 8), embedding=6, classes=5) if small else siamese()
    return settle_statistics(seed_weights(model, gain=2.0), *inputs(small=small, batch=8, seed=1).values())


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Two grey pictures (batch, height, width, 1), which need not be of one size."""
    side = 20 if small else 105
    rng = np.random.default_rng(seed)
    return {
        "left": rng.standard_normal((batch, side, side, 1), dtype=np.float32),
        "right": rng.standard_normal((batch, side, side + 3, 1), dtype=np.float32),
    }
