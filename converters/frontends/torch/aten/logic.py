"""Comparisons, logic, choices."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten

Value = ir.Value


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
