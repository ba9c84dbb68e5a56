"""Arithmetic, comparisons, activations."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.torch.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.converters.opset import TRAINING

Value = ir.Value


def _unary(*pairs: tuple[str, str], floating: bool = True) -> None:
    for name, op_type in pairs:

        def rule(op: Builder, x: Value, op_type: str = op_type) -> Value:
            return getattr(op, op_type)(x)

        aten(name, promoted=(0,), promotion="int_to_float" if floating else "default")(rule)


_unary(
    ("exp", "Exp"), ("log", "Log"), ("sqrt", "Sqrt"), ("erf", "Erf"), ("sin", "Sin"), ("cos", "Cos"), ("tan", "Tan"),
    ("tanh", "Tanh"), ("sigmoid", "Sigmoid"), ("reciprocal", "Reciprocal"), ("asin", "Asin"), ("acos", "Acos"),
    ("atan", "Atan"), ("sinh", "Sinh"), ("cosh", "Cosh"), ("asinh", "Asinh"), ("acosh", "Acosh"), ("atanh", "Atanh"),
)  # fmt: skip
_unary(
    ("neg", "Neg"), ("abs", "Abs"), ("sign", "Sign"), ("sgn", "Sign"), ("floor", "Floor"), ("ceil", "Ceil"),
    ("round", "Round"), ("relu", "Relu"), ("mish", "Mish"),
    floating=False,
)  # fmt: skip


def _integral(op: Builder, x: Value) -> bool:
    return x.dtype is not None and x.dtype.is_integer()


@aten("add.Tensor", "add.Scalar", promoted=(0, 1))
def add(op: Builder, x: Value, other: Value, alpha: float = 1) -> Value:
    if x.dtype == ir.DataType.BOOL:
        return op.Or(x, other)
    return op.Add(x, other if alpha == 1 else op.Mul(other, op.constant(alpha, x)))


@aten("sub.Tensor", "sub.Scalar", promoted=(0, 1))
def sub(op: Builder, x: Value, other: Value, alpha: float = 1) -> Value:
    return op.Sub(x, other if alpha == 1 else op.Mul(other, op.constant(alpha, x)))


@aten("rsub.Scalar", "rsub.Tensor", promoted=(0, 1))
def rsub(op: Builder, x: Value, other: Value, alpha: float = 1) -> Value:
    return op.Sub(other, x if alpha == 1 else op.Mul(x, op.constant(alpha, x)))


@aten("mul.Tensor", "mul.Scalar", promoted=(0, 1))
def mul(op: Builder, x: Value, other: Value) -> Value:
    return op.And(x, other) if x.dtype == ir.DataType.BOOL else op.Mul(x, other)


@aten("div.Tensor", "div.Scalar", promoted=(0, 1), promotion="int_to_float")
def div(op: Builder, x: Value, other: Value) -> Value:
    return op.Div(x, other)


def _floor_division(op: Builder, x: Value, other: Value) -> Value:
    """Towards minus infinity; ONNX divides integers towards zero."""
    if not _integral(op, x):
        return op.Floor(op.Div(x, other))
    quotient = op.Div(x, other)
    inexact = op.Not(op.Equal(op.Mul(quotient, other), x))
    negative = op.Xor(op.Less(x, op.constant(0, x)), op.Less(other, op.constant(0, x)))
    return op.Sub(quotient, op.Cast(op.And(inexact, negative), to=int(x.dtype)))


@aten("div.Tensor_mode", "div.Scalar_mode", promoted=(0, 1))
def div_mode(op: Builder, x: Value, other: Value, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        if _integral(op, x):
            x, other = op.cast(x, ir.DataType.FLOAT), op.cast(other, ir.DataType.FLOAT)
        return op.Div(x, other)
    if rounding_mode == "floor":
        return _floor_division(op, x, other)
    if _integral(op, x):
        return op.Div(x, other)
    quotient = op.Div(x, other)
    return op.Mul(op.Sign(quotient), op.Floor(op.Abs(quotient)))


@aten("floor_divide", "floor_divide.Scalar", promoted=(0, 1))
def floor_divide(op: Builder, x: Value, other: Value) -> Value:
    return _floor_division(op, x, other)


@aten("remainder.Tensor", "remainder.Scalar", promoted=(0, 1))
def remainder(op: Builder, x: Value, other: Value) -> Value:
    """Python's modulo: the sign of the divisor. ONNX allows that for integers only."""
    if _integral(op, x):
        return op.Mod(x, other, fmod=0)
    return op.Sub(x, op.Mul(op.Floor(op.Div(x, other)), other))


@aten("fmod.Tensor", "fmod.Scalar", promoted=(0, 1))
def fmod(op: Builder, x: Value, other: Value) -> Value:
    return op.Mod(x, other, fmod=1)


@aten("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar", promoted=(0, 1))
def power(op: Builder, x: Value, exponent: Value) -> Value:
    return op.Pow(x, exponent)


@aten("square", promoted=(0,))
def square(op: Builder, x: Value) -> Value:
    return op.Mul(x, x)


@aten("rsqrt", promoted=(0,), promotion="int_to_float")
def rsqrt(op: Builder, x: Value) -> Value:
    return op.Reciprocal(op.Sqrt(x))


@aten("exp2", promoted=(0,), promotion="int_to_float")
def exp2(op: Builder, x: Value) -> Value:
    return op.Pow(op.constant(2, x), x)


@aten("expm1", promoted=(0,), promotion="int_to_float")
def expm1(op: Builder, x: Value) -> Value:
    return op.Sub(op.Exp(x), op.constant(1, x))


@aten("log1p", promoted=(0,), promotion="int_to_float")
def log1p(op: Builder, x: Value) -> Value:
    return op.Log(op.Add(op.constant(1, x), x))


@aten("log2", promoted=(0,), promotion="int_to_float")
def log2(op: Builder, x: Value) -> Value:
    return op.Div(op.Log(x), op.constant(math.log(2), x))


@aten("log10", promoted=(0,), promotion="int_to_float")
def log10(op: Builder, x: Value) -> Value:
    return op.Div(op.Log(x), op.constant(math.log(10), x))


@aten("trunc")
def trunc(op: Builder, x: Value) -> Value:
    return x if _integral(op, x) else op.Mul(op.Sign(x), op.Floor(op.Abs(x)))


@aten("frac")
def frac(op: Builder, x: Value) -> Value:
    return op.Sub(x, trunc(op, x))


@aten("round.decimals")
def round_decimals(op: Builder, x: Value, *, decimals: int = 0) -> Value:
    scale = op.constant(10.0**decimals, x)
    return op.Div(op.Round(op.Mul(x, scale)), scale)


@aten("atan2", promoted=(0, 1), promotion="int_to_float")
def atan2(op: Builder, y: Value, x: Value) -> Value:
    """From atan of the quotient, corrected by quadrant; x = 0 gives ±π/2."""
    zero, pi = op.constant(0, x), op.constant(math.pi, x)
    angle = op.Atan(op.Div(y, x))
    shift = op.Where(op.Less(y, zero), op.Neg(pi), pi)
    angle = op.Where(op.Less(x, zero), op.Add(angle, shift), angle)
    return op.Where(op.And(op.Equal(x, zero), op.Equal(y, zero)), zero, angle)


@aten("maximum", "max.other", promoted=(0, 1))
def maximum(op: Builder, x: Value, other: Value) -> Value:
    return op.Max(x, other)


@aten("minimum", "min.other", promoted=(0, 1))
def minimum(op: Builder, x: Value, other: Value) -> Value:
    return op.Min(x, other)


@aten("clamp", "clip", promoted=(0, 1, 2))
def clamp(op: Builder, x: Value, min: Value | None = None, max: Value | None = None) -> Value:
    return op.Clip(x, min, max)


@aten("clamp.Tensor", promoted=(0, 1, 2))
def clamp_tensor(op: Builder, x: Value, min: Value | None = None, max: Value | None = None) -> Value:
    x = x if min is None else op.Max(x, min)
    return x if max is None else op.Min(x, max)


@aten("clamp_min", "clamp_min.Tensor", promoted=(0, 1))
def clamp_min(op: Builder, x: Value, min: Value) -> Value:
    return op.Max(x, min)


@aten("clamp_max", "clamp_max.Tensor", promoted=(0, 1))
def clamp_max(op: Builder, x: Value, max: Value) -> Value:
    return op.Min(x, max)


# ---- comparisons and logic ----


def _comparison(name: str, op_type: str, *, negated: bool = False) -> None:
    def rule(op: Builder, x: Value, other: Value) -> Value:
        result = getattr(op, op_type)(x, other)
        return op.Not(result) if negated else result

    aten(f"{name}.Tensor", f"{name}.Scalar", promoted=(0, 1))(rule)


_comparison("eq", "Equal")
_comparison("ne", "Equal", negated=True)
_comparison("lt", "Less")
_comparison("gt", "Greater")
_comparison("le", "LessOrEqual")
_comparison("ge", "GreaterOrEqual")


def _truth(op: Builder, x: Value) -> Value:
    return op.cast(x, ir.DataType.BOOL)


@aten("logical_not")
def logical_not(op: Builder, x: Value) -> Value:
    return op.Not(_truth(op, x))


@aten("bitwise_not")
def bitwise_not(op: Builder, x: Value) -> Value:
    return op.Not(x) if x.dtype == ir.DataType.BOOL else op.BitwiseNot(x)


def _logic(name: str, op_type: str) -> None:
    def logical(op: Builder, x: Value, other: Value) -> Value:
        return getattr(op, op_type)(_truth(op, x), _truth(op, other))

    def bitwise(op: Builder, x: Value, other: Value) -> Value:
        return getattr(op, op_type if x.dtype == ir.DataType.BOOL else f"Bitwise{op_type}")(x, other)

    aten(f"logical_{name}")(logical)
    aten(
        f"bitwise_{name}.Tensor", f"bitwise_{name}.Scalar", f"__{name}__.Tensor", f"__{name}__.Scalar", promoted=(0, 1)
    )(bitwise)


_logic("and", "And")
_logic("or", "Or")
_logic("xor", "Xor")


@aten("isnan")
def isnan(op: Builder, x: Value) -> Value:
    return op.IsNaN(x)


@aten("isinf")
def isinf(op: Builder, x: Value) -> Value:
    return op.IsInf(x)


@aten("isfinite")
def isfinite(op: Builder, x: Value) -> Value:
    return op.Not(op.Or(op.IsNaN(x), op.IsInf(x)))


@aten("nan_to_num")
def nan_to_num(
    op: Builder, x: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Value:
    limits = ir.DataType.numpy(x.dtype)
    import ml_dtypes

    info = ml_dtypes.finfo(limits)
    zero = op.constant(0, x)
    filled = op.Where(op.IsNaN(x), op.constant(nan or 0.0, x), x)
    high = op.constant(info.max if posinf is None else posinf, x)
    low = op.constant(info.min if neginf is None else neginf, x)
    infinite = op.Where(op.Greater(filled, zero), high, low)
    return op.Where(op.IsInf(filled), infinite, filled)


@aten("where.self", "where.ScalarOther", "where.ScalarSelf", promoted=(1, 2))
def where(op: Builder, condition: Value, x: Value, other: Value) -> Value:
    return op.Where(_truth(op, condition), x, other)


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(op: Builder, x: Value, mask: Value, value: Any) -> Value:
    fill = op.cast(value, x.dtype) if isinstance(value, ir.Value) else op.constant(value, x)
    return op.Where(mask, fill, x)


# ---- activations ----


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


@aten("lerp.Scalar", "lerp.Tensor")
def lerp(op: Builder, x: Value, end: Value, weight: Any) -> Value:
    weight = weight if isinstance(weight, ir.Value) else op.constant(weight, x)
    return op.Add(x, op.Mul(weight, op.Sub(end, x)))


@aten("addcmul")
def addcmul(op: Builder, x: Value, a: Value, b: Value, value: float = 1) -> Value:
    product = op.Mul(a, b)
    return op.Add(x, product if value == 1 else op.Mul(product, op.constant(value, x)))


@aten("addcdiv")
def addcdiv(op: Builder, x: Value, a: Value, b: Value, value: float = 1) -> Value:
    quotient = op.Div(a, b)
    return op.Add(x, quotient if value == 1 else op.Mul(quotient, op.constant(value, x)))


@aten("dropout")
def dropout(op: Builder, x: Value, p: float, train: bool) -> Value:
    """Kept as a node in inference too: the port trains on with it."""
    return op.Dropout(x, op.constant(p, ir.DataType.FLOAT)) if p else x


@aten("feature_dropout")
def feature_dropout(op: Builder, x: Value, p: float, train: bool) -> Value:
    """Drops whole channels, which is a fact for training: in inference it is Dropout."""
    return op.Dropout(x, op.constant(p, ir.DataType.FLOAT), facts={TRAINING: '{"noise": "channel"}'}) if p else x


@aten("alpha_dropout", "feature_alpha_dropout")
def alpha_dropout(op: Builder, x: Value, p: float, train: bool) -> Value:
    return op.Dropout(x, op.constant(p, ir.DataType.FLOAT), facts={TRAINING: '{"noise": "alpha"}'}) if p else x
