"""Layout across the borders of branches and loops: what goes in and out is stored in one order on both sides.

A branch's results keep channels last where any branch has them so, a loop carries its values as its body wants them,
and the axis that a scan runs over becomes the first one of what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from porter.converters.graph.nesting import everywhere, set_outputs, subgraphs
from porter.converters.graph.orders import Order, Stored, identity

if TYPE_CHECKING:
    from porter.converters.graph.layout import LayoutPass

_LOOPS = ("porter::Loop", "Scan")


def _kind(node: ir.Node) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def crossings(graph: ir.Graph) -> dict[ir.Value, list[ir.Value]]:
    """{value: what it is on the other side of a border}, of the same rank: results of branches, values of loops."""
    found: dict[ir.Value, list[ir.Value]] = {}

    def cross(values: Sequence[ir.Value | None], others: Sequence[ir.Value]) -> None:
        for value, other in zip(values, others, strict=False):
            if value is not None:
                found.setdefault(value, []).append(other)

    for node in everywhere(graph):
        bodies = subgraphs(node)
        if _kind(node) == "If":
            for body in bodies.values():
                cross(body.outputs, node.outputs)
        elif _kind(node) in _LOOPS:
            body = bodies["body"]
            first = 1 if _kind(node) == "porter::Loop" else 0
            count = _carried(node)
            cross(node.inputs[first : first + count], body.inputs[first:])
            cross(body.outputs[:count], body.inputs[first:])
            cross(body.outputs[:count], node.outputs)
    return found


def _carried(node: ir.Node) -> int:
    """How many values a loop hands from turn to turn."""
    if _kind(node) == "Scan":
        return len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
    return len(node.inputs) - 1


def place(run: LayoutPass, value: ir.Value, user: ir.Node) -> ir.Node:
    """Before which node `value` is converted for `user`: outside of the loops that it comes into."""
    node = user
    while node.graph is not run.home.get(value) and node.graph in run.owners:
        owner = run.owners[node.graph]
        if _kind(owner) in _LOOPS:
            user = owner
        node = owner
    return user


def branches(run: LayoutPass, node: ir.Node) -> bool:
    """`If`: its results are stored channels last where a branch has made them so."""
    run.fixed(node)
    bodies = list(subgraphs(node).values())
    for body in bodies:
        run.visit(body)
    for index, out in enumerate(node.outputs):
        ends = [run.at(body.outputs[index]) for body in bodies]
        rank = run.rank(out)
        same = all(len(end.order) == rank for end in ends)
        met = next((end for end in ends if end.native and end.order != identity(rank)), None)
        for body in bodies:
            _end(run, body, index, met.order if same and met is not None else None)
        if same and met is not None:
            run.set(out, met.order, native=True)
    return True


def _end(run: LayoutPass, body: ir.Graph, index: int, order: Order | None) -> None:
    """The output of a body stored in `order`, the source's own if that is None."""
    value = body.outputs[index]
    stored = run.at(value)
    wanted = identity(len(stored.order)) if order is None else order
    made = run.want(value, wanted, value.producer())
    if made is not value:
        values = list(body.outputs)
        values[index] = made
        set_outputs(body, values)
        run.adopt(body.outputs[index], value, wanted, body)


def _carry(run: LayoutPass, node: ir.Node, position: int, formals: list[ir.Value]) -> tuple[Order, bool]:
    """Bring an initial value into the order in which a loop carries it; that order, and whether it is native."""
    value, rank = node.inputs[position], run.rank(formals[0])
    assert value is not None
    stored = run.at(value)
    order, native = identity(len(stored.order)), False
    if len(stored.order) == rank:
        spatial = run.spatial_order(formals[0]) if run.native and rank >= 3 else None
        if spatial is not None:
            order, native = spatial, True
        elif stored.native:
            order, native = stored.order, True
    node.replace_input_with(position, run.want(value, order, node))
    for formal in formals:
        if run.rank(formal) == len(order):
            run.set(formal, order, native=native)
    return order, native


def loop(run: LayoutPass, node: ir.Node) -> bool:
    """porter's own loop: (number of turns, carried values…); its results are one turn's behind a new first axis."""
    bodies = subgraphs(node)
    body, condition = bodies["body"], bodies.get("condition")
    count = _carried(node)
    carried = [
        _carry(run, node, 1 + i, [body.inputs[1 + i], *([condition.inputs[i]] if condition is not None else [])])
        for i in range(count)
    ]
    run.visit(body)
    if condition is not None:
        run.visit(condition)
        _end(run, condition, 0, None)
    for index, (order, native) in enumerate(carried):
        _leave(run, node, body, index, order, native)
    for index in range(count, len(node.outputs)):
        _stacked(run, node, body, index, 0)
    return True


def _leave(run: LayoutPass, node: ir.Node, body: ir.Graph, index: int, order: Order, native: bool) -> None:
    """A carried value leaves a turn in the order in which it entered."""
    if run.rank(body.outputs[index]) != len(order):
        _end(run, body, index, None)
        return
    _end(run, body, index, order)
    if run.rank(node.outputs[index]) == len(order):
        run.set(node.outputs[index], order, native=native)


def _stacked(run: LayoutPass, node: ir.Node, body: ir.Graph, index: int, axis: int) -> None:
    """What every turn gives, stacked: the new axis is the first one of what is stored, `axis` in the source."""
    stored = run.at(body.outputs[index])
    if run.rank(node.outputs[index]) != len(stored.order) + 1:
        _end(run, body, index, None)
        return
    _end(run, body, index, stored.order)
    run.set(node.outputs[index], _behind(axis, stored.order), native=stored.native)


def _behind(axis: int, order: Order) -> Order:
    """The order of a tensor whose slices along `axis` are stored in `order`, that axis being first."""
    return (axis, *(other + (other >= axis) for other in order))


def scan(run: LayoutPass, node: ir.Node) -> bool:
    """`Scan`: the axes that it runs over become the first ones."""
    body, count = subgraphs(node)["body"], _carried(node)
    total = len(node.inputs) - count
    inputs = _numbers(node, "scan_input_axes", total)
    outputs = _numbers(node, "scan_output_axes", len(node.outputs) - count)
    carried = [_carry(run, node, index, [body.inputs[index]]) for index in range(count)]
    for index, axis in enumerate(inputs, count):
        value, formal = node.inputs[index], body.inputs[index]
        assert value is not None
        stored: Stored = run.at(value)
        rank = len(stored.order)
        axis %= max(rank, 1)
        order, native = identity(rank - 1), False
        spatial = run.spatial_order(formal) if run.native and rank >= 4 else None
        if spatial is not None:
            order, native = spatial, True
        elif stored.native and stored.order[0] == axis:
            order, native = tuple(other - (other > axis) for other in stored.order[1:]), True
        node.replace_input_with(index, run.want(value, _behind(axis, order), node))
        run.set(formal, order, native=native)
    run.visit(body)
    for index, (order, native) in enumerate(carried):
        _leave(run, node, body, index, order, native)
    for index, axis in enumerate(outputs, count):
        _stacked(run, node, body, index, axis % max(run.rank(node.outputs[index]), 1))
    node.attributes["scan_input_axes"] = ir.AttrInt64s("scan_input_axes", [0] * len(inputs))
    node.attributes["scan_output_axes"] = ir.AttrInt64s("scan_output_axes", [0] * len(outputs))
    return True


def _numbers(node: ir.Node, name: str, count: int) -> list[int]:
    attribute = node.attributes.get(name)
    return list(attribute.as_ints()) if attribute is not None else [0] * count
