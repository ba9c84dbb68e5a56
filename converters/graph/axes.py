"""How an operator stands to a permutation of axes, as its rule declares it, and how its attributes follow one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import onnx_ir as ir

from porter.converters.graph.canonical import constant_of

Kind = Literal["any", "axes", "spatial", "fixed"]


@dataclass(frozen=True)
class Stance:
    """`axes` name attributes or constant inputs that number axes; `vectors` those that hold one entry per axis.

    `data` are the positions of the inputs that have the axes; all others are left alone. None means every input.
    """

    kind: Kind
    axes: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    data: tuple[int, ...] | None = (0,)

    def operands(self, node: ir.Node) -> tuple[int, ...]:
        """Positions of the inputs that are permuted."""
        if self.data is None:
            return tuple(range(len(node.inputs)))
        return tuple(position for position in self.data if position < len(node.inputs))

    def _constant(self, node: ir.Node, name: str) -> tuple[int, np.ndarray | None] | None:
        position = _input_position(node, name)
        if position is None or position >= len(node.inputs) or node.inputs[position] is None:
            return None
        return position, constant_of(node.inputs[position])

    def can_follow(self, node: ir.Node) -> bool:
        """Whether everything that numbers axes is known now."""
        found = [self._constant(node, name) for name in (*self.axes, *self.vectors) if name not in node.attributes]
        return all(item is None or item[1] is not None for item in found)

    def follow(self, node: ir.Node, order: tuple[int, ...], constant: Callable[[np.ndarray], ir.Value]) -> None:
        """Renumber the node's axes for data stored in `order`."""
        rank = len(order)
        for name in self.axes:
            if name in node.attributes:
                attr = node.attributes[name]
                if attr.type == ir.AttributeType.INT:
                    node.attributes[name] = ir.AttrInt64(name, order.index(attr.as_int() % rank))
                else:
                    node.attributes[name] = ir.AttrInt64s(name, [order.index(axis % rank) for axis in attr.as_ints()])
                continue
            found = self._constant(node, name)
            if found is not None and found[1] is not None:
                position, array = found
                moved = np.vectorize(lambda axis: order.index(int(axis) % rank), otypes=[np.int64])(array)
                node.replace_input_with(position, constant(np.asarray(moved, dtype=np.int64)))
        for name in self.vectors:
            found = self._constant(node, name)
            if found is not None and found[1] is not None:
                position, array = found
                parts = array.reshape(-1, rank)  # pads hold two vectors: begins, then ends
                node.replace_input_with(position, constant(parts[:, list(order)].reshape(-1)))


def _input_position(node: ir.Node, name: str) -> int | None:
    import onnx

    schema = onnx.defs.get_schema(node.op_type, domain=node.domain)
    names = [item.name for item in schema.inputs]
    return names.index(name) if name in names else None
