"""Arithmetic on symbolic sizes, written as Python expressions, as ONNX nodes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from porter.converters.symbols import quotient
from porter.errors import UnsupportedError

if TYPE_CHECKING:
    from porter.converters.frontends.builder import Builder

_ARITHMETIC = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul"}
_HIGHEST_POWER = 4


def size_nodes(op: Builder, expression: str) -> ir.Value:
    """The scalar that `expression` is, from the sizes that the builder's `origins` name.

    Raises:
        UnsupportedError: for a size that depends on the data, or arithmetic without a counterpart.
    """
    return _evaluate(op, ast.parse(expression, mode="eval").body)


def _evaluate(op: Builder, tree: ast.expr) -> ir.Value:
    match tree:
        case ast.Constant(value=int(number)):
            return op.constant(number, ir.DataType.INT64)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return op.Neg(_evaluate(op, operand))
        case ast.Name(id=name) if name in op.origins:
            source, axis = op.origins[name]
            if axis is None:
                return source
            return op.Squeeze(op.Shape(source, start=axis, end=axis + 1), [0])
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if 0 < power <= _HIGHEST_POWER:
            base = value = _evaluate(op, left)
            for _ in range(power - 1):
                value = op.Mul(value, base)
            return value
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            return getattr(op, _ARITHMETIC[type(operator)])(_evaluate(op, left), _evaluate(op, right))
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return _floor_division(op, left, right)
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return op.Mod(_evaluate(op, left), _evaluate(op, right))
        case ast.Call(func=ast.Name(id="FloorDiv" | "CleanDiv"), args=[left, right]):
            return _floor_division(op, left, right)
        case ast.Call(func=ast.Name(id="Mod" | "PythonMod"), args=[left, right]):
            return op.Mod(_evaluate(op, left), _evaluate(op, right))
        case ast.Call(func=ast.Name(id="Max" | "Min" as name), args=args):
            return getattr(op, name)(*(_evaluate(op, argument) for argument in args))
        case ast.Call(func=ast.Name(id="CeilToInt"), args=[tree]) if (parts := quotient(tree)) is not None:
            dividend, divisor = (_evaluate(op, part) for part in parts)
            return op.Neg(_floored(op, op.Neg(dividend), divisor))
        case ast.Call(func=ast.Name(id="FloorToInt" | "TruncToInt"), args=[tree]) if parts := quotient(tree):
            return _floor_division(op, *parts)
    raise UnsupportedError(
        f"a size that depends on the data, or is no arithmetic on input sizes: {ast.unparse(tree)}; "
        "fixed sizes (--static) may help"
    )


def _floor_division(op: Builder, left: ast.expr, right: ast.expr) -> ir.Value:
    """Sizes are never negative, so truncation is flooring, unless something was subtracted."""
    signed = any(isinstance(part, ast.USub | ast.Sub) for part in ast.walk(left))
    a, b = _evaluate(op, left), _evaluate(op, right)
    return _floored(op, a, b) if signed else op.Div(a, b)


def _floored(op: Builder, a: Any, b: Any) -> ir.Value:
    return op.Div(op.Sub(a, op.Mod(a, b)), b)
