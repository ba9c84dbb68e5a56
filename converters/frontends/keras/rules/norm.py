"""Normalisation layers, each one node where ONNX has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import axes_of, axis_of, filled, in_dtype, moved, rank
from porter.converters.frontends.keras.table import keras_layer, keras_operation
from porter.converters.opset import TRAINING
from porter.errors import UnsupportedError

Value = ir.Value


@keras_layer("BatchNormalization")
def batch_norm(op: Builder, layer: Any, inputs: Value, mask: Value | None = None) -> Value:
    """The mask leaves elements out of the statistics of training alone; Keras' running variance is the biased one."""
    if layer.renorm:
        raise UnsupportedError("batch renormalisation (renorm=True); set renorm=False")
    axis = axis_of(inputs, layer.axis)
    channels = int(inputs.shape[axis])
    y = op.BatchNormalization(
        _to_second(op, inputs, axis),
        layer.gamma if layer.scale else filled(op, inputs, 1, [channels]),
        layer.beta if layer.center else filled(op, inputs, 0, [channels]),
        layer.moving_mean,
        layer.moving_variance,
        epsilon=float(layer.epsilon),
        momentum=float(layer.momentum),
        facts={TRAINING: json.dumps({"affine": layer.scale or layer.center, "variance": "biased"})},
    )
    return _from_second(op, y, axis, rank(inputs))


def _to_second(op: Builder, x: Value, axis: int) -> Value:
    others = [a for a in range(rank(x)) if a != axis]
    return moved(op, x, [others[0], axis, *others[1:]]) if others else x


def _from_second(op: Builder, y: Value, axis: int, n: int) -> Value:
    others = [a for a in range(n) if a != axis]
    order = [others[0], axis, *others[1:]]
    return moved(op, y, [order.index(a) for a in range(n)])


@keras_operation("BatchNorm")
def batch_norm_operation(
    op: Builder,
    x: Value,
    mean: Value,
    variance: Value,
    offset: Value | None = None,
    scale: Value | None = None,
    *,
    axis: int,
    epsilon: float,
) -> Value:
    axis = axis_of(x, axis)
    channels = int(x.shape[axis])
    y = op.BatchNormalization(
        _to_second(op, x, axis),
        scale if scale is not None else filled(op, x, 1, [channels]),
        offset if offset is not None else filled(op, x, 0, [channels]),
        mean,
        variance,
        epsilon=float(epsilon),
        facts={TRAINING: json.dumps({"affine": scale is not None or offset is not None, "fixed": True})},
    )
    return _from_second(op, y, axis, rank(x))


def _trailing(axes: Sequence[int], n: int) -> bool:
    return list(axes) == list(range(n - len(axes), n))


def _over_last(op: Builder, x: Value, axes: Sequence[int]) -> tuple[Value, list[int] | None]:
    """The value with `axes` last, and the permutation back."""
    if _trailing(axes, rank(x)):
        return x, None
    order = [a for a in range(rank(x)) if a not in axes] + list(axes)
    return moved(op, x, order), [order.index(a) for a in range(rank(x))]


def layer_norm(
    op: Builder, x: Value, gamma: Value | None, beta: Value | None, axes: Sequence[int], epsilon: float
) -> Value:
    """Over `axes`, with parameters of the shape of these axes."""
    last, back = _over_last(op, x, axes)
    shape = [int(x.shape[axis]) for axis in axes]
    scale = gamma if gamma is not None else filled(op, x, 1, shape)
    y = op.LayerNormalization(last, scale, beta, axis=-len(axes), epsilon=float(epsilon))
    return y if back is None else op.Transpose(y, perm=back)


@keras_layer("LayerNormalization")
def layer_normalization(op: Builder, layer: Any, inputs: Value) -> Value:
    axes = sorted(axes_of(inputs, layer.axis))
    gamma = layer.gamma if layer.scale else None
    beta = layer.beta if layer.center else None
    if getattr(layer, "rms_scaling", False):
        return _scaled_by_variance(op, inputs, gamma, axes, layer.epsilon)
    return layer_norm(op, inputs, gamma, beta, axes, layer.epsilon)


@keras_operation("LayerNorm")
def layer_norm_operation(
    op: Builder,
    x: Value,
    gamma: Value | None = None,
    beta: Value | None = None,
    *,
    axis: Any,
    epsilon: float | None,
    rms_scaling: bool,
) -> Value:
    import keras

    axes = sorted(axes_of(x, axis))
    epsilon = keras.config.epsilon() if epsilon is None else epsilon
    if rms_scaling:
        return _scaled_by_variance(op, x, gamma, axes, epsilon)
    return layer_norm(op, x, gamma, beta, axes, epsilon)


def _scaled_by_variance(op: Builder, x: Value, gamma: Value | None, axes: Sequence[int], epsilon: float) -> Value:
    """Keras' `rms_scaling`: divided by the standard deviation, without the mean taken off."""
    centred = op.Sub(x, op.ReduceMean(x, list(axes), keepdims=1))
    variance = op.ReduceMean(op.Mul(centred, centred), list(axes), keepdims=1)
    y = op.Div(x, op.Sqrt(op.Add(variance, op.constant(epsilon, x))))
    return y if gamma is None else op.Mul(y, _spread(op, gamma, axes, rank(x)))


def _spread(op: Builder, parameter: Value, axes: Sequence[int], n: int) -> Value:
    """A parameter of the shape of `axes`, broadcast over the others."""
    if _trailing(axes, n):
        return parameter
    sizes = [int(size) for size in parameter.shape]
    shape = [1] * n
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    return op.Reshape(parameter, shape)


@keras_operation("RMSNorm")
def rms_norm(op: Builder, x: Value, scale: Value | None = None, *, axis: Any, epsilon: float | None) -> Value:
    """Keras lines the scale up with the last axes, whichever are normalised."""
    import keras

    axes = sorted(axes_of(x, axis))
    epsilon = keras.config.epsilon() if epsilon is None else float(epsilon)
    last, back = _over_last(op, x, axes)
    ones = filled(op, x, 1, [int(x.shape[a]) for a in axes])
    if back is None:
        return op.RMSNormalization(x, scale if scale is not None else ones, axis=-len(axes), epsilon=epsilon)
    y = op.Transpose(op.RMSNormalization(last, ones, axis=-len(axes), epsilon=epsilon), perm=back)
    return y if scale is None else op.Mul(y, scale)


@keras_layer("GroupNormalization")
def group_norm(op: Builder, layer: Any, inputs: Value) -> Value:
    """Negative groups mean one for each channel."""
    axis = axis_of(inputs, layer.axis)
    channels = int(inputs.shape[axis])
    groups = channels if layer.groups == -1 else int(layer.groups)
    y = op.GroupNormalization(
        _to_second(op, inputs, axis),
        layer.gamma if layer.scale else filled(op, inputs, 1, [channels]),
        layer.beta if layer.center else filled(op, inputs, 0, [channels]),
        num_groups=groups,
        epsilon=float(layer.epsilon),
    )
    return _from_second(op, y, axis, rank(inputs))


@keras_operation("Normalize")
def normalize(op: Builder, x: Value, *, axis: Any, order: float, epsilon: float | None) -> Value:
    """Divided by the norm, but by no less than epsilon."""
    import keras

    epsilon = keras.config.epsilon() if epsilon is None else float(epsilon)
    x = op.cast(x, op.dtype)
    axes = axes_of(x, axis)
    if order == 2:
        total = op.ReduceSum(op.Mul(x, x), axes, keepdims=1)
        return op.Div(x, op.Sqrt(op.Max(total, op.constant(epsilon**2, x))))
    if order == 1:
        norm = op.ReduceL1(x, axes, keepdims=1)
    else:
        powers = op.Pow(op.Abs(x), op.constant(float(order), x))
        norm = op.Pow(op.ReduceSum(powers, axes, keepdims=1), op.constant(1 / order, x))
    return op.Div(x, op.Max(norm, op.constant(epsilon, x)))


@keras_operation("Moments")
def moments(op: Builder, x: Value, *, axes: Any, keepdims: bool) -> tuple[Value, Value]:
    over = axes_of(x, axes)
    centred = op.Sub(x, op.ReduceMean(x, over, keepdims=1))
    return (
        op.ReduceMean(x, over, keepdims=int(keepdims)),
        op.ReduceMean(op.Mul(centred, centred), over, keepdims=int(keepdims)),
    )


@keras_layer("Normalization")
def normalization(op: Builder, layer: Any, inputs: Value) -> Value:
    """With the statistics that it was adapted to or given; both are constants by then."""
    import numpy as np

    x = in_dtype(op, inputs, op.dtype)
    mean, variance = (np.asarray(layer.convert_weight(w)) for w in (layer.mean, layer.variance))
    import keras

    scale = np.maximum(np.sqrt(variance.astype(np.float64)), keras.config.epsilon()).astype(variance.dtype)
    mean_value, scale_value = (op.cast(op.tensor(np.ascontiguousarray(a)), x.dtype) for a in (mean, scale))
    if layer.invert:
        return op.Add(op.Mul(x, scale_value), mean_value)
    return op.Div(op.Sub(x, mean_value), scale_value)


@keras_operation("Var", "Std")
def variance(op: Builder, x: Value, *, axis: Any, keepdims: bool, operation: Any) -> Value:
    x = in_dtype(op, x, op.dtype)
    axes = axes_of(x, axis)
    centred = op.Sub(x, op.ReduceMean(x, axes, keepdims=1))
    y = op.ReduceMean(op.Mul(centred, centred), axes, keepdims=int(keepdims))
    return op.Sqrt(y) if type(operation).__name__ == "Std" else y
