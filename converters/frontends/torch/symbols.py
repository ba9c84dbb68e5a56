"""Symbolic sizes: torch's `s77` under the name of the input axis that it is, and arithmetic on sizes as nodes."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.dtypes import from_torch
from porter.errors import UnsupportedError


class Names:
    """Readable names for a program's symbols.

    The names of dynamic axes that were given, `batch` for a leading axis, else `<input>_dim<axis>`.
    """

    def __init__(self, program: ExportedProgram, given: dict[str, dict[int, str]]) -> None:
        self._names: dict[sympy.Symbol, sympy.Symbol] = {}
        self._cache: dict[Any, int | str] = {}
        users = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
        nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        for name in users:
            value = nodes[name].meta.get("val") if name in nodes else None
            if isinstance(value, torch.Tensor):
                for axis, size in enumerate(value.shape):
                    self._learn(name, axis, size, given.get(name, {}))

    def _learn(self, name: str, axis: int, size: Any, given: dict[int, str]) -> None:
        if isinstance(size, int):
            return
        expression = size.node.expr
        if isinstance(expression, sympy.Symbol) and expression not in self._names:
            label = given.get(axis) or ("batch" if axis == 0 else f"{name}_dim{axis}")
            label = re.sub(r"\W", "_", label)
            taken = {str(symbol) for symbol in self._names.values()}
            while label in taken or not label.isidentifier():
                label = (
                    f"{name}_{label}"
                    if label.isidentifier() and f"{name}_{label}" not in taken
                    else f"size_{axis}_{len(taken)}"
                )
            self._names[expression] = sympy.Symbol(label, integer=True, positive=True)

    def size(self, size: Any) -> int | str:
        """An int, or a Python expression over the symbols' names."""
        if isinstance(size, int):
            return size
        expression = size.node.expr
        if expression not in self._cache:
            renamed = _simplified(expression.xreplace(self._names))
            if renamed.is_Integer:
                self._cache[expression] = int(renamed)
            else:
                self._cache[expression] = ast.unparse(ast.parse(str(renamed), mode="eval"))
        return self._cache[expression]

    def shape(self, tensor: torch.Tensor) -> list[int | str]:
        """A fake tensor's shape, a complex one's with its last axis (real, imaginary)."""
        return [*(self.size(size) for size in tensor.shape), *([2] if tensor.is_complex() else [])]

    def input_value(self, node: torch.fx.Node) -> ir.Value:
        """A graph input as the model takes it."""
        tensor = node.meta["val"]
        if not isinstance(tensor, torch.Tensor):
            raise UnsupportedError(
                f"the input {node.name!r} is a {type(tensor).__name__}; a port takes tensors, so fix that argument"
            )
        if tensor.is_complex():
            raise UnsupportedError(
                f"the input {node.name!r} is complex; take real numbers (…, 2) and apply torch.view_as_complex to them"
            )
        return ir.Value(
            name=node.name, shape=ir.Shape(self.shape(tensor)), type=ir.TensorType(from_torch(tensor.dtype))
        )


def compute(op: Builder, node: torch.fx.Node, names: Names, args: list[Any]) -> ir.Value:
    """The scalar value of an fx node that computes with sizes, or reads a number out of a tensor."""
    meta = node.meta["val"]
    if getattr(node.target, "_opname", "") in ("item", "_local_scalar_dense"):
        return _item(op, args[0], names.size(meta))
    if isinstance(meta, torch.SymInt):
        size = names.size(meta)
        return op.constant(size, ir.DataType.INT64) if isinstance(size, int) else op.size(size)
    table = _FLOATS if isinstance(meta, torch.SymFloat) else _TESTS
    if node.target not in table:
        raise UnsupportedError(f"{node.name}: no translation for {node.target} on sizes")
    whole = all(arg.dtype == ir.DataType.INT64 if isinstance(arg, ir.Value) else isinstance(arg, int) for arg in args)
    dtype = ir.DataType.INT64 if whole and table is _TESTS else ir.DataType.DOUBLE
    value = table[node.target](op, *(_number(op, argument, dtype) for argument in args))
    value.shape = ir.Shape([])
    return value


def _item(op: Builder, tensor: ir.Value, size: int | str) -> ir.Value:
    """The only element of a tensor; a whole number may serve as a size from here on."""
    value = op.Reshape(tensor, np.zeros(0, dtype=np.int64))
    if tensor.dtype is not None and tensor.dtype.is_integer():
        value = op.cast(value, ir.DataType.INT64)
        op.origins[str(size)] = (value, None)
    value.shape = ir.Shape([])
    return value


def _simplified(expression: sympy.Expr) -> sympy.Expr:
    """(a·b + b - 1) // b is a: the number of steps of b in a·b, as `arange` counts them."""
    from torch.utils._sympy.functions import FloorDiv

    def divide(above: sympy.Expr, below: sympy.Expr) -> sympy.Expr:
        quotient = sympy.expand((above - below + 1) / below)
        return quotient if sympy.denom(sympy.together(quotient)) == 1 else FloorDiv(above, below)

    return expression.replace(FloorDiv, divide)


_FLOATS: dict[Any, Callable[..., ir.Value]] = {
    torch.sym_float: lambda op, x: x,
    operator.truediv: lambda op, x, y: op.Div(x, y),
    operator.mul: lambda op, x, y: op.Mul(x, y),
    operator.add: lambda op, x, y: op.Add(x, y),
    operator.sub: lambda op, x, y: op.Sub(x, y),
    operator.pow: lambda op, x, y: op.Pow(x, y),
    torch._sym_sqrt: lambda op, x: op.Sqrt(x),
}


_TESTS: dict[Any, Callable[..., ir.Value]] = {
    operator.gt: lambda op, x, y: op.Greater(x, y),
    operator.ge: lambda op, x, y: op.GreaterOrEqual(x, y),
    operator.lt: lambda op, x, y: op.Less(x, y),
    operator.le: lambda op, x, y: op.LessOrEqual(x, y),
    operator.eq: lambda op, x, y: op.Equal(x, y),
    operator.ne: lambda op, x, y: op.Not(op.Equal(x, y)),
}


def _number(op: Builder, value: Any, dtype: ir.DataType) -> ir.Value:
    return op.cast(value, dtype) if isinstance(value, ir.Value) else op.constant(value, dtype)
