"""Convolutions, pools, norms, matrix products, images: channels last and first, every padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.converters.frontends.tensorflow.cases import Row, floats, positive, row

raw = tf.raw_ops
IMAGE, OTHER = floats(2, 9, 8, 4), (floats(3, 9, 8, 4),)
FREE = (floats(1, 7, 10, 4),)
VOLUME = floats(2, 5, 6, 4, 3)
SAME: dict[str, Any] = {"padding": "SAME"}
VALID: dict[str, Any] = {"padding": "VALID"}


def _convolutions() -> list[Row]:
    kernel, grouped = floats(3, 2, 4, 5), floats(3, 3, 2, 6)
    settings: list[dict[str, Any]] = [
        {"strides": 1, **SAME}, {"strides": 2, **SAME}, {"strides": [2, 3], **VALID}, {"strides": 3, **SAME},
        {"strides": 1, "dilations": 2, **SAME}, {"strides": 1, "dilations": [2, 1], **VALID},
        {"strides": 2, "padding": [[0, 0], [1, 2], [0, 3], [0, 0]]},
    ]  # fmt: skip
    rows = [row("Conv2D", lambda x, s=s: tf.nn.conv2d(x, kernel, **s), IMAGE, also=OTHER) for s in settings]
    rows += [row("Conv2D", lambda x, s=s: tf.nn.conv2d(x, kernel, **s), IMAGE, also=FREE) for s in settings]
    rows += [
        row("Conv2D", lambda x: tf.nn.conv2d(x, grouped, 1, "SAME"), IMAGE, also=OTHER),
        row("Conv2D", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), IMAGE, kernel),
        row("Conv2D", lambda x: tf.nn.conv1d(x, floats(3, 4, 6), 2, "SAME"), floats(2, 9, 4), also=(floats(3, 9, 4),)),
        row("Conv3D", lambda x: tf.nn.conv3d(x, floats(3, 2, 2, 3, 5), [1, 2, 1, 2, 1], "SAME"), VOLUME),
        row("Conv3D", lambda x: tf.nn.conv3d(x, floats(3, 2, 2, 3, 5), [1] * 5, "VALID"), VOLUME,
            also=(floats(1, 6, 7, 4, 3),)),
    ]  # fmt: skip
    depthwise: list[dict[str, Any]] = [
        {"strides": [1, 1, 1, 1], **SAME}, {"strides": [1, 2, 2, 1], **SAME}, {"strides": [1, 2, 2, 1], **VALID},
        {"strides": [1, 1, 1, 1], "dilations": [2, 2], **SAME},
        {"strides": [1, 1, 1, 1], "padding": [[0, 0], [2, 1], [0, 1], [0, 0]]},
    ]  # fmt: skip
    for multiplier in (1, 3):
        weight = floats(3, 3, 4, multiplier)
        rows += [row("DepthwiseConv2dNative", _depthwise(weight, s), IMAGE, also=OTHER) for s in depthwise]
    return [*rows, *_transposed()]


def _depthwise(weight: np.ndarray, settings: dict[str, Any]) -> Any:
    return lambda x: tf.nn.depthwise_conv2d(x, weight, **settings)


def _enlarged(weight: np.ndarray, out: list[int], stride: int, padding: str) -> Any:
    return lambda x: tf.nn.conv2d_transpose(x, weight, [tf.shape(x)[0], *out, 5], stride, padding)


def _transposed() -> list[Row]:
    rows = []
    for size, stride in ((3, 2), (2, 2), (4, 2), (3, 1), (5, 3), (2, 3)):
        weight = floats(size, size, 5, 4)
        for padding in ("SAME", "VALID"):
            out = [side * stride if padding == "SAME" else (side - 1) * stride + size for side in IMAGE.shape[1:3]]
            rows.append(row("Conv2DBackpropInput", _enlarged(weight, out, stride, padding), IMAGE, also=OTHER))
    weight = floats(3, 3, 5, 4)

    def free(x: tf.Tensor) -> tf.Tensor:
        n, h, w, _ = tf.unstack(tf.shape(x))
        return tf.nn.conv2d_transpose(x, weight, tf.stack([n, 2 * h, 2 * w, 5]), 2, "SAME")

    def uneven(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.conv2d_transpose(x, weight, [tf.shape(x)[0], 17, 15, 5], 2, "SAME")

    def deep(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.conv3d_transpose(x, floats(2, 3, 2, 5, 3), [2, 10, 12, 8, 5], 2, "SAME")

    return [
        *rows,
        row("Conv2DBackpropInput", free, IMAGE, also=FREE),
        row("Conv2DBackpropInput", uneven, IMAGE, also=OTHER),
        row("Conv3DBackpropInputV2", deep, VOLUME),
    ]


def _pools() -> list[Row]:
    rows = []
    for name, pool in (("MaxPool", tf.nn.max_pool2d), ("AvgPool", tf.nn.avg_pool2d)):
        for size, stride in ((2, 2), (3, 2), (3, 1), ([1, 3], [3, 1])):
            for padding in ("SAME", "VALID"):
                rows.append(row(name, lambda x, f=pool, k=size, s=stride, p=padding: f(x, k, s, p), IMAGE, also=OTHER))
                rows.append(row(name, lambda x, f=pool, k=size, s=stride, p=padding: f(x, k, s, p), IMAGE, also=FREE))
    return [
        *rows,
        row("MaxPool", lambda x: tf.nn.max_pool2d(x, 3, 2, [[0, 0], [1, 1], [0, 1], [0, 0]]), IMAGE, also=OTHER),
        row("MaxPool", lambda x: tf.nn.max_pool1d(x, 3, 2, "SAME"), floats(2, 9, 4), also=(floats(3, 9, 4),)),
        row(
            "MaxPool3D",
            lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME"),
            VOLUME,
            also=(floats(1, 6, 6, 4, 3),),
            double=False,
        ),
        row("AvgPool3D", lambda x: tf.nn.avg_pool3d(x, [2, 3, 2], 2, "SAME"), VOLUME, double=False),
    ]


def _norms() -> list[Row]:
    stats = [floats(4, seed=i) for i in range(3)]
    variance = positive(4)

    def fused(x: tf.Tensor) -> tf.Tensor:
        parts = [tf.constant(a, tf.float32) for a in (*stats, variance)]
        y, *_ = tf.compat.v1.nn.fused_batch_norm(x, *parts, epsilon=1e-3, is_training=False)
        return y

    def batch(x: tf.Tensor) -> tf.Tensor:
        parts = [tf.constant(a, tf.float32) for a in stats[:2]]
        y, *_ = tf.compat.v1.nn.fused_batch_norm(x, *parts, epsilon=1e-3, is_training=True)
        return y

    def plain(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.batch_normalization(x, *stats[:1], variance, *stats[1:], 1e-3)

    return [
        row("FusedBatchNormV3", fused, IMAGE, also=OTHER, double=False),
        row("FusedBatchNormV3", batch, IMAGE, also=OTHER, double=False),
        row("AddV2", plain, IMAGE, also=OTHER),
        row("BiasAdd", lambda x: tf.nn.bias_add(x, stats[0]), IMAGE, also=OTHER),
        row("BiasAdd", lambda x: tf.nn.bias_add(x, stats[0], "NC..."), floats(2, 4, 5, 6)),
        row("LRN", lambda x: tf.nn.local_response_normalization(x, 1, 1.5, 0.3, 0.6), IMAGE, also=OTHER, double=False),
        row("Softmax", lambda x: tf.nn.softmax(x, axis=1), IMAGE, also=OTHER),
        row("Mean", lambda x: tf.nn.moments(x, [1, 2], keepdims=True), IMAGE, also=OTHER),
        row("Rsqrt", lambda x: tf.math.l2_normalize(x, -1), IMAGE, also=OTHER),
    ]


def _products() -> list[Row]:
    a, b = floats(3, 4), floats(4, 5)
    return [
        row("MatMul", lambda x: x @ b, a, also=(floats(7, 4),)),
        row("MatMul", lambda x: tf.matmul(x, b, transpose_a=True), a.T),
        row("MatMul", lambda x: tf.matmul(x, b.T, transpose_b=True), a, also=(floats(7, 4),)),
        row(
            "BatchMatMulV2",
            lambda x, y: x @ y,
            floats(2, 3, 4),
            floats(2, 4, 5),
            also=(floats(6, 3, 4), floats(6, 4, 5)),
        ),
        row("BatchMatMulV2", lambda x, y: tf.matmul(x, y, adjoint_b=True), floats(2, 1, 3, 4), floats(5, 6, 4)),
        row("BatchMatMulV2", lambda x, y: tf.matmul(x, y, transpose_a=True), floats(2, 4, 3), floats(2, 4, 5)),
        row("Einsum", lambda x, y: tf.einsum("bij,bjk->bik", x, y), floats(2, 3, 4), floats(2, 4, 5)),
        row("Einsum", lambda x: tf.einsum("bij,jk->bik", x, b), floats(2, 3, 4), also=(floats(5, 3, 4),)),
        row("Einsum", lambda x: tf.einsum("...ij->...ji", x), floats(2, 3, 4), also=(floats(5, 3, 4),)),
        row("Reshape", lambda x: tf.tensordot(x, b, 1), floats(2, 3, 4), also=(floats(6, 3, 4),)),
        row("Cross", tf.linalg.cross, floats(2, 3), floats(2, 3, seed=1)),
        row("MatrixDeterminant", tf.linalg.det, floats(2, 3, 3)),
    ]


def _images() -> list[Row]:
    rows = []
    for method, name in (
        ("bilinear", "ResizeBilinear"),
        ("nearest", "ResizeNearestNeighbor"),
        ("bicubic", "ResizeBicubic"),
    ):
        for size in ((18, 16), (36, 8), (9, 8)) if method == "bicubic" else ((18, 16), (5, 12), (4, 3), (9, 8)):
            rows.append(
                row(name, lambda x, m=method, s=size: tf.image.resize(x, s, m), IMAGE, also=OTHER, double=False)
            )
            for align in (False,) if method == "bicubic" else (False, True):
                rows.append(
                    row(
                        name,
                        lambda x, n=name, s=size, a=align: getattr(raw, n)(images=x, size=s, align_corners=a),
                        IMAGE, also=OTHER, double=False,
                    )
                )  # fmt: skip
    boxes = np.array([[0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 5, 5], [0, 1, 2, 3.5]], dtype=np.float32)
    scores = np.array([0.9, 0.8, 0.7, 0.3], dtype=np.float32)
    colours = positive(2, 3, 4, 3)
    return [
        *rows,
        row("ResizeNearestNeighbor", lambda x: tf.image.resize(x, tf.shape(x)[1:3] * 2, "nearest"), IMAGE, also=FREE,
            double=False),
        row("RGBToHSV", tf.image.rgb_to_hsv, colours, also=(positive(4, 3, 4, 3),)),
        row("HSVToRGB", tf.image.hsv_to_rgb, colours, also=(positive(4, 3, 4, 3),)),
        row("NonMaxSuppressionV3", lambda b, s: tf.image.non_max_suppression(b, s, 3, 0.5, 0.1), boxes, scores),
    ]  # fmt: skip


ROWS = [*_convolutions(), *_pools(), *_norms(), *_products(), *_images()]
