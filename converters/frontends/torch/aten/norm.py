"""Normalisation layers, each one node."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.converters.opset import TRAINING
from porter.errors import UnsupportedError

Value = ir.Value


def _filled(op: Builder, x: Value, number: float, size: int) -> Value:
    return op.tensor(np.full(size, number, dtype=x.dtype.numpy()))


@aten("batch_norm")
def batch_norm(
    op: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Value:
    """ONNX's momentum weighs the old statistics, torch's the new ones; no affine is scale 1, shift 0.

    Without running statistics the batch's own are used in inference too: then it is arithmetic.
    """
    if training and running_mean is not None:
        raise UnsupportedError("batch_norm that updates its statistics in eval mode; pass training=self.training")
    if running_mean is None or running_var is None:
        axes = [0, *range(2, len(x.shape))]
        centred = op.Sub(x, op.ReduceMean(x, axes, keepdims=1))
        variance = op.ReduceMean(op.Mul(centred, centred), axes, keepdims=1)
        y = op.Div(centred, op.Sqrt(op.Add(variance, op.constant(eps, x))))
        return _affine(op, y, weight, bias)
    channels = int(x.shape[1])
    facts = {"affine": weight is not None}
    return op.BatchNormalization(
        x,
        weight if weight is not None else _filled(op, x, 1, channels),
        bias if bias is not None else _filled(op, x, 0, channels),
        running_mean,
        running_var,
        epsilon=float(eps),
        momentum=1.0 - float(momentum),
        facts={TRAINING: json.dumps(facts)},
    )


def _affine(op: Builder, y: Value, weight: Value | None, bias: Value | None) -> Value:
    """Scale and shift along axis 1."""
    trailing = list(range(1, len(op.shape or []) - 1))
    for parameter, operator in ((weight, op.Mul), (bias, op.Add)):
        if parameter is not None:
            y = operator(y, op.Unsqueeze(parameter, trailing) if trailing else parameter)
    return y


@aten("instance_norm")
def instance_norm(
    op: Builder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Value:
    if not use_input_stats:
        return batch_norm(op, x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled)
    channels = int(x.shape[1])
    return op.InstanceNormalization(
        x,
        weight if weight is not None else _filled(op, x, 1, channels),
        bias if bias is not None else _filled(op, x, 0, channels),
        epsilon=float(eps),
    )


@aten("group_norm")
def group_norm(
    op: Builder,
    x: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Value:
    channels = int(x.shape[1])
    return op.GroupNormalization(
        x,
        weight if weight is not None else _filled(op, x, 1, channels),
        bias if bias is not None else _filled(op, x, 0, channels),
        epsilon=float(eps),
        num_groups=num_groups,
    )


@aten("layer_norm")
def layer_norm(
    op: Builder,
    x: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Value:
    sizes = [int(size) for size in normalized_shape]
    scale = weight if weight is not None else op.tensor(np.ones(sizes, dtype=x.dtype.numpy()))
    return op.LayerNormalization(x, scale, bias, axis=-len(sizes), epsilon=float(eps))


@aten("rms_norm")
def rms_norm(
    op: Builder, x: Value, normalized_shape: Sequence[int], weight: Value | None = None, eps: float | None = None
) -> Value:
    sizes = [int(size) for size in normalized_shape]
    scale = weight if weight is not None else op.tensor(np.ones(sizes, dtype=x.dtype.numpy()))
    epsilon = float(np.finfo(x.dtype.numpy()).eps) if eps is None else float(eps)
    return op.RMSNormalization(x, scale, axis=-len(sizes), epsilon=epsilon)


@aten("linalg_vector_norm", "norm.ScalarOpt_dim")
def vector_norm(
    op: Builder, x: Value, ord: float = 2, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: object = None
) -> Value:
    return _norm(op, op.cast(x, op.dtype), 2 if ord is None else ord, dim, keepdim)


@aten("norm.Scalar")
def norm_all(op: Builder, x: Value, p: float = 2) -> Value:
    return _norm(op, x, p, None, False)


def _norm(op: Builder, x: Value, order: float, dim: Sequence[int] | int | None, keepdim: bool) -> Value:
    axes = None if dim is None or dim == [] else [dim] if isinstance(dim, int) else list(dim)
    keep = {"keepdims": int(keepdim)}
    if order == 2:
        return op.ReduceL2(x, axes, **keep)
    if order == 1:
        return op.ReduceL1(x, axes, **keep)
    if order == float("inf"):
        return op.ReduceMax(op.Abs(x), axes, **keep)
    if order == float("-inf"):
        return op.ReduceMin(op.Abs(x), axes, **keep)
    if order == 0:
        return op.ReduceSum(op.cast(op.Not(op.Equal(x, op.constant(0, x))), x.dtype), axes, **keep)
    total = op.ReduceSum(op.Pow(op.Abs(x), op.constant(order, x)), axes, **keep)
    return op.Pow(total, op.constant(1.0 / order, x))
