"""Core, normalisation, regularisation, activation, merging, reshaping and preprocessing layers."""

from __future__ import annotations

from keras import layers

from tests.converters.frontends.keras.cases import flags, floats, ints, layer, together

IMAGE, LINE, ROW = floats(7, 7, 4), floats(9, 4), floats(5)
OPEN_IMAGE, OPEN_LINE = floats(None, None, 4), floats(None, 4)
SQUARE = floats(4, 4, 4)
# Numbers in attributes of ONNX are float32.
SINGLE = 1e-7
FIRST = {"data_format": "channels_first"}
MEAN, VARIANCE = [0.5, -1.0, 2.0, 0.25], [1.0, 4.0, 0.25, 2.0]

CORE = {
    "Dense": [
        layer(lambda: layers.Dense(6), ROW),
        layer(lambda: layers.Dense(6, activation="tanh", use_bias=False), OPEN_LINE),
        layer(lambda: layers.Dense(4, activation="softmax"), SQUARE),
        layer(lambda: layers.Dense(6, activation=lambda x: x * 2 + 1), ROW),
        layer(lambda: layers.Dense(6, activation=layers.LeakyReLU(negative_slope=0.3)), ROW),
    ],
    "EinsumDense": [
        layer(lambda: layers.EinsumDense("abc,cd->abd", output_shape=(None, 6), bias_axes="d"), OPEN_LINE),
        layer(lambda: layers.EinsumDense("abc,cde->abde", output_shape=(None, 2, 3), bias_axes="de"), OPEN_LINE),
        layer(lambda: layers.EinsumDense("abcd,cde->abe", output_shape=(7, 6), bias_axes="e"), IMAGE),
        layer(lambda: layers.EinsumDense("...x,xy->...y", output_shape=6, activation="relu"), IMAGE),
        layer(lambda: layers.EinsumDense("abc,bd->adc", output_shape=(6, 4), bias_axes="d"), LINE),
        layer(lambda: layers.EinsumDense("abc,dc->abd", output_shape=(4, 5)), floats(4, 4)),
    ],
    "Embedding": [
        layer(lambda: layers.Embedding(7, 3), ints(None)),
        layer(lambda: layers.Embedding(7, 3, mask_zero=True), ints(6, 2)),
        layer(lambda: layers.Embedding(7, 3), floats(6, low=0, high=5)),
    ],
    "Masking": [layer(lambda: layers.Masking(1), ints(None, 4, high=3, dtype="int32"))],
    "Identity": [layer(lambda: layers.Identity(), ROW)],
    "Lambda": [layer(lambda: layers.Lambda(lambda x: x**2 - 1), ROW)],
    "ReversibleEmbedding": [layer(lambda: layers.ReversibleEmbedding(7, 3), ints(None))],
}
NORM = {
    "BatchNormalization": [
        layer(lambda: layers.BatchNormalization(), OPEN_IMAGE),
        layer(lambda: layers.BatchNormalization(epsilon=0.1, momentum=0.8), ROW),
        layer(lambda: layers.BatchNormalization(axis=1), IMAGE),
        layer(lambda: layers.BatchNormalization(axis=2), SQUARE),
        layer(lambda: layers.BatchNormalization(scale=False), OPEN_LINE),
        layer(lambda: layers.BatchNormalization(center=False, scale=False), floats(3, 4, 5, 2)),
    ],
    "LayerNormalization": [
        layer(lambda: layers.LayerNormalization(), OPEN_LINE),
        layer(lambda: layers.LayerNormalization(axis=1, epsilon=0.1), SQUARE, rtol=SINGLE),
        layer(lambda: layers.LayerNormalization(axis=[1, 2, 3], center=False), IMAGE),
        layer(lambda: layers.LayerNormalization(axis=[2, 3], scale=False), IMAGE),
        layer(lambda: layers.LayerNormalization(axis=(1, 2)), SQUARE),
    ],
    "GroupNormalization": [
        layer(lambda: layers.GroupNormalization(2), OPEN_IMAGE),
        layer(lambda: layers.GroupNormalization(-1, epsilon=0.1), LINE),
        layer(lambda: layers.GroupNormalization(2, axis=1, scale=False), SQUARE),
        layer(lambda: layers.GroupNormalization(1, center=False), floats(8)),
    ],
    "UnitNormalization": [
        layer(lambda: layers.UnitNormalization(), OPEN_LINE),
        layer(lambda: layers.UnitNormalization(axis=[1, 2]), SQUARE),
    ],
    "RMSNormalization": [
        layer(lambda: layers.RMSNormalization(), OPEN_LINE),
        layer(lambda: layers.RMSNormalization(axis=1, epsilon=0.1), SQUARE, rtol=SINGLE),
    ],
    "SpectralNormalization": [layer(lambda: layers.SpectralNormalization(layers.Dense(4)), ROW)],
}
REGULARIZE = {
    "Dropout": [
        layer(lambda: layers.Dropout(0.5), ROW),
        layer(lambda: layers.Dropout(0.2, noise_shape=(None, 1, 4)), OPEN_LINE),
    ],
    "SpatialDropout1D": [layer(lambda: layers.SpatialDropout1D(0.3), OPEN_LINE)],
    "SpatialDropout2D": [
        layer(lambda: layers.SpatialDropout2D(0.3), IMAGE),
        layer(lambda: layers.SpatialDropout2D(0.3, **FIRST), SQUARE),
    ],
    "SpatialDropout3D": [layer(lambda: layers.SpatialDropout3D(0.3), floats(3, 4, 5, 2))],
    "AlphaDropout": [layer(lambda: layers.AlphaDropout(0.3), ROW)],
    "GaussianDropout": [layer(lambda: layers.GaussianDropout(0.3), ROW)],
    "GaussianNoise": [layer(lambda: layers.GaussianNoise(0.3), ROW)],
    "ActivityRegularization": [layer(lambda: layers.ActivityRegularization(l2=0.1), ROW)],
}
NAMES = [
    "celu",
    "elu",
    "exponential",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "tanh",
    "tanh_shrink",
    "threshold",
]
ACTIVATION = {
    "Activation": [
        layer(lambda name=name: layers.Activation(name), floats(4, 6), rtol=SINGLE)
        for name in NAMES
        if name != "threshold"
    ],
    "ELU": [layer(lambda: layers.ELU(alpha=0.7), ROW, rtol=SINGLE)],
    "LeakyReLU": [layer(lambda: layers.LeakyReLU(negative_slope=0.2), ROW)],
    "PReLU": [
        layer(lambda: layers.PReLU(), LINE),
        layer(lambda: layers.PReLU(shared_axes=[1, 2]), OPEN_IMAGE),
    ],
    "ReLU": [
        layer(lambda: layers.ReLU(), ROW),
        layer(lambda: layers.ReLU(max_value=6), ROW),
        layer(lambda: layers.ReLU(max_value=1.5, negative_slope=0.1), floats(20)),
        layer(lambda: layers.ReLU(threshold=0.5), floats(20)),
        layer(lambda: layers.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.5), floats(20)),
    ],
    "Softmax": [
        layer(lambda: layers.Softmax(axis=1), SQUARE),
        layer(lambda: layers.Softmax(axis=[1, 2]), OPEN_IMAGE, rtol=SINGLE),
        layer(lambda: layers.Softmax(), OPEN_LINE, flags(None, 4), call=lambda made, x, m: made(x, mask=m)),
    ],
}
MERGE = {
    "Add": [
        layer(lambda: layers.Add(), LINE, LINE, LINE, call=together),
        layer(lambda: layers.Add(), IMAGE, floats(7, 7, 1), call=together),
        layer(lambda: layers.Add(), IMAGE, floats(4), call=together),
    ],
    "Subtract": [layer(lambda: layers.Subtract(), LINE, LINE, call=together)],
    "Multiply": [layer(lambda: layers.Multiply(), OPEN_LINE, OPEN_LINE, call=together)],
    "Average": [layer(lambda: layers.Average(), LINE, LINE, LINE, call=together)],
    "Maximum": [layer(lambda: layers.Maximum(), LINE, LINE, call=together)],
    "Minimum": [layer(lambda: layers.Minimum(), LINE, LINE, call=together)],
    "Concatenate": [
        layer(lambda: layers.Concatenate(), OPEN_LINE, OPEN_LINE, call=together),
        layer(lambda: layers.Concatenate(axis=1), LINE, floats(3, 4), call=together),
    ],
    "Dot": [
        layer(lambda: layers.Dot(axes=1), ROW, ROW, call=together),
        layer(lambda: layers.Dot(axes=(2, 1)), LINE, floats(4, 3), call=together),
        layer(lambda: layers.Dot(axes=2, normalize=True), LINE, floats(5, 4), call=together),
    ],
}
RESHAPE = {
    "Reshape": [
        layer(lambda: layers.Reshape((4, 9)), LINE),
        layer(lambda: layers.Reshape((-1, 2)), LINE),
        layer(lambda: layers.Reshape((-1, 2, 2)), OPEN_LINE),
    ],
    "Flatten": [
        layer(lambda: layers.Flatten(), IMAGE),
        layer(lambda: layers.Flatten(**FIRST), SQUARE),
        layer(lambda: layers.Flatten(), floats()),
    ],
    "Permute": [layer(lambda: layers.Permute((3, 1, 2)), OPEN_IMAGE)],
    "RepeatVector": [layer(lambda: layers.RepeatVector(3), ROW)],
    "Cropping1D": [layer(lambda: layers.Cropping1D((1, 2)), LINE), layer(lambda: layers.Cropping1D(1), OPEN_LINE)],
    "Cropping2D": [
        layer(lambda: layers.Cropping2D(((1, 0), (2, 1))), OPEN_IMAGE),
        layer(lambda: layers.Cropping2D(1, **FIRST), SQUARE),
    ],
    "Cropping3D": [layer(lambda: layers.Cropping3D(((1, 0), (0, 1), (1, 1))), floats(3, 4, 5, 2))],
    "ZeroPadding1D": [layer(lambda: layers.ZeroPadding1D((1, 2)), OPEN_LINE)],
    "ZeroPadding2D": [
        layer(lambda: layers.ZeroPadding2D(((0, 1), (2, 0))), OPEN_IMAGE),
        layer(lambda: layers.ZeroPadding2D((1, 2), **FIRST), SQUARE),
    ],
    "ZeroPadding3D": [layer(lambda: layers.ZeroPadding3D(1), floats(3, 4, 5, 2))],
    "UpSampling1D": [layer(lambda: layers.UpSampling1D(3), OPEN_LINE)],
    "UpSampling2D": [
        layer(lambda: layers.UpSampling2D((2, 3)), OPEN_IMAGE),
        layer(lambda: layers.UpSampling2D(2, interpolation="bilinear"), IMAGE, rtol=1e-5),
        layer(lambda: layers.UpSampling2D(2, **FIRST), SQUARE),
    ],
    "UpSampling3D": [layer(lambda: layers.UpSampling3D(2), floats(3, 4, 5, 2))],
}
PREPROCESS = {
    "Rescaling": [
        layer(lambda: layers.Rescaling(1 / 255, offset=-0.5), OPEN_IMAGE),
        layer(lambda: layers.Rescaling(0.5), ints(7, 7, 3, high=256, dtype="uint8")),
        layer(lambda: layers.Rescaling([0.5, 2, 1, 3], [0, 1, 2, 3]), OPEN_IMAGE),
    ],
    "Normalization": [
        layer(lambda: layers.Normalization(mean=MEAN, variance=VARIANCE), OPEN_IMAGE, rtol=1e-6),
        layer(lambda: layers.Normalization(mean=0.3, variance=2.0, axis=None), ROW, rtol=1e-6),
        layer(lambda: layers.Normalization(mean=MEAN, variance=VARIANCE, invert=True), LINE, rtol=1e-6),
    ],
    "Resizing": [
        layer(lambda: layers.Resizing(5, 9), OPEN_IMAGE, rtol=1e-5),
        layer(lambda: layers.Resizing(14, 14, interpolation="nearest"), IMAGE),
        layer(lambda: layers.Resizing(9, 12, interpolation="bicubic"), IMAGE, rtol=2e-3),
        layer(lambda: layers.Resizing(6, 4, crop_to_aspect_ratio=True), floats(8, 10, 3), rtol=1e-5),
        layer(lambda: layers.Resizing(6, 4, pad_to_aspect_ratio=True), floats(8, 10, 3), rtol=1e-5),
    ],
    "CenterCrop": [
        layer(lambda: layers.CenterCrop(4, 5), IMAGE),
        layer(lambda: layers.CenterCrop(4, 6), OPEN_IMAGE),
    ],
    "Discretization": [layer(lambda: layers.Discretization(bin_boundaries=[-1.0, 0.0, 1.5]), ROW)],
    "CategoryEncoding": [
        layer(lambda: layers.CategoryEncoding(5, output_mode="one_hot"), ints(1)),
        layer(lambda: layers.CategoryEncoding(5, output_mode="multi_hot"), ints(3)),
        layer(lambda: layers.CategoryEncoding(5, output_mode="count"), ints(3)),
    ],
}
ROWS = {**CORE, **NORM, **REGULARIZE, **ACTIVATION, **MERGE, **RESHAPE, **PREPROCESS}
