"""MobileNetV2 with the functional API: strided convolutions pad below and to the right, as TensorFlow does."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights, settle_statistics

DYNAMIC = {"images": {0: "batch", 1: "height", 2: "width"}}
# expansion, output channels, blocks, stride of the first block
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
SMALL_STAGES = ((1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 12, 2, 2))


def batch_norm(x, name):
    return layers.BatchNormalization(epsilon=1e-3, momentum=0.999, name=name)(x)


def inverted_residual(x, filters, strides, expansion, name):
    shortcut, channels = x, x.shape[-1]
    if expansion > 1:
        x = layers.Conv2D(expansion * channels, 1, use_bias=False, name=f"{name}_expand")(x)
        x = batch_norm(x, f"{name}_expand_bn")
        x = layers.ReLU(6.0, name=f"{name}_expand_relu")(x)
    if strides == 2:
        x = layers.ZeroPadding2D(((0, 1), (0, 1)), name=f"{name}_pad")(x)
    padding = "same" if strides == 1 else "valid"
    x = layers.DepthwiseConv2D(3, strides, padding, use_bias=False, name=f"{name}_depthwise")(x)
    x = batch_norm(x, f"{name}_depthwise_bn")
    x = layers.ReLU(6.0, name=f"{name}_depthwise_relu")(x)
    x = layers.Conv2D(filters, 1, use_bias=False, name=f"{name}_project")(x)
    x = batch_norm(x, f"{name}_project_bn")
    if strides == 1 and channels == filters:
        x = layers.Add(name=f"{name}_add")([shortcut, x])
    return x


def mobilenet_v2(stages=STAGES, stem=32, last=1280, classes=1000, dropout=0.2):
    images = keras.Input((None, None, 3), name="images")
    x = layers.ZeroPadding2D(((0, 1), (0, 1)), name="stem_pad")(images)
    x = layers.Conv2D(stem, 3, strides=2, use_bias=False, name="stem")(x)
    x = batch_norm(x, "stem_bn")
    x = layers.ReLU(6.0, name="stem_relu")(x)
    index = 0
    for expansion, filters, blocks, strides in stages:
        for block in range(blocks):
            x = inverted_residual(x, filters, strides if block == 0 else 1, expansion, f"block_{index}")
            index += 1
    x = layers.Conv2D(last, 1, use_bias=False, name="head")(x)
    x = batch_norm(x, "head_bn")
    x = layers.ReLU(6.0, name="head_relu")(x)
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    x = layers.Dropout(dropout, name="dropout")(x)
    x = layers.Dense(classes, activation="softmax", name="predictions")(x)
    return keras.Model(images, x, name="mobilenet_v2")


def make(*, small: bool = False) -> keras.Model:
    model = mobilenet_v2(SMALL_STAGES, stem=8, last=32, classes=10) if small else mobilenet_v2()
    return settle_statistics(seed_weights(model), inputs(small=small, batch=8, seed=1)["images"])


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, height, width, 3)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, side, side, 3), dtype=np.float32)}
