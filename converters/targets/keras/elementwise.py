"""Arithmetic, comparisons, logic, functions of one number."""

from __future__ import annotations

from typing import Any

from porter.converters.codegen.nodes import Binary, Expr, Literal, call
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.cast import cast_to, dtype_name, kept, refuse_uint64
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Float, Tensor

# ***** arithmetic *****

_SYMBOLS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}


@keras_op("Add", "Sub", "Mul")
def arithmetic(x: Tensor, y: Tensor, *, op: str) -> Expr:
    if op == "Mul" and x.value is y.value:
        return call("ops.square", x)
    return Binary(_SYMBOLS[op], x, y)


@keras_op("Div")
def divide(x: Tensor, y: Tensor, *, out: Tensor) -> Expr:
    """ONNX divides integers towards zero, `//` rounds down."""
    if x.dtype.is_floating_point():
        return x / y
    return x // y if not x.dtype.is_signed() else kept(call("truncated_divide", x, y), out)


@keras_op("Mod")
def modulo(x: Tensor, y: Tensor, *, fmod: int, out: Tensor) -> Expr:
    """The sign of the divisor, or with fmod that of the dividend."""
    return kept(call("ops.fmod" if fmod else "ops.mod", x, y), out)


@keras_op("Pow")
def power(x: Tensor, y: Tensor) -> Expr:
    """ONNX gives the result the type of the base, whatever that of the exponent."""
    exponent = constant_of(y.value)
    if exponent is not None and exponent.size == 1 and float(exponent.reshape(-1)[0]).is_integer() and y.rank == 0:
        number = int(exponent)
        return call("ops.square", x) if number == 2 else x ** Literal(number)
    if x.dtype == y.dtype:
        return x**y
    if x.dtype.is_floating_point():
        return x ** cast_to(y, y.dtype, x.dtype)
    return call("ops.cast", call("ops.power", x, y), dtype_name(x.dtype))


@keras_op("Neg")
def negate(x: Tensor) -> Expr:
    return -x


@keras_op("Reciprocal")
def reciprocal(x: Tensor) -> Expr:
    return 1.0 / x


@keras_op("Max", "Min", note="equal operands: TensorFlow gives the first the gradient, torch half to each")
def extremum(x: Tensor, *xs: Tensor, op: str, out: Tensor) -> Expr:
    name = {"Max": "ops.maximum", "Min": "ops.minimum"}[op]
    combined: Expr = x
    for other in xs:
        combined = call(name, combined, other)
    return kept(combined, out) if xs else x


@keras_op("Clip")
def clip(x: Tensor, low: Float | None = None, high: Float | None = None, *, out: Tensor) -> Expr:
    refuse_uint64(x)
    if low is None or high is None:
        bound = call("ops.maximum", x, low) if high is None else call("ops.minimum", x, high)
        return x if low is high else kept(bound, out)
    if low > high:
        raise CannotBind("the bounds cross")
    return call("ops.relu6", x) if (low, high) == (0, 6) else call("ops.clip", x, low, high)


@keras_op("Clip")
def clip_computed(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Expr:
    """Where the bounds cross, ONNX returns the upper one."""
    refuse_uint64(x)
    raised = x if low is None else call("ops.maximum", x, low)
    return raised if high is None else call("ops.minimum", raised, high)


@keras_op("Sum")
def add_all(x: Tensor, *xs: Tensor) -> Expr:
    return _sum(x, xs)


@keras_op("Mean")
def mean_of(x: Tensor, *xs: Tensor) -> Expr:
    return _sum(x, xs) / Literal(1 + len(xs)) if xs else x


def _sum(x: Expr, xs: tuple[Expr, ...]) -> Expr:
    for other in xs:
        x = x + other
    return x


# ***** functions of one number *****

_FUNCTIONS = {
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "BitwiseNot": "bitwise_not",
    "IsNaN": "isnan",
    "Not": "logical_not",
    **{
        name: name.lower()
        for name in (
            "Abs",
            "Ceil",
            "Cos",
            "Cosh",
            "Erf",
            "Exp",
            "Floor",
            "Log",
            "Round",
            "Sign",
            "Sin",
            "Sinh",
            "Sqrt",
            "Tan",
        )
    },
}


@keras_op(*_FUNCTIONS)
def function(x: Tensor, *, op: str) -> Expr:
    return call(f"ops.{_FUNCTIONS[op]}", x)


@keras_op("IsInf")
def is_inf(x: Tensor, *, detect_negative: int, detect_positive: int) -> Expr:
    if not (detect_negative or detect_positive):
        return call("ops.zeros_like", x, dtype="bool")
    return call(
        "ops.isinf" if detect_negative and detect_positive else "ops.isposinf" if detect_positive else "ops.isneginf", x
    )


# ***** comparisons and logic *****

_RELATIONS = {
    "And": "logical_and",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Or": "logical_or",
    "Xor": "logical_xor",
}


@keras_op(*_RELATIONS)
def relation(x: Tensor, y: Tensor, *, op: str) -> Expr:
    refuse_uint64(x)
    return call(f"ops.{_RELATIONS[op]}", x, y)


@keras_op("BitShift")
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Expr:
    refuse_uint64(x)
    return call({"LEFT": "ops.left_shift", "RIGHT": "ops.right_shift"}[direction], x, y)


@keras_op("Where")
def where(condition: Tensor, x: Tensor, y: Tensor, *, out: Tensor) -> Expr:
    """Of two plain numbers Keras makes its default type."""
    chosen = call("ops.where", condition, x, y)
    plain = all(constant_of(operand.value) is not None and operand.rank == 0 for operand in (x, y))
    if plain and not out.dtype.is_floating_point():
        return call("ops.cast", chosen, dtype_name(out.dtype))
    return kept(chosen, out)


@keras_op("Identity")
def identity(x: Tensor, *, training_facts: dict[str, Any]) -> Expr:
    return call("ops.stop_gradient", x) if training_facts.get("stop_gradient") else x


# ***** idioms of two nodes *****


@keras_op("Rsqrt", domain="porter")
def rsqrt(x: Tensor) -> Expr:
    return call("ops.rsqrt", x)


@keras_op("NotEqual", domain="porter", data=None)
def not_equal(x: Tensor, y: Tensor) -> Expr:
    return call("ops.not_equal", x, y)
