"""Segmentation in the manner of a U-Net: separable convolutions on the way down, transposed ones on the way up."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights, settle_statistics

# A picture whose sides are multiples of 8 comes back at its own size; others are refused where the paths join.
DYNAMIC = {"images": {0: "batch"}}


def down(x, filters):
    shortcut = layers.Conv2D(filters, 1, strides=2, padding="same")(x)
    for _ in range(2):
        x = layers.Activation("relu")(x)
        x = layers.SeparableConv2D(filters, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    return layers.add([x, shortcut])


def up(x, skip, filters):
    x = layers.Conv2DTranspose(filters, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.concatenate([x, skip])
    x = layers.Conv2DTranspose(filters, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    return layers.ELU()(x)


def separable_unet(side=160, widths=(64, 128, 256), stem=32, classes=3):
    images = keras.Input((side, side, 3), name="images")
    x = layers.Conv2D(stem, 3, padding="same")(images)
    skips = []
    for filters in widths:
        skips.append(x)
        x = down(x, filters)
    for filters, skip in zip(reversed((stem, *widths[:-1])), reversed(skips), strict=True):
        x = up(x, skip, filters)
    scores = layers.Conv2D(classes, 3, padding="same", activation="softmax", name="scores")(x)
    return keras.Model(images, scores, name="separable_unet")


def make(*, small: bool = False) -> keras.Model:
    model = separable_unet(side=16, widths=(6, 8, 10), stem=4) if small else separable_unet()
    return settle_statistics(seed_weights(model), inputs(small=small, batch=8, seed=1)["images"])


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, side, side, 3)."""
    side = 16 if small else 160
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, side, side, 3), dtype=np.float32)}
