"""Indexing by positions that count along whole axes: it reads the tensor as it is.

Libraries build attention masks out of functions of positions: with an arange for the batch and one for the keys,
`mask[batch, key]` is the mask with axes of length 1 between its own, and `query >= 0` is always true.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from porter.converters.graph.canonical import constant_of, new_constant
from porter.converters.graph.nesting import graphs


class Counting(NamedTuple):
    """An index that counts from 0 in steps of 1 along one axis, and is the same along all others.

    `limit` is the number that it counts to, where that is computed.
    """

    axis: int
    length: int | str
    limit: ir.Value | None = None


_INTEGERS = ir.TensorType(ir.DataType.INT64)


def restore(model: ir.Model) -> None:
    """Rewrite the graph in place, so that positions appear only where they decide on something."""
    for graph in graphs(model.graph):
        for node in list(graph):
            if node.op_type == "GatherND" and not node.attributes.get_int("batch_dims", 0):
                _read_in_order(model.graph, node)
            elif node.op_type == "And":
                _always_true(model.graph, node)
            elif node.op_type == "Attention" and len(node.inputs) > 3:
                _not_expanded(node)


def _read_in_order(main: ir.Graph, node: ir.Node) -> None:
    """Every element where it was: axes may end earlier, and axes of length 1 are new."""
    source, grid = node.inputs[0], node.inputs[1]
    counted, lengths = [each for each in _columns(grid) if each is not None], _lengths(grid)
    if source is None or not counted or lengths is None or len(counted) != lengths[-1]:
        return
    axes, sizes, read = [each.axis for each in counted], lengths[:-1], _lengths(source)
    new = [axis for axis in range(len(sizes)) if axis not in axes]
    spread = any(sizes[axis] != 1 for axis in new) or any(sizes[each.axis] != each.length for each in counted)
    if read is None or axes != sorted(set(axes)) or spread:
        return
    for axis, each in enumerate(counted):
        if each.length != read[axis]:
            source = _cut(main, node, source, axis, each)
    _replace_by(node, "Unsqueeze", source, new_constant(main, np.asarray(new, np.int64)) if new else None)


def _cut(main: ir.Graph, node: ir.Node, value: ir.Value, axis: int, counted: Counting) -> ir.Value:
    """The part of an axis that is read: not known to be all of it."""
    first, at, step = (new_constant(main, np.asarray([number], np.int64)) for number in (0, axis, 1))
    if counted.limit is None:
        end = new_constant(main, np.asarray([counted.length], np.int64))
    else:
        end = _before(node, "Unsqueeze", [counted.limit, first], _INTEGERS, [1])
    sizes = [counted.length if other == axis else size for other, size in enumerate(value.shape)]
    return _before(node, "Slice", [value, first, end, at, step], value.type, sizes)


def _columns(grid: ir.Value | None) -> list[Counting | None]:
    """What each column of an index counts along: the last axis of it is one position for each axis that is read."""
    array = constant_of(grid)
    if array is not None:
        return [_counting_array(array[..., column]) for column in range(array.shape[-1])] if array.ndim > 1 else []
    stack = grid.producer() if grid is not None else None
    if stack is None or stack.op_type != "Concat" or stack.attributes["axis"].as_int() not in (-1, len(grid.shape) - 1):
        return []
    columns = [value.producer() for value in stack.inputs if value is not None]
    if any(column is None or column.op_type != "Unsqueeze" or not _last(column) for column in columns):
        return []
    return [counting(column.inputs[0]) for column in columns]


def _last(unsqueeze: ir.Node) -> bool:
    axes, out = constant_of(unsqueeze.inputs[1]), unsqueeze.outputs[0]
    return axes is not None and axes.reshape(-1).tolist() in ([-1], [len(out.shape) - 1])


def counting(value: ir.Value | None) -> Counting | None:
    """What an integer tensor counts along, or None when it is anything but counting."""
    array = constant_of(value)
    if array is not None:
        return _counting_array(array)
    node = value.producer() if value is not None else None
    if node is None or value is None or value.shape is None:
        return None
    match node.op_type:
        case "Range":
            start, step, lengths = constant_of(node.inputs[0]), constant_of(node.inputs[2]), _lengths(value)
            from_zero = start is not None and start.item() == 0 and step is not None and step.item() == 1
            return Counting(0, lengths[0], node.inputs[1]) if from_zero and lengths is not None else None
        case "Cast" if value.dtype in (ir.DataType.INT64, ir.DataType.INT32):
            return counting(node.inputs[0])
        case "Expand":
            inner = counting(node.inputs[0])
            return inner and inner._replace(axis=inner.axis + len(value.shape) - len(node.inputs[0].shape))
        case "Reshape":
            inner, sizes = counting(node.inputs[0]), _lengths(value)
            alone = inner is not None and sizes is not None and [size for size in sizes if size != 1] == [inner.length]
            return inner._replace(axis=sizes.index(inner.length)) if alone else None
        case "Unsqueeze":
            inner, axes = counting(node.inputs[0]), constant_of(node.inputs[1])
            if inner is None or axes is None:
                return None
            new = {int(axis) % len(value.shape) for axis in axes.reshape(-1)}
            return inner._replace(axis=[axis for axis in range(len(value.shape)) if axis not in new][inner.axis])
    return None


def _counting_array(array: np.ndarray) -> Counting | None:
    """A constant of one element counts along nothing in particular: its axis could be any."""
    if array.dtype.kind != "i" or array.size < 2:
        return None
    for axis, length in enumerate(array.shape):
        steps = np.arange(length).reshape([-1 if other == axis else 1 for other in range(array.ndim)])
        if length > 1 and (array == steps).all():
            return Counting(axis, length)
    return None


def _always_true(main: ir.Graph, node: ir.Node) -> None:
    """`positions >= 0` and a condition: the condition, in the shape that both have together."""
    for true, condition in (node.inputs, reversed(node.inputs)):
        together, own, other = (_lengths(value) for value in (node.outputs[0], condition, true))
        if true is None or condition is None or together is None or own is None or other is None or not _holds(true):
            continue
        shape = None if own == together else _shape(main, node, [(condition, own), (true, other)])
        _replace_by(node, "Expand", condition, shape)
        return


def _holds(value: ir.Value) -> bool:
    """Whether every element is true: a constant, or positions that are compared with the least of them."""
    array = constant_of(value)
    if array is not None:
        return bool(array.all())
    node = value.producer()
    least = constant_of(node.inputs[1]) if node is not None and node.op_type == "GreaterOrEqual" else None
    return least is not None and bool((least <= 0).all()) and counting(node.inputs[0]) is not None


def _shape(main: ir.Graph, node: ir.Node, operands: list[tuple[ir.Value, list[int | str]]]) -> ir.Value:
    """The shape of what `node` gives, each size from the operand that has it."""
    together = _lengths(node.outputs[0])
    parts = []
    for axis, size in enumerate(together):
        if isinstance(size, int):
            parts.append(new_constant(main, np.asarray([size], np.int64)))
            continue
        value, at = next(
            (value, axis - len(together) + len(sizes))
            for value, sizes in operands
            if axis - len(together) + len(sizes) >= 0 and sizes[axis - len(together) + len(sizes)] == size
        )
        parts.append(_before(node, "Shape", [value], _INTEGERS, [1], start=at, end=at + 1))
    return _before(node, "Concat", parts, _INTEGERS, [len(parts)], axis=0)


def _before(
    node: ir.Node, op_type: str, inputs: list[ir.Value], type_: ir.TypeProtocol, sizes: list, **attributes: int
) -> ir.Value:
    name = "_".join([node.name, op_type, inputs[0].name, *map(str, attributes.values())])
    out = ir.Value(name=name, shape=ir.Shape(sizes), type=type_)
    attrs = [ir.AttrInt64(key, number) for key, number in attributes.items()]
    made = ir.Node("", op_type, inputs, attrs, outputs=[out], metadata_props=dict(node.metadata_props))
    node.graph.insert_before(node, made)
    return out


def _not_expanded(attention: ir.Node) -> None:
    """Attention broadcasts its mask by itself."""
    mask = attention.inputs[3]
    maker = mask.producer() if mask is not None else None
    while maker is not None and maker.op_type == "Expand" and len(maker.inputs[0].shape) == len(mask.shape):
        attention.replace_input_with(3, maker.inputs[0])
        mask = attention.inputs[3]
        maker = mask.producer()


def _lengths(value: ir.Value | None) -> list[int | str] | None:
    if value is None or value.shape is None:
        return None
    sizes = [size if isinstance(size, int) else size.value for size in value.shape]
    return None if None in sizes else sizes


def _replace_by(node: ir.Node, op_type: str, operand: ir.Value, how: ir.Value | None) -> None:
    """The operator on `operand` and `how` in place of `node`; the operand itself where there is nothing to do."""
    out = node.outputs[0]
    if how is None:
        if out.is_graph_output():
            return
        ir.convenience.replace_all_uses_with(out, operand)
    else:
        made = ir.Value(name=out.name, shape=out.shape, type=out.type)
        props = dict(node.metadata_props)
        new = ir.Node("", op_type, [operand, how], outputs=[made], name=node.name, metadata_props=props)
        node.graph.insert_before(node, new)
        ir.convenience.replace_all_uses_with(out, made, replace_graph_outputs=True)
        out.name = f"{out.name}_replaced"
    node.graph.remove(node, safe=True)
