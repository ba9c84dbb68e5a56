"""Convolutions and pooling."""

from __future__ import annotations

from keras import layers, ops

from tests.converters.frontends.keras.cases import Spec, floats, layer, operation

IMAGE, CUBE, LINE = floats(7, 7, 4), floats(6, 5, 7, 2), floats(9, 4)
SINGLE_CUBE = Spec((6, 5, 7, 2), "float32")  # TensorFlow has no kernel for float64
OPEN_IMAGE, OPEN_LINE = floats(None, None, 4), floats(None, 4)
FIRST = {"data_format": "channels_first"}

ROWS = {
    "Conv2D": [
        layer(lambda: layers.Conv2D(5, 3), IMAGE),
        layer(lambda: layers.Conv2D(5, 3, strides=2, padding="same", activation="relu"), IMAGE),
        layer(lambda: layers.Conv2D(4, 4, strides=2, padding="same"), IMAGE),
        layer(lambda: layers.Conv2D(4, 4, padding="same", use_bias=False), OPEN_IMAGE),
        layer(lambda: layers.Conv2D(4, 3, strides=(2, 1), padding="valid"), OPEN_IMAGE),
        layer(
            lambda: layers.Conv2D(4, (2, 3), dilation_rate=2, padding="same", activation="gelu"), IMAGE, rtol=1e-7
        ),  # erf
        layer(lambda: layers.Conv2D(6, 3, groups=2), IMAGE),
        layer(lambda: layers.Conv2D(7, 7, padding="valid"), floats(7, 7, 7)),
        layer(lambda: layers.Conv2D(4, 1, strides=2, padding="same"), OPEN_IMAGE),
        layer(lambda: layers.Conv2D(5, 3, padding="same", **FIRST), IMAGE),
    ],
    "Conv1D": [
        layer(lambda: layers.Conv1D(5, 3, padding="causal", dilation_rate=2), LINE),
        layer(lambda: layers.Conv1D(5, 3, padding="causal"), OPEN_LINE),
        layer(lambda: layers.Conv1D(5, 4, strides=3, padding="same"), LINE),
        layer(lambda: layers.Conv1D(6, 2, strides=2, groups=2, activation="tanh"), OPEN_LINE),
    ],
    "Conv3D": [
        layer(lambda: layers.Conv3D(3, 2, strides=2, padding="same"), CUBE),
        layer(lambda: layers.Conv3D(3, (1, 2, 3), activation="sigmoid"), CUBE),
    ],
    "DepthwiseConv1D": [layer(lambda: layers.DepthwiseConv1D(3, depth_multiplier=2, padding="same"), LINE)],
    "DepthwiseConv2D": [
        layer(lambda: layers.DepthwiseConv2D(3, strides=2, padding="same"), IMAGE),
        layer(lambda: layers.DepthwiseConv2D((2, 3), depth_multiplier=3, use_bias=False), OPEN_IMAGE),
        layer(lambda: layers.DepthwiseConv2D(3, dilation_rate=2, padding="same", activation="relu6"), IMAGE),
    ],
    "SeparableConv1D": [layer(lambda: layers.SeparableConv1D(5, 3, strides=2, padding="same"), LINE)],
    "SeparableConv2D": [
        layer(lambda: layers.SeparableConv2D(5, 3, padding="same", activation="relu"), OPEN_IMAGE),
        layer(lambda: layers.SeparableConv2D(5, 3, strides=2, depth_multiplier=2, use_bias=False), IMAGE),
        layer(lambda: layers.SeparableConv2D(5, 3, padding="same", **FIRST), IMAGE),
    ],
    "Conv1DTranspose": [
        layer(lambda: layers.Conv1DTranspose(5, 3, strides=2, padding="same"), LINE),
        layer(lambda: layers.Conv1DTranspose(5, 4, strides=3), OPEN_LINE),
    ],
    "Conv2DTranspose": [
        layer(lambda: layers.Conv2DTranspose(5, 3, strides=2, padding="same", activation="relu"), IMAGE),
        layer(lambda: layers.Conv2DTranspose(5, 4, strides=2, padding="same"), OPEN_IMAGE),
        layer(lambda: layers.Conv2DTranspose(5, 2, strides=3), IMAGE),
        layer(lambda: layers.Conv2DTranspose(5, 3, strides=2, padding="same", output_padding=1), IMAGE),
        layer(lambda: layers.Conv2DTranspose(5, 3, strides=2, padding="valid", output_padding=1), IMAGE),
        layer(lambda: layers.Conv2DTranspose(5, 3, dilation_rate=2, padding="same"), IMAGE),
        layer(lambda: layers.Conv2DTranspose(5, (3, 2), strides=(1, 2), padding="same", use_bias=False), OPEN_IMAGE),
    ],
    "Conv3DTranspose": [layer(lambda: layers.Conv3DTranspose(3, 3, strides=2, padding="same"), CUBE)],
    "MaxPooling1D": [
        layer(lambda: layers.MaxPooling1D(2), LINE),
        layer(lambda: layers.MaxPooling1D(3, strides=2, padding="same"), OPEN_LINE),
    ],
    "MaxPooling2D": [
        layer(lambda: layers.MaxPooling2D(3, strides=2, padding="same"), IMAGE),
        layer(lambda: layers.MaxPooling2D((2, 3), strides=1, padding="same"), OPEN_IMAGE),
        layer(lambda: layers.MaxPooling2D(2), OPEN_IMAGE),
        layer(lambda: layers.MaxPooling2D(2, **FIRST), IMAGE),
    ],
    "MaxPooling3D": [layer(lambda: layers.MaxPooling3D(2, padding="same", dtype="float32"), SINGLE_CUBE, rtol=1e-6)],
    "AveragePooling1D": [layer(lambda: layers.AveragePooling1D(3, strides=2, padding="same"), LINE)],
    "AveragePooling2D": [
        layer(lambda: layers.AveragePooling2D(3, strides=2, padding="same"), IMAGE),
        layer(lambda: layers.AveragePooling2D(2, padding="valid"), OPEN_IMAGE),
        layer(lambda: layers.AveragePooling2D(3, strides=1, padding="same"), OPEN_IMAGE),
    ],
    "AveragePooling3D": [layer(lambda: layers.AveragePooling3D(2, strides=1, padding="same"), CUBE)],
    "GlobalMaxPooling1D": [layer(lambda: layers.GlobalMaxPooling1D(), OPEN_LINE)],
    "GlobalMaxPooling2D": [
        layer(lambda: layers.GlobalMaxPooling2D(keepdims=True), OPEN_IMAGE),
        layer(lambda: layers.GlobalMaxPooling2D(**FIRST), IMAGE),
    ],
    "GlobalMaxPooling3D": [layer(lambda: layers.GlobalMaxPooling3D(), CUBE)],
    "GlobalAveragePooling1D": [
        layer(lambda: layers.GlobalAveragePooling1D(), OPEN_LINE),
        layer(lambda: layers.GlobalAveragePooling1D(keepdims=True, **FIRST), LINE),
    ],
    "GlobalAveragePooling2D": [
        layer(lambda: layers.GlobalAveragePooling2D(), OPEN_IMAGE),
        layer(lambda: layers.GlobalAveragePooling2D(keepdims=True), IMAGE),
    ],
    "GlobalAveragePooling3D": [layer(lambda: layers.GlobalAveragePooling3D(), CUBE)],
    "AdaptiveAveragePooling1D": [layer(lambda: layers.AdaptiveAveragePooling1D(4), LINE)],
    "AdaptiveAveragePooling2D": [
        layer(lambda: layers.AdaptiveAveragePooling2D(3), IMAGE),
        layer(lambda: layers.AdaptiveAveragePooling2D((2, 4)), floats(8, 8, 3)),
    ],
    "AdaptiveAveragePooling3D": [layer(lambda: layers.AdaptiveAveragePooling3D(2), CUBE)],
    "AdaptiveMaxPooling1D": [layer(lambda: layers.AdaptiveMaxPooling1D(4), LINE)],
    "AdaptiveMaxPooling2D": [layer(lambda: layers.AdaptiveMaxPooling2D((3, 2)), IMAGE)],
    "AdaptiveMaxPooling3D": [layer(lambda: layers.AdaptiveMaxPooling3D(2, dtype="float32"), SINGLE_CUBE, rtol=1e-6)],
    "Conv": [operation(lambda x, w: ops.conv(x, w[0], strides=1, padding="same"), IMAGE, floats(3, 3, 4, 5))],
    "MaxPool": [operation(lambda x: ops.max_pool(x, 2, padding="same"), IMAGE)],
    "AveragePool": [operation(lambda x: ops.average_pool(x, 3, strides=2, padding="same"), IMAGE)],
    "DepthwiseConv": [operation(lambda x, w: ops.depthwise_conv(x, w[0]), IMAGE, floats(3, 3, 4, 2))],
    "SeparableConv": [
        operation(lambda x, w, v: ops.separable_conv(x, w[0], v[0]), IMAGE, floats(3, 3, 4, 2), floats(1, 1, 8, 3))
    ],
}
