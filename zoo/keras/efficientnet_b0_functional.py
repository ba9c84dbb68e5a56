"""EfficientNet-B0 with the functional API; it takes pixels of 0 to 255 and scales them itself."""

import keras
import numpy as np
from keras import layers

from porter.zoo.keras.seeding import seed_weights, settle_statistics

DYNAMIC = {"pixels": {0: "batch", 1: "height", 2: "width"}}
MEAN, VARIANCE = (0.485, 0.456, 0.406), (0.229**2, 0.224**2, 0.225**2)
# expansion, kernel size, stride of the first block, output channels, blocks
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
SMALL_STAGES = ((1, 3, 1, 8, 1), (6, 3, 2, 12, 2), (6, 5, 2, 16, 3))


def conv_block(x, filters, kernel_size, name, strides=1):
    x = layers.Conv2D(filters, kernel_size, strides, "same", use_bias=False, name=f"{name}_conv")(x)
    x = layers.BatchNormalization(name=f"{name}_bn")(x)
    return layers.Activation("swish", name=f"{name}_activation")(x)


def squeeze_excite(x, squeezed, name):
    channels = x.shape[-1]
    scale = layers.GlobalAveragePooling2D(keepdims=True, name=f"{name}_squeeze")(x)
    scale = layers.Conv2D(squeezed, 1, activation="swish", name=f"{name}_reduce")(scale)
    scale = layers.Conv2D(channels, 1, activation="sigmoid", name=f"{name}_expand")(scale)
    return layers.Multiply(name=f"{name}_excite")([x, scale])


def mb_conv(x, filters, kernel_size, strides, expansion, drop_rate, name):
    shortcut, channels = x, x.shape[-1]
    if expansion > 1:
        x = conv_block(x, expansion * channels, 1, f"{name}_expand")
    x = layers.DepthwiseConv2D(kernel_size, strides, "same", use_bias=False, name=f"{name}_dwconv")(x)
    x = layers.BatchNormalization(name=f"{name}_bn")(x)
    x = layers.Activation("swish", name=f"{name}_activation")(x)
    x = squeeze_excite(x, max(1, channels // 4), f"{name}_se")
    x = layers.Conv2D(filters, 1, use_bias=False, name=f"{name}_project_conv")(x)
    x = layers.BatchNormalization(name=f"{name}_project_bn")(x)
    if strides == 1 and channels == filters:
        # The whole branch of an image is dropped at once: stochastic depth.
        x = layers.Dropout(drop_rate, noise_shape=(None, 1, 1, 1), name=f"{name}_drop")(x)
        x = layers.Add(name=f"{name}_add")([shortcut, x])
    return x


def efficientnet(stages=STAGES, stem=32, last=1280, classes=1000, dropout=0.2, drop_connect=0.2):
    pixels = keras.Input((None, None, 3), name="pixels")
    x = layers.Rescaling(1 / 255, name="rescaling")(pixels)
    x = layers.Normalization(mean=MEAN, variance=VARIANCE, name="normalization")(x)
    x = conv_block(x, stem, 3, "stem", strides=2)
    total, index = sum(blocks for *_, blocks in stages), 0
    for stage, (expansion, kernel_size, strides, filters, blocks) in enumerate(stages):
        for block in range(blocks):
            drop_rate = drop_connect * index / total
            name = f"block{stage + 1}{chr(ord('a') + block)}"
            x = mb_conv(x, filters, kernel_size, strides if block == 0 else 1, expansion, drop_rate, name)
            index += 1
    x = conv_block(x, last, 1, "top")
    x = layers.GlobalAveragePooling2D(name="avg_pool")(x)
    x = layers.Dropout(dropout, name="top_dropout")(x)
    x = layers.Dense(classes, activation="softmax", name="predictions")(x)
    return keras.Model(pixels, x, name="efficientnet_b0")


def make(*, small: bool = False) -> keras.Model:
    model = efficientnet(SMALL_STAGES, stem=8, last=32, classes=10) if small else efficientnet()
    return settle_statistics(seed_weights(model), inputs(small=small, batch=8, seed=1)["pixels"])


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Pixels (batch, height, width, 3) of 0 to 255."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"pixels": rng.integers(0, 256, (batch, side, side, 3)).astype(np.float32)}
