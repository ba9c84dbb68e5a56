"""U-Net written by hand in Keras: the twin of `porter.zoo.torch.unet`."""

import keras
import numpy as np
from keras import layers, ops
from torch import nn

from porter.zoo.keras.carry import carry
from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 1: "height", 2: "width"}}


class DoubleConv(keras.Sequential):
    def __init__(self, filters):
        super().__init__(
            [
                layers.Conv2D(filters, 3, padding="same", use_bias=False),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-5),
                layers.ReLU(),
                layers.Conv2D(filters, 3, padding="same", use_bias=False),
                layers.BatchNormalization(momentum=0.9, epsilon=1e-5),
                layers.ReLU(),
            ]
        )


class Down(layers.Layer):
    def __init__(self, filters):
        super().__init__()
        self.pool = layers.MaxPooling2D(2)
        self.conv = DoubleConv(filters)

    def call(self, x):
        return self.conv(self.pool(x))


class Up(layers.Layer):
    """Doubles the size, halves the channels, and joins the skip connection of that size."""

    def __init__(self, filters, bilinear):
        super().__init__()
        if bilinear:
            upsample = layers.UpSampling2D(2, interpolation="bilinear")
            self.up = keras.Sequential([upsample, layers.Conv2D(filters, 1)])
        else:
            self.up = layers.Conv2DTranspose(filters, 2, strides=2)
        self.conv = DoubleConv(filters)

    def call(self, x, skip):
        x = ops.concatenate([skip, self.up(x)], axis=-1)
        return self.conv(x)


class UNet(keras.Model):
    """Height and width must be multiples of 16."""

    def __init__(self, width=64, num_classes=2):
        super().__init__()
        self.inc = DoubleConv(width)
        self.down1 = Down(2 * width)
        self.down2 = Down(4 * width)
        self.down3 = Down(8 * width)
        self.down4 = Down(16 * width)
        self.up1 = Up(8 * width, bilinear=False)
        self.up2 = Up(4 * width, bilinear=False)
        self.up3 = Up(2 * width, bilinear=True)
        self.up4 = Up(width, bilinear=True)
        self.outc = layers.Conv2D(num_classes, 1)

    def call(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.down4(x4)
        x = self.up1(x, x4)
        x = self.up2(x, x3)
        x = self.up3(x, x2)
        x = self.up4(x, x1)
        return self.outc(x)


def make(*, small: bool = False) -> keras.Model:
    model = UNet(width=4) if small else UNet()
    model(keras.Input((32, 32, 3)))  # bilinear UpSampling2D can't be traced with an unknown size; calls may still vary
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, height, width, 3), both multiples of 16 and deliberately different."""
    height, width = (32, 48) if small else (256, 320)
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, height, width), dtype=np.float32).transpose(0, 2, 3, 1)}


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model."""
    carry(torch_model, keras_model)
