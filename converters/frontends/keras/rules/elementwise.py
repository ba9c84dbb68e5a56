"""Functions of each element, arithmetic and comparisons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.dtypes import from_keras
from porter.converters.frontends.keras.operands import common_dtype, in_dtype, promoted
from porter.converters.frontends.keras.table import keras_operation

Value = ir.Value


def _float(op: Builder, x: Any) -> Value:
    """Integers become floats in functions that have no integer results."""
    return in_dtype(op, x, op.dtype)


def _unary(name: str, onnx: str, floats: bool = True) -> None:
    def rule(op: Builder, x: Any) -> Value:
        return getattr(op, onnx)(_float(op, x) if floats else x)

    keras_operation(name)(rule)


for _name in ["Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh", "Erf", "Reciprocal"]:
    _unary(_name, _name)
for _name, _onnx in {
    "Arcsin": "Asin",
    "Arccos": "Acos",
    "Arctan": "Atan",
    "Arcsinh": "Asinh",
    "Arccosh": "Acosh",
    "Arctanh": "Atanh",
}.items():
    _unary(_name, _onnx)
for _name, _onnx in {"Absolute": "Abs", "Abs": "Abs", "Negative": "Neg", "Sign": "Sign"}.items():
    _unary(_name, _onnx, floats=False)


@keras_operation("Floor", "Ceil")
def floor(op: Builder, x: Value, *, operation: Any) -> Value:
    return getattr(op, type(operation).__name__)(_float(op, x))


@keras_operation("Trunc")
def trunc(op: Builder, x: Value) -> Value:
    if not x.dtype.is_floating_point():
        return x
    return op.Mul(op.Sign(x), op.Floor(op.Abs(x)))


@keras_operation("Round")
def round_(op: Builder, x: Value, *, decimals: int = 0) -> Value:
    """Halves go to the even neighbour on both sides."""
    if not x.dtype.is_floating_point() and decimals >= 0:
        return x
    if decimals == 0:
        return op.Round(x)
    scale = op.constant(10.0**decimals, op.dtype)
    return op.Div(op.Round(op.Mul(_float(op, x), scale)), scale)


@keras_operation("Fabs")
def fabs(op: Builder, x: Value) -> Value:
    return op.Abs(_float(op, x))


@keras_operation("Square")
def square(op: Builder, x: Value) -> Value:
    return op.Mul(x, x)


@keras_operation("Rsqrt")
def rsqrt(op: Builder, x: Value) -> Value:
    x = _float(op, x)
    return op.Div(op.constant(1.0, x), op.Sqrt(x))


@keras_operation("Erfc")
def erfc(op: Builder, x: Value) -> Value:
    return op.Sub(op.constant(1.0, x), op.Erf(x))


@keras_operation("Expm1")
def expm1(op: Builder, x: Value) -> Value:
    x = _float(op, x)
    return op.Sub(op.Exp(x), op.constant(1.0, x))


@keras_operation("Log1p")
def log1p(op: Builder, x: Value) -> Value:
    x = _float(op, x)
    return op.Log(op.Add(x, op.constant(1.0, x)))


def _scaled(name: str, factor: float, of: str | None = None) -> None:
    def rule(op: Builder, x: Value) -> Value:
        x = _float(op, x)
        return op.Mul(getattr(op, of)(x) if of else x, op.constant(factor, x))

    keras_operation(name)(rule)


_scaled("Log10", 1 / math.log(10), "Log")
_scaled("Log2", 1 / math.log(2), "Log")
_scaled("Deg2rad", math.pi / 180)
_scaled("Rad2deg", 180 / math.pi)


@keras_operation("Exp2")
def exp2(op: Builder, x: Value) -> Value:
    x = _float(op, x)
    return op.Pow(op.constant(2.0, x), x)


@keras_operation("Cbrt")
def cbrt(op: Builder, x: Value) -> Value:
    x = _float(op, x)
    return op.Mul(op.Sign(x), op.Pow(op.Abs(x), op.constant(1 / 3, x)))


@keras_operation("Sinc")
def sinc(op: Builder, x: Value) -> Value:
    x = _float(op, x)
    zero = op.Equal(x, op.constant(0.0, x))
    angle = op.Mul(op.Where(zero, op.constant(1.0, x), x), op.constant(math.pi, x))
    return op.Where(zero, op.constant(1.0, x), op.Div(op.Sin(angle), angle))


# ---- arithmetic ----


def _binary(name: str, onnx: str) -> None:
    def rule(op: Builder, x1: Any, x2: Any) -> Value:
        return getattr(op, onnx)(*promoted(op, x1, x2))

    keras_operation(name)(rule)


_binary("Subtract", "Sub")


def _boolean_or(op: Builder, onnx: str, boolean: str, x1: Any, x2: Any) -> Value:
    a, b = promoted(op, x1, x2)
    return getattr(op, boolean if a.dtype == ir.DataType.BOOL else onnx)(a, b)


@keras_operation("Add")
def add(op: Builder, x1: Any, x2: Any) -> Value:
    return _boolean_or(op, "Add", "Or", x1, x2)


@keras_operation("Multiply")
def multiply(op: Builder, x1: Any, x2: Any) -> Value:
    return _boolean_or(op, "Mul", "And", x1, x2)


@keras_operation("Maximum")
def maximum(op: Builder, x1: Any, x2: Any) -> Value:
    return _boolean_or(op, "Max", "Or", x1, x2)


@keras_operation("Minimum")
def minimum(op: Builder, x1: Any, x2: Any) -> Value:
    return _boolean_or(op, "Min", "And", x1, x2)


@keras_operation("Divide", "TrueDivide")
def divide(op: Builder, x1: Any, x2: Any) -> Value:
    return op.Div(_float(op, x1), _float(op, x2))


@keras_operation("DivideNoNan")
def divide_no_nan(op: Builder, x1: Any, x2: Any) -> Value:
    a, b = _float(op, x1), _float(op, x2)
    zero = op.Equal(b, op.constant(0.0, b))
    return op.Where(zero, op.constant(0.0, b), op.Div(a, op.Where(zero, op.constant(1.0, b), b)))


@keras_operation("FloorDivide")
def floor_divide(op: Builder, x1: Any, x2: Any) -> Value:
    """Towards minus infinity; ONNX divides integers towards zero."""
    a, b = promoted(op, x1, x2)
    if a.dtype.is_floating_point():
        return op.Floor(op.Div(a, b))
    return op.Div(op.Sub(a, op.Mod(a, b)), b)


@keras_operation("Mod")
def mod(op: Builder, x1: Any, x2: Any) -> Value:
    """The sign of the divisor; ONNX has that for integers only."""
    a, b = promoted(op, x1, x2)
    if not a.dtype.is_floating_point():
        return op.Mod(a, b)
    rest = op.Mod(a, b, fmod=1)
    zero = op.constant(0.0, a)
    signs = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(b, zero)))
    return op.Where(signs, op.Add(rest, b), rest)


@keras_operation("Fmod")
def fmod(op: Builder, x1: Any, x2: Any) -> Value:
    return op.Mod(*promoted(op, x1, x2), fmod=1)


@keras_operation("Power")
def power(op: Builder, x1: Any, x2: Any) -> Value:
    return op.Pow(*promoted(op, x1, x2))


@keras_operation("Fmax", "Fmin")
def fmax(op: Builder, x1: Any, x2: Any, *, operation: Any) -> Value:
    """A NaN gives way to the other operand."""
    a, b = promoted(op, x1, x2)
    best = op.Max(a, b) if type(operation).__name__ == "Fmax" else op.Min(a, b)
    return op.Where(op.IsNaN(a), b, op.Where(op.IsNaN(b), a, best)) if a.dtype.is_floating_point() else best


@keras_operation("Hypot")
def hypot(op: Builder, x1: Any, x2: Any) -> Value:
    a, b = _float(op, x1), _float(op, x2)
    return op.Sqrt(op.Add(op.Mul(a, a), op.Mul(b, b)))


@keras_operation("Logaddexp")
def logaddexp(op: Builder, x1: Any, x2: Any) -> Value:
    a, b = _float(op, x1), _float(op, x2)
    return op.Add(op.Max(a, b), op.Log(op.Add(op.Exp(op.Neg(op.Abs(op.Sub(a, b)))), op.constant(1.0, a))))


@keras_operation("Logaddexp2")
def logaddexp2(op: Builder, x1: Any, x2: Any) -> Value:
    a, b = _float(op, x1), _float(op, x2)
    apart = op.Pow(op.constant(2.0, a), op.Neg(op.Abs(op.Sub(a, b))))
    more = op.Mul(op.Log(op.Add(apart, op.constant(1.0, a))), op.constant(1 / math.log(2), a))
    return op.Add(op.Max(a, b), more)


@keras_operation("Arctan2")
def arctan2(op: Builder, x1: Any, x2: Any) -> Value:
    y, x = _float(op, x1), _float(op, x2)
    zero, pi = op.constant(0.0, x), op.constant(math.pi, x)
    none = op.Equal(x, zero)
    angle = op.Atan(op.Div(y, op.Where(none, op.constant(1.0, x), x)))
    half = op.Mul(op.Sign(y), op.constant(math.pi / 2, x))
    turned = op.Where(op.Less(y, zero), op.Sub(angle, pi), op.Add(angle, pi))
    return op.Where(none, half, op.Where(op.Less(x, zero), turned, angle))


@keras_operation("Heaviside")
def heaviside(op: Builder, x1: Any, x2: Any) -> Value:
    x, at_zero = promoted(op, x1, x2)
    zero = op.constant(0, x)
    step = op.cast(op.Greater(x, zero), x.dtype)
    return op.Where(op.Equal(x, zero), at_zero, step)


@keras_operation("Clip")
def clip(op: Builder, x: Value, *, x_min: Any, x_max: Any) -> Value:
    x = op.cast(x, op.dtype)
    low, high = (None if bound is None else in_dtype(op, bound, x.dtype) for bound in (x_min, x_max))
    scalars = all(bound is None or not len(bound.shape) for bound in (low, high))
    if scalars:
        return op.Clip(x, low, high)
    x = x if low is None else op.Max(x, low)
    return x if high is None else op.Min(x, high)


# ---- comparisons and logic ----


def _comparison(name: str, onnx: str, negated: bool = False) -> None:
    def rule(op: Builder, x1: Any, x2: Any) -> Value:
        a, b = promoted(op, x1, x2)
        if a.dtype == ir.DataType.BOOL and onnx != "Equal":
            a, b = op.cast(a, ir.DataType.INT32), op.cast(b, ir.DataType.INT32)
        y = getattr(op, onnx)(a, b)
        return op.Not(y) if negated else y

    keras_operation(name)(rule)


_comparison("Equal", "Equal")
_comparison("NotEqual", "Equal", negated=True)
_comparison("Less", "Less")
_comparison("LessEqual", "LessOrEqual")
_comparison("Greater", "Greater")
_comparison("GreaterEqual", "GreaterOrEqual")


def truth(op: Builder, x: Any) -> Value:
    """Whether each element is not zero."""
    return in_dtype(op, x, ir.DataType.BOOL)


@keras_operation("LogicalAnd", "LogicalOr", "LogicalXor")
def logical(op: Builder, x1: Any, x2: Any, *, operation: Any) -> Value:
    return getattr(op, type(operation).__name__.removeprefix("Logical"))(truth(op, x1), truth(op, x2))


@keras_operation("LogicalNot")
def logical_not(op: Builder, x: Any) -> Value:
    return op.Not(truth(op, x))


@keras_operation("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(op: Builder, x: Any, y: Any, *, operation: Any) -> Value:
    a, b = promoted(op, x, y)
    name = type(operation).__name__
    return getattr(op, name.removeprefix("Bitwise") if a.dtype == ir.DataType.BOOL else name)(a, b)


@keras_operation("BitwiseNot", "BitwiseInvert")
def bitwise_not(op: Builder, x: Value) -> Value:
    return op.Not(x) if x.dtype == ir.DataType.BOOL else op.BitwiseNot(x)


@keras_operation("Isnan")
def isnan(op: Builder, x: Value) -> Value:
    return op.IsNaN(op.cast(x, common_dtype(x, float)))


@keras_operation("Isinf")
def isinf(op: Builder, x: Value) -> Value:
    return op.IsInf(op.cast(x, common_dtype(x, float)))


@keras_operation("Isposinf", "Isneginf")
def one_infinity(op: Builder, x: Value, *, operation: Any) -> Value:
    positive = type(operation).__name__ == "Isposinf"
    x = op.cast(x, common_dtype(x, float))
    return op.IsInf(x, detect_positive=int(positive), detect_negative=int(not positive))


@keras_operation("Isfinite")
def isfinite(op: Builder, x: Value) -> Value:
    x = op.cast(x, common_dtype(x, float))
    return op.Not(op.Or(op.IsInf(x), op.IsNaN(x)))


@keras_operation("Isclose")
def isclose(op: Builder, x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool) -> Value:
    a, b = promoted(op, x1, x2, also="float32")
    allowed = op.Add(op.Mul(op.Abs(b), op.constant(float(rtol), b)), op.constant(float(atol), b))
    close = op.Or(op.Equal(a, b), op.And(isfinite(op, b), op.LessOrEqual(op.Abs(op.Sub(a, b)), allowed)))
    return op.Or(close, op.And(op.IsNaN(a), op.IsNaN(b))) if equal_nan else close


@keras_operation("NanToNum")
def nan_to_num(op: Builder, x: Value, *, nan: float, posinf: float | None, neginf: float | None) -> Value:
    if not x.dtype.is_floating_point():
        return x
    limits = np.finfo(x.dtype.numpy())
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    y = op.Where(op.IsInf(x, detect_negative=0), op.constant(high, x), x)
    y = op.Where(op.IsInf(x, detect_positive=0), op.constant(low, x), y)
    return op.Where(op.IsNaN(x), op.constant(nan, x), y)


# ---- types ----


@keras_operation("Cast", "ConvertToTensor")
def cast(op: Builder, x: Any, *, dtype: str | None) -> Value:
    if not isinstance(x, Value):
        return op.constant(x, op.dtype)
    return op.cast(x, from_keras(dtype)) if dtype is not None else x


@keras_operation("SaturateCast")
def saturate_cast(op: Builder, x: Value, *, dtype: str) -> Value:
    wanted = from_keras(dtype)
    if wanted.is_floating_point() or wanted == ir.DataType.BOOL:
        return op.cast(x, wanted)
    limits = np.iinfo(wanted.numpy())
    inside = [
        op.constant(float(limit) if x.dtype.is_floating_point() else limit, x) for limit in (limits.min, limits.max)
    ]
    return op.cast(op.Clip(x, *inside), wanted)


@keras_operation("Copy", "StopGradient")
def copy(op: Builder, x: Value, *, operation: Any) -> Value:
    import json

    from porter.converters.opset import TRAINING

    if type(operation).__name__ == "Copy":
        return x
    return op.Identity(x, facts={TRAINING: json.dumps({"stop_gradient": True})})
