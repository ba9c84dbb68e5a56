"""VGG-16 as a Sequential model: no BatchNorm, activations inside the layers, a dense layer on a flattened map."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"images": {0: "batch"}}
STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
SMALL_STAGES = ((4, 2), (8, 2), (12, 3), (16, 3), (16, 3))


def vgg16(stages=STAGES, side=224, hidden=4096, classes=1000, dropout=0.5):
    model = keras.Sequential([keras.Input((side, side, 3), name="images")], name="vgg16")
    for block, (filters, convolutions) in enumerate(stages, start=1):
        for index in range(1, convolutions + 1):
            name = f"block{block}_conv{index}"
            model.add(layers.Conv2D(filters, 3, padding="same", activation="relu", name=name))
        model.add(layers.MaxPooling2D(2, name=f"block{block}_pool"))
    model.add(layers.Flatten(name="flatten"))
    model.add(layers.Dense(hidden, activation="relu", name="fc1"))
    model.add(layers.Dropout(dropout, name="drop1"))
    model.add(layers.Dense(hidden, activation="relu", name="fc2"))
    model.add(layers.Dropout(dropout, name="drop2"))
    model.add(layers.Dense(classes, activation="softmax", name="predictions"))
    return model


def make(*, small: bool = False) -> keras.Model:
    model = vgg16(SMALL_STAGES, side=64, hidden=32, classes=10) if small else vgg16()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 224, 224, 3), or 64 x 64 when small; the size is fixed by the first dense layer."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, side, side, 3), dtype=np.float32)}
