"""Arithmetic, comparisons, logic, functions of one number."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.codegen.nodes import Binary, Expr, Literal, Unary, call, layer
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import cast_to, new, refuse_stored_only
from porter.converters.targets.types import Float, Tensor


def number_of(x: Tensor) -> np.ndarray | None:
    """A single number that is known while porting, as the source will write it."""
    found = constant_of(x.value)
    return found if found is not None and found.ndim == 0 else None


# ***** arithmetic *****

_SYMBOLS = {"Add": "+", "Sub": "-", "Mul": "*"}


@torch_op(*_SYMBOLS)
def arithmetic(x: Tensor, y: Tensor, *, op: str) -> Expr:
    refuse_stored_only(x)
    return Binary(_SYMBOLS[op], x, y)


@torch_op("Div")
def divide(x: Tensor, y: Tensor) -> Expr:
    """ONNX divides integers towards zero."""
    refuse_stored_only(x)
    return x / y if x.dtype.is_floating_point() else call("torch.div", tensor(x), y, rounding_mode="trunc")


def tensor(x: Tensor) -> Expr:
    """`x` where a mere number will not do."""
    number = number_of(x)
    return x if number is None else call("torch.tensor", number.item(), **new(x.dtype))


@torch_op("Mod")
def modulo(x: Tensor, y: Tensor, *, fmod: int) -> Expr:
    """The sign of the divisor, or with fmod that of the dividend."""
    refuse_stored_only(x)
    return call("torch.fmod", tensor(x), y) if fmod else Binary("%", x, y)


@torch_op("Pow")
def power(x: Tensor, y: Tensor) -> Expr:
    """ONNX gives the result the type of the base, whatever that of the exponent."""
    exponent = number_of(y)
    if exponent is not None and float(exponent).is_integer():
        return x ** Literal(int(exponent))
    if x.dtype == y.dtype or (x.dtype.is_floating_point() and not y.dtype.is_floating_point()):
        return x**y
    return cast_to(x**y, y.dtype, x.dtype)


@torch_op("Neg")
def negate(x: Tensor) -> Expr:
    return -x


@torch_op("Reciprocal")
def reciprocal(x: Tensor) -> Expr:
    return 1 / x


@torch_op("Max", "Min")
def extremum(x: Tensor, *xs: Tensor, op: str) -> Expr:
    """A number is a bound."""
    refuse_stored_only(x)
    bound, function = {"Max": ("min", "torch.maximum"), "Min": ("max", "torch.minimum")}[op]
    numbers = [other for other in (x, *xs) if number_of(other) is not None]
    given: list[Expr] = [other for other in (x, *xs) if number_of(other) is None] or [tensor(x)]
    combined, *rest = given
    for other in rest:
        combined = call(function, combined, other)
    for other in numbers:
        combined = call(".clamp", combined, **{bound: other})
    return combined


@torch_op("Clip")
def clip(x: Tensor, low: Float | None = None, high: Float | None = None) -> Expr:
    if low is None and high is None:
        return x
    if (low, high) == (0, 6) and x.dtype.is_floating_point():
        return call("F.relu6", x)
    if low is None or high is None:
        return call(".clamp", x, min=low, max=high)
    return call(".clamp", x, low, high)


@torch_op("Clip")
def clip_computed(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Expr:
    """Where the bounds cross, both return the upper one."""
    if low is None or high is None:
        return call(".clamp", x, min=low, max=high)
    return call(".clamp", x, tensor(low), tensor(high))


@torch_op("Sum")
def add_all(x: Tensor, *xs: Tensor) -> Expr:
    return _sum(x, xs)


@torch_op("Mean")
def mean_of(x: Tensor, *xs: Tensor) -> Expr:
    return _sum(x, xs) / Literal(1 + len(xs)) if xs else x


def _sum(x: Expr, xs: tuple[Expr, ...]) -> Expr:
    for other in xs:
        x = x + other
    return x


# ***** functions of one number *****

_FUNCTIONS = ("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
              "IsNaN", "Log", "Round", "Sign", "Sin", "Sinh", "Sqrt", "Tan")  # fmt: skip


@torch_op(*_FUNCTIONS)
def function(x: Tensor, *, op: str) -> Expr:
    return call(f"torch.{op.lower()}", x)


@torch_op("BitwiseNot", "Not")
def inverted(x: Tensor) -> Expr:
    return Unary("~", x)


@torch_op("IsInf")
def is_inf(x: Tensor, *, detect_negative: int, detect_positive: int) -> Expr:
    if not (detect_negative or detect_positive):
        return call("torch.zeros_like", x, dtype=new(ir.DataType.BOOL)["dtype"])
    both = detect_negative and detect_positive
    return call("torch.isinf" if both else "torch.isposinf" if detect_positive else "torch.isneginf", x)


# ***** comparisons and logic *****

_RELATIONS = {
    "And": "&", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "Equal": "==", "Greater": ">",
    "GreaterOrEqual": ">=", "Less": "<", "LessOrEqual": "<=", "Or": "|", "Xor": "^",
}  # fmt: skip


@torch_op(*_RELATIONS)
def relation(x: Tensor, y: Tensor, *, op: str) -> Expr:
    if op.startswith(("Greater", "Less")):
        refuse_stored_only(x)
    return Binary(_RELATIONS[op], x, y)


@torch_op("BitShift")
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Expr:
    refuse_stored_only(x)
    return Binary({"LEFT": "<<", "RIGHT": ">>"}[direction], x, y)


@torch_op("Where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Expr:
    """Of two plain numbers PyTorch makes its default type."""
    plain = number_of(x) is not None and number_of(y) is not None
    return call("torch.where", condition, tensor(x) if plain else x, y)


@torch_op("Identity")
def identity(x: Tensor, *, training_facts: dict[str, Any]) -> Expr:
    if "gaussian_noise" in training_facts:
        return layer("GaussianNoise", std=training_facts["gaussian_noise"], training=True)(x)
    if "gaussian_dropout" in training_facts:
        return layer("GaussianDropout", p=training_facts["gaussian_dropout"], training=True)(x)
    return call(".detach", x) if training_facts.get("stop_gradient") else x


# ***** idioms of two nodes *****


@torch_op("Rsqrt", domain="porter")
def rsqrt(x: Tensor) -> Expr:
    return call("torch.rsqrt", x)


@torch_op("NotEqual", domain="porter", data=None)
def not_equal(x: Tensor, y: Tensor) -> Expr:
    return Binary("!=", x, y)
