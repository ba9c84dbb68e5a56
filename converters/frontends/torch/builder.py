"""Builds the ONNX nodes of one ATen node: `op.Conv(x, w, strides=[2, 2])` as in the standard's own notation."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.opset import KIND, SIZE
from porter.errors import UnsupportedError

_ARITHMETIC = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.FloorDiv: "Div", ast.Mod: "Mod"}

Operand = ir.Value | int | float | bool | Sequence | np.ndarray | None


class Builder:
    """Collects nodes and constants; the driver says which node is being translated and stamps its metadata."""

    def __init__(self) -> None:
        self.nodes: list[ir.Node] = []
        self.initializers: dict[str, ir.Value] = {}
        self.prefix = "value"
        self.metadata: dict[str, str] = {}
        self.dtype: ir.DataType | None = None  # of the ATen node's (first) output
        self.shape: list[int | str] | None = None
        self.shapes: list[list[int | str]] = []  # of all its outputs
        self.origins: dict[str, tuple[ir.Value, int]] = {}  # symbol -> input and axis that it is the size of
        self._sizes: dict[str, ir.Value] = {}
        self._count = 0
        self._constants: dict[tuple, ir.Value] = {}

    def __getattr__(self, op_type: str) -> Any:
        if not op_type[0].isupper():
            raise AttributeError(op_type)

        def make(*inputs: Operand, outputs: int = 1, domain: str = "", facts: dict[str, str] | None = None, **attributes: Any) -> Any:
            values = [self.value(operand) for operand in inputs]
            while values and values[-1] is None:
                values.pop()
            attrs = [ir.convenience.convert_attribute(key, value) for key, value in attributes.items() if value is not None]
            node = ir.Node(
                domain,
                op_type,
                values,
                attrs,
                outputs=[ir.Value(name=self._fresh()) for _ in range(outputs)],
                metadata_props={**self.metadata, **(facts or {})},
            )
            self.nodes.append(node)
            return node.outputs[0] if outputs == 1 else tuple(node.outputs)

        return make

    def _fresh(self) -> str:
        self._count += 1
        return f"{self.prefix}_{self._count}"

    def value(self, operand: Operand) -> ir.Value | None:
        """An operand as a value: Python lists and ints become int64 constants, floats need `constant`."""
        if operand is None or isinstance(operand, ir.Value):
            return operand
        if isinstance(operand, (list, tuple)) and any(isinstance(item, ir.Value) for item in operand):
            return self.vector(operand)
        array = operand if isinstance(operand, np.ndarray) else np.asarray(operand)
        if array.size == 0 and not isinstance(operand, np.ndarray):
            array = array.astype(np.int64)
        return self.tensor(array)

    def tensor(self, array: np.ndarray | ir.TensorProtocol) -> ir.Value:
        """A constant; small equal ones are shared."""
        tensor = ir.tensor(array) if isinstance(array, np.ndarray) else array
        key = None
        if tensor.size <= 64:
            key = (tensor.dtype, tuple(tensor.shape), tensor.tobytes())
            if key in self._constants:
                return self._constants[key]
        name = f"constant_{len(self.initializers)}"
        value = ir.Value(name=name, shape=ir.Shape(tensor.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
        value.metadata_props[KIND] = "constant"
        self.initializers[name] = value
        if key is not None:
            self._constants[key] = value
        return value

    def constant(self, number: Any, dtype: ir.DataType | ir.Value) -> ir.Value:
        """A scalar (or small array) constant of `dtype`, or of the dtype that a value has."""
        kind = dtype.dtype if isinstance(dtype, ir.Value) else dtype
        assert kind is not None
        return self.tensor(np.asarray(number).astype(kind.numpy()))

    def vector(self, sizes: Sequence[int | ir.Value]) -> ir.Value:
        """A 1-D int64 tensor from sizes, each a number or a scalar value."""
        if all(isinstance(size, int) for size in sizes):
            return self.tensor(np.asarray(sizes, dtype=np.int64))
        parts: list[ir.Value] = []
        run: list[int] = []
        for size in sizes:
            if isinstance(size, ir.Value):
                if run:
                    parts.append(self.tensor(np.asarray(run, dtype=np.int64)))
                    run = []
                parts.append(self.Unsqueeze(size, [0]))
            else:
                run.append(size)
        if run:
            parts.append(self.tensor(np.asarray(run, dtype=np.int64)))
        return parts[0] if len(parts) == 1 else self.Concat(*parts, axis=0)

    def shape_of_output(self) -> ir.Value:
        """The shape of the ATen node's output as a 1-D tensor, sizes taken from values that have them."""
        assert self.shape is not None
        return self.vector([size if isinstance(size, int) else self.size(size) for size in self.shape])

    def output_sizes(self, axis: int) -> list[int | ir.Value]:
        """The sizes of all outputs along one axis."""
        found = [shape[axis] for shape in self.shapes]
        return [size if isinstance(size, int) else self.size(size) for size in found]

    def size(self, expression: str) -> ir.Value:
        """A symbolic size as a scalar value, computed from the inputs' shapes.

        Sizes are never negative, so ONNX's truncating division is Python's floor division.
        """
        if expression not in self._sizes:
            value = self._evaluate(ast.parse(expression, mode="eval").body)
            value.dtype, value.shape = ir.DataType.INT64, ir.Shape([])
            value.metadata_props[SIZE] = expression
            self._sizes[expression] = value
        return self._sizes[expression]

    def _evaluate(self, tree: ast.expr) -> ir.Value:
        match tree:
            case ast.Constant(value=int(number)):
                return self.constant(number, ir.DataType.INT64)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.Neg(self._evaluate(operand))
            case ast.Name(id=name) if name in self.origins:
                source, axis = self.origins[name]
                return self.Squeeze(self.Shape(source, start=axis, end=axis + 1), [0])
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
                return getattr(self, _ARITHMETIC[type(operator)])(self._evaluate(left), self._evaluate(right))
            case ast.Call(func=ast.Name(id=name), args=args) if name in ("Max", "Min"):
                return getattr(self, name)(*(self._evaluate(argument) for argument in args))
        raise UnsupportedError(f"a size that depends on the data, or is no arithmetic on input sizes: {ast.unparse(tree)}")

    def cast(self, value: ir.Value, dtype: ir.DataType | None) -> ir.Value:
        """The value in `dtype`; nothing is added when it has it already."""
        if dtype is None or value.dtype == dtype:
            return value
        result = self.Cast(value, to=int(dtype))
        result.dtype = dtype
        result.shape = value.shape
        return result
