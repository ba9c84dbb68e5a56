"""Shapes inside loops: what a loop carries begins as its initial value and keeps the sizes that no turn changes.

ONNX's own inference says nothing of what a loop carries, since a turn may change it. Here its shape is taken to be the
initial value's; a size that the body changes becomes unknown, until nothing changes any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx_ir as ir

from porter.converters.graph.canonical import infer_shapes
from porter.converters.graph.nesting import everywhere, subgraphs

# Every round gives up at least one size, of which there are few.
_ROUNDS = 40


def infer_inside_loops(model: ir.Model) -> None:
    """Give what loops and scans carry, and what is made of it, shapes and types, where they are not known yet."""
    loops = [node for node in everywhere(model.graph) if node.op_type in ("Loop", "Scan") and not node.domain]
    if all(value.shape is not None and value.dtype is not None for node in loops for value in _formals(node)):
        return
    made = [out for loop in loops for inner in everywhere(subgraphs(loop)["body"]) for out in inner.outputs]
    inferred = [value for value in made if value.shape is None]
    for _ in range(_ROUNDS):
        begun = [_begin(formal, initial) for node in loops for formal, initial in _begins(node)]
        for value in inferred:
            value.shape = None
        infer_shapes(model)
        changed = [_meet(formal, result) for node in loops for formal, result in _turns(node)]
        if not any(begun) and not any(changed):
            return


def _formals(node: ir.Node) -> list[ir.Value]:
    return list(subgraphs(node)["body"].inputs)


def _carried(node: ir.Node) -> int:
    if node.op_type == "Scan":
        return len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
    return len(node.inputs) - 2


def _begins(node: ir.Node) -> Iterator[tuple[ir.Value, tuple[ir.DataType | None, list | None]]]:
    """(what a body takes, type and shape of what it is in the first turn)."""
    formals, count = _formals(node), _carried(node)
    if node.op_type == "Loop":
        yield formals[0], (ir.DataType.INT64, [])
        yield formals[1], (ir.DataType.BOOL, [])
        formals = formals[2:]
    initial = node.inputs[-len(formals) :] if formals else ()
    axes = node.attributes.get("scan_input_axes")
    for index, (formal, value) in enumerate(zip(formals, initial, strict=True)):
        if value is None or value.shape is None or isinstance(value.type, ir.SequenceType):
            continue
        sizes = list(value.shape)
        if index >= count:
            axis = axes.as_ints()[index - count] if axes is not None else 0
            del sizes[axis]
        yield formal, (value.dtype, sizes)


def _begin(formal: ir.Value, kind: tuple[ir.DataType | None, list | None]) -> bool:
    dtype, sizes = kind
    if formal.shape is not None and formal.dtype is not None:
        return False
    if formal.dtype is None:
        formal.dtype = dtype
    if formal.shape is None:
        formal.shape = ir.Shape(sizes)
    return True


def _turns(node: ir.Node) -> Iterator[tuple[ir.Value, ir.Value]]:
    """(what a body takes, what it hands on for it)."""
    body, count = subgraphs(node)["body"], _carried(node)
    first = 2 if node.op_type == "Loop" else 0
    yield from zip(body.inputs[first : first + count], body.outputs[first // 2 : first // 2 + count], strict=True)


def _meet(formal: ir.Value, result: ir.Value) -> bool:
    """Forget the sizes of `formal` that a turn changes; whether there were any."""
    if formal.shape is None or result.shape is None or len(formal.shape) != len(result.shape):
        return False
    unknown = re.sub(r"\W", "_", f"{formal.name}_size")
    sizes = [
        old if old == new or str(getattr(old, "value", old)).startswith(unknown) else f"{unknown}{axis}"
        for axis, (old, new) in enumerate(zip(formal.shape, result.shape, strict=True))
    ]
    changed = sizes != list(formal.shape)
    formal.shape = ir.Shape(sizes)
    return changed
