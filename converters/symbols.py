"""Symbolic sizes as torch and Python write them."""

from __future__ import annotations

import ast


def quotient(tree: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """(dividend, divisor) of an exact division, as torch writes it or Python; None for anything else."""
    match tree:
        case ast.Call(func=ast.Name(id="IntTrueDiv"), args=[left, right]):
            return left, right
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return left, right
    return None
