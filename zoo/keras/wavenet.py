"""WaveNet: causal dilated convolutions with gates, residual and skip connections, over raw sound."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"sound": {0: "batch", 1: "time"}}


def gated_residual(x, filters, skip_filters, dilation, name):
    options = {"padding": "causal", "dilation_rate": dilation}
    filtered = layers.Conv1D(filters, 2, activation="tanh", name=f"{name}_filter", **options)(x)
    gate = layers.Conv1D(filters, 2, activation="sigmoid", name=f"{name}_gate", **options)(x)
    z = layers.Multiply(name=f"{name}_gated")([filtered, gate])
    skip = layers.Conv1D(skip_filters, 1, name=f"{name}_skip")(z)
    residual = layers.Conv1D(filters, 1, name=f"{name}_residual")(z)
    return layers.Add(name=f"{name}_out")([x, residual]), skip


def wavenet(filters=32, skip_filters=128, cycles=2, depth=8, levels=256):
    sound = keras.Input((None, 1), name="sound")
    x = layers.Conv1D(filters, 2, padding="causal", name="stem")(sound)
    skips = []
    for cycle in range(cycles):
        for layer in range(depth):
            x, skip = gated_residual(x, filters, skip_filters, 2**layer, f"cycle{cycle}_layer{layer}")
            skips.append(skip)
    x = layers.Add(name="skips")(skips)
    x = layers.Activation("relu", name="skips_relu")(x)
    x = layers.Conv1D(skip_filters, 1, activation="relu", name="mix")(x)
    logits = layers.Conv1D(levels, 1, name="levels")(x)
    return keras.Model(sound, logits, name="wavenet")


def make(*, small: bool = False) -> keras.Model:
    model = wavenet(filters=6, skip_filters=8, depth=3, levels=10) if small else wavenet()
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Sound (batch, time, 1)."""
    rng = np.random.default_rng(seed)
    return {"sound": rng.standard_normal((batch, 24 if small else 1024, 1), dtype=np.float32)}
