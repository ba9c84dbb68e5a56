"""A classifier that takes photographs as they come: bytes of any size, resized, cropped and scaled in the model."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights, settle_statistics

DYNAMIC = {"photos": {0: "batch", 1: "height", 2: "width"}}


def photo_classifier(statistics, side=180, crop=160, widths=(32, 64, 128, 256), classes=10):
    """`statistics` are photographs (batch, height, width, 3) that the normalisation learns its mean and variance of."""
    photos = keras.Input((None, None, 3), dtype="uint8", name="photos")
    prepare = [layers.Resizing(side, side), layers.CenterCrop(crop, crop), layers.Rescaling(1 / 127.5, offset=-1)]
    normalization = layers.Normalization(name="normalization")
    normalization.adapt(keras.Sequential(prepare)(statistics))
    x = photos
    for layer in (*prepare, normalization):
        x = layer(x)
    for index, width in enumerate(widths, start=1):
        x = layers.Conv2D(width, 3, strides=2, padding="same", activation="relu", name=f"conv{index}")(x)
        x = layers.BatchNormalization(name=f"norm{index}")(x)
    x = layers.SpatialDropout2D(0.2, name="dropout")(x)
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    return keras.Model(photos, layers.Dense(classes, activation="softmax", name="classes")(x), name="photo_classifier")


def make(*, small: bool = False) -> keras.Model:
    photos = inputs(small=small, batch=8, seed=1)["photos"]
    sizes = {"side": 28, "crop": 24, "widths": (6, 8, 10), "classes": 4} if small else {}
    return settle_statistics(seed_weights(photo_classifier(photos, **sizes), gain=2.0), photos)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Photographs: uint8 (batch, height, width, 3)."""
    height, width = (30, 41) if small else (240, 320)
    rng = np.random.default_rng(seed)
    return {"photos": rng.integers(0, 256, (batch, height, width, 3), dtype=np.uint8)}
