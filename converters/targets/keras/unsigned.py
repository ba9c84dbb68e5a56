"""Whole numbers of 64 bits without a sign, which Keras' own functions would compute in 32: TensorFlow's do not."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Tensor

_RELATIONS = {
    "Equal": "tf.equal",
    "Greater": "tf.greater",
    "GreaterOrEqual": "tf.greater_equal",
    "Less": "tf.less",
    "LessOrEqual": "tf.less_equal",
    "BitwiseAnd": "tf.bitwise.bitwise_and",
    "BitwiseOr": "tf.bitwise.bitwise_or",
    "BitwiseXor": "tf.bitwise.bitwise_xor",
}


def _only(x: Tensor) -> None:
    if x.dtype != ir.DataType.UINT64:
        raise CannotBind(f"{x.dtype.name} is not uint64")


@keras_op(*_RELATIONS)
def unsigned_relation(x: Tensor, y: Tensor, *, op: str) -> Expr:
    _only(x)
    return call(_RELATIONS[op], x, y)


@keras_op("BitShift")
def unsigned_shift(x: Tensor, y: Tensor, *, direction: str) -> Expr:
    _only(x)
    return call({"LEFT": "tf.bitwise.left_shift", "RIGHT": "tf.bitwise.right_shift"}[direction], x, y)


@keras_op("Max", "Min")
def unsigned_extremum(x: Tensor, *xs: Tensor, op: str) -> Expr:
    _only(x)
    combined: Expr = x
    for other in xs:
        combined = call({"Max": "tf.maximum", "Min": "tf.minimum"}[op], combined, other)
    return combined


@keras_op("Clip")
def unsigned_clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Expr:
    """Where the bounds cross, ONNX returns the upper one."""
    _only(x)
    raised = x if low is None else call("tf.maximum", x, low)
    return raised if high is None else call("tf.minimum", raised, high)


@keras_op("Mod")
def unsigned_modulo(x: Tensor, y: Tensor, *, fmod: int) -> Expr:
    """Without signs both kinds of remainder are one."""
    _only(x)
    return call("tf.math.floormod", x, y)


@keras_op("Where")
def unsigned_where(condition: Tensor, x: Tensor, y: Tensor) -> Expr:
    _only(x)
    return call("tf.where", condition, x, y)
