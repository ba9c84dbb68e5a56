"""Activation functions. Keras' own are operations of their own, whichever layer they stand in."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import axis_of, rank
from porter.converters.frontends.keras.table import keras_operation

Value = ir.Value


@keras_operation("Relu", "Sigmoid", "Softplus", "Softsign", "Selu")
def plain(op: Builder, x: Value, *, operation: Any) -> Value:
    return getattr(op, type(operation).__name__)(x)


@keras_operation("Relu6")
def relu6(op: Builder, x: Value) -> Value:
    return op.Clip(x, op.constant(0.0, x), op.constant(6.0, x))


@keras_operation("ReLU")
def general_relu(op: Builder, x: Value, *, negative_slope: float, max_value: float | None, threshold: float) -> Value:
    """From the threshold on the element itself, at most `max_value`; below it the slope times what it lacks."""
    zero = op.constant(0.0, x)
    negative_slope, threshold = float(negative_slope or 0.0), float(threshold or 0.0)
    if threshold:
        edge = op.constant(threshold, x)
        y = op.Where(op.Greater(x, edge), x, zero)
    elif negative_slope and max_value is None:
        return op.LeakyRelu(x, alpha=negative_slope)
    elif max_value is None:
        return op.Relu(x)
    else:
        y = x
    if max_value is not None:
        y = op.Clip(y, zero, op.constant(float(max_value), x))
    if negative_slope:
        lacking = op.Relu(op.Sub(op.constant(threshold, x), x) if threshold else op.Neg(x))
        y = op.Sub(y, op.Mul(lacking, op.constant(negative_slope, x)))
    return y


@keras_operation("LeakyRelu")
def leaky_relu(op: Builder, x: Value, *, negative_slope: float) -> Value:
    return op.LeakyRelu(x, alpha=float(negative_slope))


@keras_operation("Elu")
def elu(op: Builder, x: Value, *, alpha: float) -> Value:
    return op.Elu(x, alpha=float(alpha))


@keras_operation("Celu")
def celu(op: Builder, x: Value, *, alpha: float) -> Value:
    return op.Celu(x, alpha=float(alpha))


@keras_operation("Gelu")
def gelu(op: Builder, x: Value, *, approximate: bool) -> Value:
    return op.Gelu(x, approximate="tanh" if approximate else "none")


@keras_operation("Silu")
def silu(op: Builder, x: Value) -> Value:
    return op.Mul(x, op.Sigmoid(x))


@keras_operation("Mish")
def mish(op: Builder, x: Value) -> Value:
    return op.Mish(x)


@keras_operation("HardSigmoid")
def hard_sigmoid(op: Builder, x: Value) -> Value:
    return op.HardSigmoid(x, alpha=1 / 6, beta=0.5)


@keras_operation("HardSilu")
def hard_silu(op: Builder, x: Value) -> Value:
    return op.HardSwish(x)


@keras_operation("HardTanh")
def hard_tanh(op: Builder, x: Value) -> Value:
    return op.Clip(x, op.constant(-1.0, x), op.constant(1.0, x))


@keras_operation("SoftShrink")
def soft_shrink(op: Builder, x: Value, *, threshold: float) -> Value:
    return op.Shrink(x, lambd=float(threshold), bias=float(threshold))


@keras_operation("HardShrink")
def hard_shrink(op: Builder, x: Value, *, threshold: float) -> Value:
    return op.Shrink(x, lambd=float(threshold), bias=0.0)


@keras_operation("TanhShrink")
def tanh_shrink(op: Builder, x: Value) -> Value:
    return op.Sub(x, op.Tanh(x))


@keras_operation("Threshold")
def threshold(op: Builder, x: Value, *, threshold: float, default_value: float) -> Value:
    edge, other = op.constant(float(threshold), x), op.constant(float(default_value), x)
    return op.Where(op.Greater(x, edge), x, other)


@keras_operation("LogSigmoid")
def log_sigmoid(op: Builder, x: Value) -> Value:
    return op.Neg(op.Softplus(op.Neg(x)))


@keras_operation("SparseSigmoid")
def sparse_sigmoid(op: Builder, x: Value) -> Value:
    return op.Clip(
        op.Mul(op.Add(x, op.constant(1.0, x)), op.constant(0.5, x)), op.constant(0.0, x), op.constant(1.0, x)
    )


@keras_operation("SparsePlus")
def sparse_plus(op: Builder, x: Value) -> Value:
    one = op.constant(1.0, x)
    risen = op.Add(op.Max(x, op.constant(-1.0, x)), one)
    return op.Where(op.Less(x, one), op.Mul(op.Mul(risen, risen), op.constant(0.25, x)), x)


@keras_operation("Squareplus")
def squareplus(op: Builder, x: Value, *, b: float) -> Value:
    root = op.Sqrt(op.Add(op.Mul(x, x), op.constant(float(b), x)))
    return op.Mul(op.Add(x, root), op.constant(0.5, x))


@keras_operation("Glu")
def glu(op: Builder, x: Value, *, axis: int) -> Value:
    first, second = op.Split(x, axis=axis_of(x, axis), num_outputs=2, outputs=2)
    return op.Mul(first, op.Sigmoid(second))


@keras_operation("Softmax", "LogSoftmax")
def softmax(op: Builder, x: Value, *, axis: int | None, operation: Any) -> Value:
    kind = getattr(op, type(operation).__name__)
    if axis is not None:
        return kind(x, axis=axis_of(x, axis))
    return op.Reshape(kind(op.Reshape(x, [-1]), axis=0), op.Shape(x))


@keras_operation("Sparsemax")
def sparsemax(op: Builder, x: Value, *, axis: int) -> Value:
    """What remains above a threshold, which Keras finds from the sum of the running sums."""
    axis = axis_of(x, axis)
    count = op.Slice(op.Shape(x), [axis], [axis + 1], [0], [1])
    ordered, _ = op.TopK(x, count, axis=axis, outputs=2)
    total = op.CumSum(ordered, op.constant(axis, ir.DataType.INT64))
    one = op.constant(1.0, x)
    numbers = op.Range(
        op.constant(1, ir.DataType.INT64),
        op.Add(op.Squeeze(count, [0]), op.constant(1, ir.DataType.INT64)),
        op.constant(1, ir.DataType.INT64),
    )
    places = op.Reshape(op.cast(numbers, x.dtype), [-1 if a == axis else 1 for a in range(rank(x))])
    inside = op.Greater(op.Sub(ordered, op.Div(op.Sub(total, one), places)), op.constant(0.0, x))
    kept = op.ReduceSum(op.Where(inside, total, op.constant(0.0, x)), [axis], keepdims=1)
    size = op.ReduceSum(op.cast(inside, x.dtype), [axis], keepdims=1)
    return op.Relu(op.Sub(x, op.Div(op.Sub(kept, one), size)))
