"""The builder of ONNX nodes, which also follows the shape of all that it makes, and small integers by their content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder as Plain
from porter.converters.frontends.evaluate import evaluate_node
from porter.converters.frontends.tensorflow import layer_shapes, shapes
from porter.converters.frontends.tensorflow.dims import Dim, canonical
from porter.converters.graph.sizes import follow
from porter.errors import UnsupportedError

# Constants larger than this are not computed while translating.
_FOLDED = 1 << 16
assert layer_shapes  # importing it registers its rules


class Builder(Plain):
    """Makes nodes; `contents` holds the elements of small integer tensors as numbers and sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.contents: dict[ir.Value, tuple[Dim, ...]] = {}

    def __getattr__(self, op_type: str) -> Any:
        make = super().__getattr__(op_type)

        def made(*inputs: Any, **settings: Any) -> Any:
            results = make(*inputs, **settings)
            self.observe(self.nodes[-1])
            return results

        return made

    def tensor(self, array: Any, exact: float | None = None) -> ir.Value:
        """A constant, whose content is known where it is small."""
        value = super().tensor(array, exact)
        small = value.dtype.is_integer() and len(value.shape) <= 1 and value.const_value.size <= 64
        if small and value not in self.contents:
            self.contents[value] = tuple(int(item) for item in value.const_value.numpy().reshape(-1))
        return value

    def observe(self, node: ir.Node) -> None:
        """Note the shapes of what a node makes, and its content."""
        if not any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
            shapes.infer(node, self.contents)
            for value, content in zip(node.outputs, follow(node, self.contents), strict=False):
                if content is not None and value.dtype is not None and value.dtype.is_integer():
                    self.contents[value] = tuple(canonical(size) for size in content)

    # ---- what must be known ----

    def content(self, value: ir.Value) -> list[Dim] | None:
        """The elements of a small integer tensor, where all are numbers or sizes of the inputs."""
        found = self.contents.get(value)
        if found is not None:
            return list(found)
        array = self.array(value)
        if array is not None and array.dtype.kind in "iu" and array.ndim <= 1:
            return [int(item) for item in array.reshape(-1)]
        return None

    def array(self, value: ir.Value) -> np.ndarray | None:
        """The numbers of a tensor that no input reaches; None for a variable and for what is computed."""
        if value.const_value is not None:
            return value.const_value.numpy() if value.metadata_props.get("porter.kind") == "constant" else None
        found = self.contents.get(value)
        if found is not None and all(isinstance(item, int) for item in found):
            shape = [size for size in value.shape or [len(found)] if isinstance(size, int)]
            return np.asarray(found, dtype=value.dtype.numpy()).reshape(shape)
        node = value.producer()
        if node is None or node.domain or not node.inputs or node.op_type.startswith("Random"):
            return None
        if any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
            return None
        operands = []
        for operand in node.inputs:
            array = None if operand is None else self.array(operand)
            if operand is not None and (array is None or array.size > _FOLDED):
                return None
            operands.append(array)
        result = evaluate_node(node, operands)[value.index()]
        return np.asarray(result).astype(value.dtype.numpy())

    def static(self, value: ir.Value, what: str) -> np.ndarray:
        """The numbers of an operand that must be known.

        Raises:
            UnsupportedError: it is computed while the model runs.
        """
        array = self.array(value)
        if array is None:
            raise UnsupportedError(f"its {what} is computed while the model runs; a port needs it fixed")
        return array

    def ints(self, value: ir.Value, what: str) -> list[int]:
        """Whole numbers that must be known."""
        return [int(item) for item in self.static(value, what).reshape(-1)]

    def number(self, value: ir.Value, what: str) -> int:
        """One whole number that must be known."""
        return self.ints(value, what)[0]

    # ---- sizes ----

    def sizes(self, value: ir.Value) -> ir.Value:
        """A vector of sizes as int64, made of numbers and input sizes where they are known."""
        content = self.content(value)
        if content is None:
            return self.cast(value, ir.DataType.INT64)
        return self.dims(content)

    def dims(self, content: Sequence[Dim | ir.Value]) -> ir.Value:
        """A vector of sizes, each a number, an expression or a scalar."""
        return self.vector([self.size(item) if isinstance(item, str) else item for item in content])

    def rank(self, value: ir.Value) -> int:
        """The number of axes.

        Raises:
            UnsupportedError: it is not known.
        """
        if value.shape is None:
            raise UnsupportedError(f"the number of axes of {value.name} is not known; fix it in the signature")
        return len(value.shape)

    def shape_of(self, value: ir.Value) -> list[Dim | None]:
        """The sizes of a value; None where one is not known."""
        self.rank(value)
        return shapes.sizes_of(value)

    def axis(self, axis: int, value: ir.Value) -> int:
        """An axis counted from the front."""
        return axis % max(self.rank(value), 1)

    def like(self, number: Any, value: ir.Value) -> ir.Value:
        """A constant of a value's type."""
        return self.constant(number, value)

    def permute(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """The value with its axes in another order; nothing is added where it is the same, or was so before."""
        order = list(order)
        if order == sorted(order):
            return value
        before = value.producer()
        if before is not None and before.op_type == "Transpose":
            first = before.attributes["perm"].as_ints()
            if [first[axis] for axis in order] == sorted(order):
                return before.inputs[0]
        return self.Transpose(value, perm=order)
