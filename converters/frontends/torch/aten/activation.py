"""Activations and dropout."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.converters.opset import TRAINING
from porter.errors import UnsupportedError

Value = ir.Value


@aten("relu6", promoted=(0,))
def relu6(op: Builder, x: Value) -> Value:
    return op.Clip(x, op.constant(0, x), op.constant(6, x))


@aten("hardtanh", promoted=(0,))
def hardtanh(op: Builder, x: Value, min_val: float = -1, max_val: float = 1) -> Value:
    return op.Clip(x, op.constant(min_val, x), op.constant(max_val, x))


@aten("leaky_relu")
def leaky_relu(op: Builder, x: Value, negative_slope: float = 0.01) -> Value:
    return op.LeakyRelu(x, alpha=float(negative_slope))


@aten("prelu")
def prelu(op: Builder, x: Value, weight: Value) -> Value:
    """torch's slope is per channel (axis 1); ONNX broadcasts from the right."""
    rank = len(x.shape)
    if rank > 2 and weight.shape[0] != 1:
        weight = op.Unsqueeze(weight, list(range(1, rank - 1)))
    return op.PRelu(x, weight)


@aten("elu")
def elu(op: Builder, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    if (scale, input_scale) != (1, 1):
        return (
            op.Selu(x, alpha=float(alpha), gamma=float(scale))
            if input_scale == 1
            else _scaled_elu(op, x, alpha, scale, input_scale)
        )
    return op.Elu(x, alpha=float(alpha))


def _scaled_elu(op: Builder, x: Value, alpha: float, scale: float, input_scale: float) -> Value:
    negative = op.Mul(op.Sub(op.Exp(op.Mul(x, op.constant(input_scale, x))), op.constant(1, x)), op.constant(alpha, x))
    return op.Mul(op.Where(op.Greater(x, op.constant(0, x)), x, negative), op.constant(scale, x))


@aten("selu")
def selu(op: Builder, x: Value) -> Value:
    return op.Selu(x)


@aten("celu")
def celu(op: Builder, x: Value, alpha: float = 1.0) -> Value:
    return op.Celu(x, alpha=float(alpha))


@aten("gelu")
def gelu(op: Builder, x: Value, approximate: str = "none") -> Value:
    return op.Gelu(x, approximate=approximate)


@aten("silu")
def silu(op: Builder, x: Value) -> Value:
    return op.Mul(x, op.Sigmoid(x))


@aten("hardsigmoid")
def hardsigmoid(op: Builder, x: Value) -> Value:
    return op.HardSigmoid(x, alpha=1 / 6, beta=0.5)


@aten("hardswish")
def hardswish(op: Builder, x: Value) -> Value:
    return op.HardSwish(x)


@aten("softplus")
def softplus(op: Builder, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    """Above the threshold torch returns x itself, which softplus is there to float32's last bits."""
    scaled = x if beta == 1 else op.Mul(x, op.constant(beta, x))
    soft = op.Softplus(scaled)
    soft = soft if beta == 1 else op.Div(soft, op.constant(beta, x))
    return op.Where(op.Greater(scaled, op.constant(threshold, x)), x, soft)


@aten("softshrink")
def softshrink(op: Builder, x: Value, lambd: float = 0.5) -> Value:
    return op.Shrink(x, lambd=float(lambd), bias=float(lambd))


@aten("hardshrink")
def hardshrink(op: Builder, x: Value, lambd: float = 0.5) -> Value:
    return op.Shrink(x, lambd=float(lambd), bias=0.0)


@aten("threshold")
def threshold(op: Builder, x: Value, threshold: float, value: float) -> Value:
    if value == 0 and threshold >= 0:
        return op.ThresholdedRelu(x, alpha=float(threshold))
    return op.Where(op.Greater(x, op.constant(threshold, x)), x, op.constant(value, x))


@aten("log_sigmoid")
def log_sigmoid(op: Builder, x: Value) -> Value:
    return op.Neg(op.Softplus(op.Neg(x)))


@aten("glu")
def glu(op: Builder, x: Value, dim: int = -1) -> Value:
    first, gate = op.Split(x, axis=dim, num_outputs=2, outputs=2)
    return op.Mul(first, op.Sigmoid(gate))


@aten("softmax.int", "_softmax")
def softmax(op: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    return op.Softmax(op.cast(x, op.dtype), axis=dim)


@aten("log_softmax.int", "_log_softmax")
def log_softmax(op: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    return op.LogSoftmax(op.cast(x, op.dtype), axis=dim)


def _refuse_live(p: float, train: bool) -> None:
    if train and p:
        raise UnsupportedError("dropout that is active in eval mode: its result is random; pass training=self.training")


@aten("dropout")
def dropout(op: Builder, x: Value, p: float, train: bool) -> Value:
    """Kept as a node in inference too: the port trains on with it."""
    _refuse_live(p, train)
    return op.Dropout(x, op.constant(p, ir.DataType.FLOAT)) if p else x


@aten("feature_dropout")
def feature_dropout(op: Builder, x: Value, p: float, train: bool) -> Value:
    """Drops whole channels, which is a fact for training: in inference it is Dropout."""
    _refuse_live(p, train)
    return op.Dropout(x, op.constant(p, ir.DataType.FLOAT), facts={TRAINING: '{"noise": "channel"}'}) if p else x


@aten("alpha_dropout", "feature_alpha_dropout")
def alpha_dropout(op: Builder, x: Value, p: float, train: bool) -> Value:
    _refuse_live(p, train)
    return op.Dropout(x, op.constant(p, ir.DataType.FLOAT), facts={TRAINING: '{"noise": "alpha"}'}) if p else x
