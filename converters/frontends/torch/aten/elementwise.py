"""Arithmetic, comparisons, activations."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten

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


def floor_division(op: Builder, x: Value, other: Value) -> Value:
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
        return floor_division(op, x, other)
    if _integral(op, x):
        return op.Div(x, other)
    quotient = op.Div(x, other)
    return op.Mul(op.Sign(quotient), op.Floor(op.Abs(quotient)))


@aten("floor_divide", "floor_divide.Scalar", promoted=(0, 1))
def floor_divide(op: Builder, x: Value, other: Value) -> Value:
    return floor_division(op, x, other)


@aten("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor", promoted=(0, 1))
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
