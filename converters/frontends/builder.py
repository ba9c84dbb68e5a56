"""Builds the ONNX nodes of one ATen node: `op.Conv(x, w, strides=[2, 2])` as in the standard's own notation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from porter.converters.frontends.sizes import size_nodes
from porter.converters.opset import EXACT, KIND, OPSET, SIZE

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
        self.dtypes: list[ir.DataType] = []  # of all its outputs
        self.complex: list[Any] = []  # for each argument, whether it is complex (for a list, item by item)
        self.origins: dict[str, tuple[ir.Value, int | None]] = {}  # symbol -> value and the axis it is the size of
        self._sizes: dict[str, ir.Value] = {}
        self._taken: set[str] = set()
        self._constants: dict[tuple, ir.Value] = {}

    def __getattr__(self, op_type: str) -> Any:
        if not op_type[0].isupper():
            raise AttributeError(op_type)

        def make(
            *inputs: Operand, outputs: int = 1, domain: str = "", facts: dict[str, str] | None = None, **attributes: Any
        ) -> Any:
            values = [self.value(operand) for operand in inputs]
            while values and values[-1] is None:
                values.pop()
            attrs = [
                ir.convenience.convert_attribute(key, value) for key, value in attributes.items() if value is not None
            ]
            node = ir.Node(
                domain,
                op_type,
                values,
                attrs,
                outputs=[ir.Value(name=self.fresh()) for _ in range(outputs)],
                metadata_props={**self.metadata, **(facts or {})},
            )
            if domain and outputs == len(self.shapes):  # no schema knows it: it makes what the ATen node makes
                for output, dtype, shape in zip(node.outputs, self.dtypes, self.shapes, strict=True):
                    output.dtype, output.shape = dtype, ir.Shape(shape)
            elif not domain:
                _infer_dtypes(node)
            self.nodes.append(node)
            return node.outputs[0] if outputs == 1 else tuple(node.outputs)

        return make

    # ---- names ----

    def reserve(self, names: Iterable[str]) -> None:
        """Names that `fresh` must not hand out."""
        self._taken.update(names)

    def fresh(self) -> str:
        """A new name after the node being translated."""
        count = 1
        while f"{self.prefix}_{count}" in self._taken:
            count += 1
        self._taken.add(f"{self.prefix}_{count}")
        return f"{self.prefix}_{count}"

    # ---- constants ----

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

    def tensor(self, array: np.ndarray | ir.TensorProtocol, exact: float | None = None) -> ir.Value:
        """A constant; small equal ones are shared. `exact` is the author's number, where rounding changed it."""
        tensor = ir.tensor(array) if isinstance(array, np.ndarray) else array
        key = None
        if tensor.size <= 64:
            key = (tensor.dtype, tuple(tensor.shape), tensor.tobytes(), exact)
            if key in self._constants:
                return self._constants[key]
        count = len(self.initializers)
        while (name := f"constant_{count}") in self._taken or name in self.initializers:
            count += 1
        value = ir.Value(name=name, shape=ir.Shape(tensor.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
        value.metadata_props[KIND] = "constant"
        if exact is not None:
            value.metadata_props[EXACT] = repr(exact)
        self.initializers[name] = value
        if key is not None:
            self._constants[key] = value
        return value

    def constant(self, number: Any, dtype: ir.DataType | ir.Value) -> ir.Value:
        """A scalar (or small array) constant of `dtype`, or of the dtype that a value has."""
        kind = dtype.dtype if isinstance(dtype, ir.Value) else dtype
        assert kind is not None
        array = np.asarray(number).astype(kind.numpy())
        rounded = (
            isinstance(number, float) and np.isfinite(number) and kind.is_floating_point() and float(array) != number
        )
        return self.tensor(array, number if rounded else None)

    # ---- sizes ----

    def vector(self, sizes: Sequence[int | ir.Value]) -> ir.Value:
        """A 1-D int64 tensor from sizes, each a number or a scalar value."""
        parts: list[ir.Value] = []
        run: list[int] = []
        for size in sizes:
            if isinstance(size, ir.Value):
                if run:
                    parts.append(self.tensor(np.asarray(run, dtype=np.int64)))
                    run = []
                parts.append(self.Unsqueeze(self.cast(size, ir.DataType.INT64), [0]))
            else:
                run.append(size)
        if run or not parts:
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
        """A symbolic size as a scalar value, computed from the inputs' shapes."""
        if expression not in self._sizes:
            value = size_nodes(self, expression)
            value.dtype, value.shape = ir.DataType.INT64, ir.Shape([])
            value.metadata_props[SIZE] = expression
            self._sizes[expression] = value
        return self._sizes[expression]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is learned of sizes here is forgotten afterwards, and the metadata are as before."""
        sizes, origins, metadata = dict(self._sizes), dict(self.origins), self.metadata
        try:
            yield
        finally:
            self._sizes, self.origins, self.metadata = sizes, origins, metadata

    @contextmanager
    def inside(self) -> Iterator[list[ir.Node]]:
        """A body of nodes of its own; what is computed in it is not seen outside. Gives its list of nodes."""
        nodes = self.nodes
        self.nodes = []
        try:
            with self.apart():
                yield self.nodes
        finally:
            self.nodes = nodes

    def is_size(self, name: str, value: ir.Value) -> None:
        """A scalar is the size that is called `name` from now on."""
        self.origins[name] = (value, None)
        self._sizes = {text: size for text, size in self._sizes.items() if not re.search(rf"\b{name}\b", text)}

    # ---- types ----

    def cast(self, value: ir.Value, dtype: ir.DataType | None) -> ir.Value:
        """The value in `dtype`; nothing is added when it has it already."""
        if dtype is None or value.dtype == dtype:
            return value
        result = self.Cast(value, to=int(dtype))
        result.dtype = dtype
        result.shape = value.shape
        return result


@cache
def _output_kinds(op_type: str) -> tuple[list[str], list[str], dict[str, set[str]]]:
    """Type variables of an operator's inputs and outputs, and the types that each may be."""
    schema = onnx.defs.get_schema(op_type, OPSET, "")
    constraints = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    return [i.type_str for i in schema.inputs], [o.type_str for o in schema.outputs], constraints


def _infer_dtypes(node: ir.Node) -> None:
    """Output dtypes as the operator's schema ties them to those of its inputs."""
    inputs, outputs, constraints = _output_kinds(node.op_type)
    known: dict[str, ir.DataType] = {}
    for position, value in enumerate(node.inputs):
        if value is not None and value.dtype is not None:
            known.setdefault(inputs[min(position, len(inputs) - 1)], value.dtype)
    for position, output in enumerate(node.outputs):
        kind = outputs[min(position, len(outputs) - 1)]
        named = node.attributes.get("to") or node.attributes.get("dtype")
        if named is not None:
            output.dtype = ir.DataType(named.as_int())
        elif kind in known:
            output.dtype = known[kind]
        else:
            allowed = constraints.get(kind, {kind})
            if len(allowed) == 1:
                output.dtype = ir.DataType[next(iter(allowed)).removeprefix("tensor(").removesuffix(")").upper()]
