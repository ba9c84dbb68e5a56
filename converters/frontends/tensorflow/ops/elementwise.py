"""Arithmetic, comparisons and functions of single numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.table import data_type, tf_op
from porter.converters.opset import STOP_GRADIENT, TRAINING
from porter.errors import UnsupportedError

Value = ir.Value

# TensorFlow's name -> ONNX's, where nothing else differs.
_SAME = {
    "Abs": "Abs", "Acos": "Acos", "Acosh": "Acosh", "AddV2": "Add", "Add": "Add", "Asin": "Asin", "Asinh": "Asinh",
    "Atan": "Atan", "Atanh": "Atanh", "BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor",
    "Ceil": "Ceil", "Cos": "Cos", "Cosh": "Cosh", "Elu": "Elu", "Erf": "Erf", "Exp": "Exp", "Floor": "Floor",
    "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "Inv": "Reciprocal", "Invert": "BitwiseNot",
    "IsNan": "IsNaN", "Less": "Less", "LessEqual": "LessOrEqual", "Log": "Log", "LogicalAnd": "And",
    "LogicalNot": "Not", "LogicalOr": "Or", "Maximum": "Max", "Minimum": "Min", "Mul": "Mul", "Neg": "Neg",
    "Pow": "Pow", "RealDiv": "Div", "Reciprocal": "Reciprocal", "Relu": "Relu", "Rint": "Round", "Round": "Round",
    "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin", "Sinh": "Sinh", "Softplus": "Softplus", "Softsign": "Softsign",
    "Sqrt": "Sqrt", "Sub": "Sub", "Tan": "Tan", "Tanh": "Tanh", "TruncateDiv": "Div",
}  # fmt: skip


def _named(onnx_name: str) -> Any:
    def rule(op: Builder, *operands: Value) -> Value:
        return getattr(op, onnx_name)(*operands)

    rule.__module__ = __name__
    return rule


for _tf_name, _onnx_name in _SAME.items():
    tf_op(_tf_name)(_named(_onnx_name))


# ---- values that pass ----


@tf_op("Identity", "Snapshot", "PreventGradient", "CheckNumerics", "EnsureShape", ignored=["message", "shape"])
def identity(op: Builder, x: Value) -> Value:
    return x


@tf_op("IdentityN")
def identities(op: Builder, xs: list[Value]) -> list[Value]:
    return xs


@tf_op("PlaceholderWithDefault", ignored=["shape"])
def with_default(op: Builder, x: Value) -> Value:
    """An input that nobody gives has its default."""
    return x


@tf_op("StopGradient")
def stop_gradient(op: Builder, x: Value) -> Value:
    return op.Identity(x, facts={TRAINING: STOP_GRADIENT})


@tf_op("Cast")
def cast(op: Builder, x: Value, *, DstT: tf.DType, Truncate: bool) -> Value:
    """Numbers to booleans: all but zero are true. Floats to whole numbers: towards zero, as in ONNX."""
    if Truncate:
        raise UnsupportedError("a cast that cuts off bits instead of rounding")
    return op.cast(x, data_type(DstT))


# ---- comparisons ----


@tf_op("Equal", ignored=["incompatible_shape_error"])
def equal(op: Builder, x: Value, y: Value) -> Value:
    return op.Equal(x, y)


@tf_op("NotEqual", ignored=["incompatible_shape_error"])
def not_equal(op: Builder, x: Value, y: Value) -> Value:
    return op.Not(op.Equal(x, y))


@tf_op("ApproximateEqual")
def approximately_equal(op: Builder, x: Value, y: Value, *, tolerance: float) -> Value:
    return op.Less(op.Abs(op.Sub(x, y)), op.like(tolerance, x))


@tf_op("SelectV2")
def select(op: Builder, condition: Value, x: Value, y: Value) -> Value:
    return op.Where(condition, x, y)


@tf_op("Select")
def select_v1(op: Builder, condition: Value, x: Value, y: Value) -> Value:
    """The old form: a vector of conditions chooses rows."""
    missing = op.rank(x) - op.rank(condition)
    if op.rank(condition) == 1 and missing > 0:
        condition = op.Unsqueeze(condition, list(range(1, missing + 1)))
    return op.Where(condition, x, y)


@tf_op("IsInf")
def is_inf(op: Builder, x: Value) -> Value:
    return op.IsInf(x)


@tf_op("IsFinite")
def is_finite(op: Builder, x: Value) -> Value:
    return op.Not(op.Or(op.IsInf(x), op.IsNaN(x)))


# ---- arithmetic ----


def _is_float(x: Value) -> bool:
    return bool(x.dtype is not None and x.dtype.is_floating_point())


@tf_op("AddN", "AccumulateNV2", ignored=["shape"])
def add_n(op: Builder, xs: list[Value]) -> Value:
    total = xs[0]
    for x in xs[1:]:
        total = op.Add(total, x)
    return total


@tf_op("Div")
def div(op: Builder, x: Value, y: Value) -> Value:
    return op.Div(x, y)


@tf_op("FloorDiv")
def floor_div(op: Builder, x: Value, y: Value) -> Value:
    """ONNX divides whole numbers towards zero."""
    if _is_float(x):
        return op.Floor(op.Div(x, y))
    if op.content(x) is not None and op.content(y) is not None:  # sizes, which are not negative
        return op.Div(x, y)
    return op.Div(op.Sub(x, op.Mod(x, y)), y)


@tf_op("FloorMod")
def floor_mod(op: Builder, x: Value, y: Value) -> Value:
    if _is_float(x):
        return op.Sub(x, op.Mul(op.Floor(op.Div(x, y)), y))
    return op.Mod(x, y)


@tf_op("Mod", "TruncateMod")
def truncate_mod(op: Builder, x: Value, y: Value) -> Value:
    return op.Mod(x, y, fmod=1)


@tf_op("DivNoNan")
def div_no_nan(op: Builder, x: Value, y: Value) -> Value:
    zero = op.Equal(y, op.like(0, y))
    return op.Where(zero, op.like(0, x), op.Div(x, op.Where(zero, op.like(1, y), y)))


@tf_op("MulNoNan")
def mul_no_nan(op: Builder, x: Value, y: Value) -> Value:
    return op.Where(op.Equal(y, op.like(0, y)), op.like(0, x), op.Mul(x, y))


@tf_op("Xlogy")
def xlogy(op: Builder, x: Value, y: Value) -> Value:
    zero = op.Equal(x, op.like(0, x))
    return op.Where(zero, op.like(0, x), op.Mul(x, op.Log(op.Where(zero, op.like(1, y), y))))


@tf_op("Xlog1py")
def xlog1py(op: Builder, x: Value, y: Value) -> Value:
    return xlogy(op, x, op.Add(y, op.like(1, y)))


@tf_op("Xdivy")
def xdivy(op: Builder, x: Value, y: Value) -> Value:
    zero = op.Equal(x, op.like(0, x))
    return op.Where(zero, op.like(0, x), op.Div(x, op.Where(zero, op.like(1, y), y)))


@tf_op("SquaredDifference")
def squared_difference(op: Builder, x: Value, y: Value) -> Value:
    apart = op.Sub(x, y)
    return op.Mul(apart, apart)


@tf_op("Square")
def square(op: Builder, x: Value) -> Value:
    return op.Mul(x, x)


@tf_op("Rsqrt")
def rsqrt(op: Builder, x: Value) -> Value:
    return op.Reciprocal(op.Sqrt(x))


@tf_op("Log1p")
def log1p(op: Builder, x: Value) -> Value:
    return op.Log(op.Add(x, op.like(1, x)))


@tf_op("Expm1")
def expm1(op: Builder, x: Value) -> Value:
    return op.Sub(op.Exp(x), op.like(1, x))


@tf_op("Erfc")
def erfc(op: Builder, x: Value) -> Value:
    return op.Sub(op.like(1, x), op.Erf(x))


@tf_op("Atan2")
def atan2(op: Builder, y: Value, x: Value) -> Value:
    """The angle of (x, y), in all four quadrants."""
    zero, pi = op.like(0, x), op.like(math.pi, x)
    flat = op.Equal(x, zero)
    angle = op.Atan(op.Div(y, op.Where(flat, op.like(1, x), x)))
    behind = op.Where(op.Less(y, zero), op.Sub(angle, pi), op.Add(angle, pi))
    upright = op.Mul(op.Sign(y), op.like(math.pi / 2, x))
    return op.Where(flat, upright, op.Where(op.Less(x, zero), behind, angle))


@tf_op("LeftShift")
def left_shift(op: Builder, x: Value, y: Value) -> Value:
    return _shift(op, x, y, "LEFT")


@tf_op("RightShift")
def right_shift(op: Builder, x: Value, y: Value) -> Value:
    return _shift(op, x, y, "RIGHT")


def _shift(op: Builder, x: Value, y: Value, direction: str) -> Value:
    if not str(x.dtype.name).startswith("UINT"):
        raise UnsupportedError("ONNX shifts only unsigned whole numbers; cast to tf.uint32 and back")
    return op.BitShift(x, y, direction=direction)


# ---- activations ----


@tf_op("Relu6")
def relu6(op: Builder, x: Value) -> Value:
    return op.Clip(x, op.like(0, x), op.like(6, x))


@tf_op("LeakyRelu")
def leaky_relu(op: Builder, x: Value, *, alpha: float) -> Value:
    return op.LeakyRelu(x, alpha=alpha)


@tf_op("Selu")
def selu(op: Builder, x: Value) -> Value:
    return op.Selu(x)


@tf_op("ClipByValue")
def clip(op: Builder, x: Value, low: Value, high: Value) -> Value:
    if op.rank(low) == 0 and op.rank(high) == 0:
        return op.Clip(x, low, high)
    return op.Max(op.Min(x, high), low)


@tf_op("Bucketize")
def bucketize(op: Builder, x: Value, *, boundaries: list[float]) -> Value:
    """The number of boundaries that are not above."""
    edges = op.tensor(np.asarray(boundaries, dtype=np.float32))
    reached = op.GreaterOrEqual(op.Unsqueeze(op.cast(x, ir.DataType.FLOAT), [-1]), edges)
    return op.ReduceSum(op.cast(reached, ir.DataType.INT32), [-1], keepdims=0)
