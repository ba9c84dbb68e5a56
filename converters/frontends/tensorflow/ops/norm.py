"""Normalisation, biases, softmax."""

from __future__ import annotations

import json

import onnx_ir as ir

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.ops.windows import back, channels_first
from porter.converters.frontends.tensorflow.table import tf_op
from porter.converters.opset import TRAINING

Value = ir.Value
# What Keras and TensorFlow's own layers weigh the old statistics with, when nothing else is known.
MOMENTUM = 0.99


@tf_op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", ignored=["exponential_avg_factor"])
def fused_batch_norm(
    op: Builder,
    x: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> tuple[Value | None, ...]:
    """In inference one node; with the batch's own statistics arithmetic."""
    x = channels_first(op, x, data_format)
    if not is_training:
        y = op.BatchNormalization(
            x,
            scale,
            offset,
            mean,
            variance,
            epsilon=epsilon,
            momentum=MOMENTUM,
            facts={TRAINING: json.dumps({"affine": True})},
        )
        rest = [mean, variance]
    else:
        axes = [0, *range(2, op.rank(x))]
        average = op.ReduceMean(x, axes, keepdims=1)
        centred = op.Sub(x, average)
        spread = op.ReduceMean(op.Mul(centred, centred), axes, keepdims=1)
        trailing = list(range(1, op.rank(x) - 1))
        y = op.Div(centred, op.Sqrt(op.Add(spread, op.like(epsilon, x))))
        y = op.Add(op.Mul(y, op.Unsqueeze(scale, trailing)), op.Unsqueeze(offset, trailing))
        rest = [op.Squeeze(average, axes), op.Squeeze(spread, axes)]
    for_gradients = [None] * (len(op.dtypes) - 3)
    return (back(op, y, data_format), *rest, *for_gradients)


@tf_op("BiasAdd")
def bias_add(op: Builder, x: Value, bias: Value, *, data_format: str) -> Value:
    rank = op.rank(x)
    if data_format.startswith("NC") and rank > 2:
        bias = op.Unsqueeze(bias, list(range(1, rank - 1)))
    return op.Add(x, bias)


@tf_op("BiasAddV1")
def bias_add_v1(op: Builder, x: Value, bias: Value) -> Value:
    return op.Add(x, bias)


@tf_op("Softmax")
def softmax(op: Builder, x: Value) -> Value:
    return op.Softmax(x, axis=-1)


@tf_op("LogSoftmax")
def log_softmax(op: Builder, x: Value) -> Value:
    return op.LogSoftmax(x, axis=-1)


@tf_op("LRN")
def local_response(op: Builder, x: Value, *, depth_radius: int, bias: float, alpha: float, beta: float) -> Value:
    """TensorFlow's alpha is for each neighbour, ONNX's for all of them."""
    size = 2 * depth_radius + 1
    first = channels_first(op, x, "NHWC")
    return back(op, op.LRN(first, alpha=alpha * size, beta=beta, bias=bias, size=size), "NHWC")


@tf_op("L2Loss")
def l2_loss(op: Builder, x: Value) -> Value:
    return op.Mul(op.ReduceSumSquare(x, keepdims=0), op.like(0.5, x))
