"""ResNet-50 with the functional API: the first version of the paper, the stride on the first 1 x 1 convolution."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights, settle_statistics

DYNAMIC = {"images": {0: "batch", 1: "height", 2: "width"}}


def conv_bn(x, filters, kernel_size, name, strides=1, padding="valid"):
    x = layers.Conv2D(filters, kernel_size, strides=strides, padding=padding, name=f"{name}_conv")(x)
    return layers.BatchNormalization(epsilon=1.001e-5, name=f"{name}_bn")(x)


def bottleneck(x, filters, name, strides=1, project=False):
    shortcut = conv_bn(x, 4 * filters, 1, f"{name}_0", strides) if project else x
    x = conv_bn(x, filters, 1, f"{name}_1", strides)
    x = layers.Activation("relu", name=f"{name}_1_relu")(x)
    x = conv_bn(x, filters, 3, f"{name}_2", padding="same")
    x = layers.Activation("relu", name=f"{name}_2_relu")(x)
    x = conv_bn(x, 4 * filters, 1, f"{name}_3")
    x = layers.Add(name=f"{name}_add")([shortcut, x])
    return layers.Activation("relu", name=f"{name}_out")(x)


def resnet(blocks=(3, 4, 6, 3), width=64, classes=1000):
    images = keras.Input((None, None, 3), name="images")
    x = layers.ZeroPadding2D(3, name="conv1_pad")(images)
    x = conv_bn(x, width, 7, "conv1", strides=2)
    x = layers.Activation("relu", name="conv1_relu")(x)
    x = layers.ZeroPadding2D(1, name="pool1_pad")(x)
    x = layers.MaxPooling2D(3, strides=2, name="pool1_pool")(x)
    for stage, count in enumerate(blocks):
        for block in range(count):
            strides = 2 if block == 0 and stage > 0 else 1
            x = bottleneck(x, width * 2**stage, f"conv{stage + 2}_block{block + 1}", strides, project=block == 0)
    x = layers.GlobalAveragePooling2D(name="avg_pool")(x)
    x = layers.Dense(classes, activation="softmax", name="predictions")(x)
    return keras.Model(images, x, name="resnet50")


def make(*, small: bool = False) -> keras.Model:
    model = resnet(blocks=(2, 3, 3, 2), width=8, classes=10) if small else resnet()
    return settle_statistics(seed_weights(model), inputs(small=small, batch=8, seed=1)["images"])


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, height, width, 3)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"images": rng.standard_normal((batch, side, side, 3), dtype=np.float32)}
