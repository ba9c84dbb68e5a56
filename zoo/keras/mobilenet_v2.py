"""MobileNetV2 written by hand in Keras: the twin of `porter.zoo.torch.mobilenet_v2`."""

import keras
import numpy as np
from keras import layers, ops
from torch import nn

from porter.zoo.keras.carry import carry
from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"x": {0: "batch", 1: "height", 2: "width"}}
# expansion, output channels, blocks, stride of the first block
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
SMALL_STAGES = ((1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 12, 2, 2))


def batch_norm() -> layers.Layer:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)


class ConvBNReLU(keras.Sequential):
    def __init__(self, filters, kernel_size=3, stride=1, depthwise=False):
        # "same" pads a strided convolution on one side only
        padding = "same" if stride == 1 else "valid"
        if depthwise:
            conv = layers.DepthwiseConv2D(kernel_size, stride, padding, use_bias=False)
        else:
            conv = layers.Conv2D(filters, kernel_size, stride, padding, use_bias=False)
        pad = [layers.ZeroPadding2D(kernel_size // 2)] if stride != 1 else []
        super().__init__([*pad, conv, batch_norm(), layers.ReLU(max_value=6)])


class InvertedResidual(layers.Layer):
    def __init__(self, in_channels, out_channels, stride, expansion):
        super().__init__()
        hidden = in_channels * expansion
        self.use_residual = stride == 1 and in_channels == out_channels
        expand = [ConvBNReLU(hidden, kernel_size=1)] if expansion != 1 else []
        depthwise = ConvBNReLU(hidden, stride=stride, depthwise=True)
        project = layers.Conv2D(out_channels, 1, use_bias=False)
        self.conv = keras.Sequential([*expand, depthwise, project, batch_norm()])

    def call(self, x):
        return x + self.conv(x) if self.use_residual else self.conv(x)


class MobileNetV2(keras.Model):
    def __init__(self, stages=STAGES, stem=32, last=1280, num_classes=1000, dropout=0.2):
        super().__init__()
        features = [ConvBNReLU(stem, stride=2)]
        channels = stem
        for expansion, out_channels, blocks, first_stride in stages:
            for i in range(blocks):
                stride = first_stride if i == 0 else 1
                features.append(InvertedResidual(channels, out_channels, stride, expansion))
                channels = out_channels
        features.append(ConvBNReLU(last, kernel_size=1))
        self.features = keras.Sequential(features)
        self.classifier = keras.Sequential([layers.Dropout(dropout), layers.Dense(num_classes)])

    def call(self, x):
        x = self.features(x)
        x = ops.mean(x, axis=(1, 2))
        return self.classifier(x)


def make(*, small: bool = False) -> keras.Model:
    model = MobileNetV2(SMALL_STAGES, stem=8, last=32, num_classes=10) if small else MobileNetV2()
    model(keras.Input((None, None, 3)))
    return seed_weights(model, gain=1.5)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, height, width, 3)."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, side, side), dtype=np.float32).transpose(0, 2, 3, 1)}


def copy_weights(torch_model: nn.Module, keras_model: keras.Model) -> None:
    """Give the twin the weights of the torch model."""
    carry(torch_model, keras_model)
