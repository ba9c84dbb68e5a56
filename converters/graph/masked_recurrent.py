"""Recurrent nodes over masked steps, restored from the arithmetic by which ONNX says it.

A masked step leaves the state as it is and repeats the last output, or gives zeros. In ONNX the steps that count are
moved to the front, a node with their number runs over them, and every step reads the output of the last that counted.
Such a GeneralLSTM, GeneralGRU or GeneralRNN becomes a `porter::MaskedLSTM`, GRU or RNN:

    inputs    x, w, r, b, mask (batch, time), nothing, then the states
    outputs   sequence, states
    zeros     1 if masked steps give zeros
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from porter.converters.graph.canonical import constant_of
from porter.converters.graph.nesting import graphs
from porter.converters.graph.recurrent import is_zero
from porter.converters.graph.recurrent_modules import DOMAIN, copy_place


@dataclass
class _Masked:
    """What was found: the sequence and the steps (time, batch) that count, and what every step reads."""

    x: ir.Value
    steps: ir.Value
    read: ir.Value
    zeros: bool


def restore_masks(model: ir.Model) -> None:
    """Rewrite every recurrent node whose lengths come from a mask, in place."""
    for graph in list(graphs(model.graph)):
        for node in list(graph):
            found = _find(node)
            if found is not None:
                _rewrite(graph, node, found)


def _rewrite(graph: ir.Graph, node: ir.Node, found: _Masked) -> None:
    steps, read, old = found.steps, found.read, node.outputs[0]
    assert steps.shape is not None
    mask = ir.Value(name=f"{node.name}_mask", type=steps.type, shape=ir.Shape([steps.shape[1], steps.shape[0]]))
    turned = ir.Node(
        "", "Transpose", [steps], [ir.AttrInt64s("perm", [1, 0])], outputs=[mask], name=f"{node.name}_mask"
    )
    inputs = [found.x, *node.inputs[1:4], mask, None, *node.inputs[6:]]
    outputs = [ir.Value(name=v.name, type=v.type, shape=v.shape) for v in node.outputs]
    for value in node.outputs:
        value.name = f"{value.name}_unmasked"
    kept = [*node.attributes.values(), ir.AttrInt64("zeros", int(found.zeros))]
    kind = node.op_type.replace("General", "Masked")
    new = ir.Node(DOMAIN, kind, inputs, kept, outputs=outputs, name=f"{node.name}_masked")
    for each in (turned, new):
        copy_place(node, each)
    graph.insert_before(node, [turned, new])
    if read.is_graph_output():
        outputs[0].name, read.name = read.name, f"{read.name}_read"
    ir.convenience.replace_all_uses_with(read, outputs[0], replace_graph_outputs=True)
    for before, after in zip(node.outputs[1:], outputs[1:], strict=True):
        ir.convenience.replace_all_uses_with(before, after, replace_graph_outputs=True)
    assert not old.is_graph_output()


def _find(node: ir.Node) -> _Masked | None:
    modes = ("GeneralLSTM", "GeneralGRU", "GeneralRNN")
    given = [*node.inputs, *[None] * 6]
    if node.domain != DOMAIN or node.op_type not in modes or given[4] is None or given[5] is not None:
        return None
    moved, order = _gathered(node.inputs[0])
    counted = _one(_one(given[4], "Cast"), "ReduceSum")
    steps = _one(counted, "Cast")
    if moved is None or counted is None or steps is None or steps.dtype != ir.DataType.BOOL:
        return None
    if node.attributes["direction"].as_string() != "forward" or not _moves_to_front(order, counted, steps):
        return None
    return _read(node, moved, counted, steps)


def _read(node: ir.Node, moved: ir.Value, counted: ir.Value, steps: ir.Value) -> _Masked | None:
    """The value in which every step has what it reads, if that is all that reads the sequence."""
    sequence, found = node.outputs[0], None
    if sequence.is_graph_output():
        return None
    for user, _ in sequence.uses():
        if user.op_type == "Shape":
            continue
        source, place = _gathered(user.outputs[0])
        if source is not sequence or found is not None or not _is_place(place, counted):
            return None
        found = user.outputs[0]
    if found is None or found.is_graph_output() or len(found.uses()) != 1:
        return None
    ((where, position),) = found.uses()
    shown = _one(where.inputs[0], "Unsqueeze") if where.op_type == "Where" and position == 1 else None
    if shown is None or not is_zero(where.inputs[2]):
        return None
    seen = _producer(shown, "Greater")
    started = seen is not None and _counts_up(seen.inputs[0], counted) and is_zero(seen.inputs[1])
    return _Masked(moved, steps, where.outputs[0], zeros=not started) if started or shown is steps else None


def _moves_to_front(order: ir.Value | None, counted: ir.Value, steps: ir.Value) -> bool:
    """Whether positions are those of the steps that count, in their order, and then those of the others."""
    top = _producer(order, "TopK")
    if top is None or order is not top.outputs[1] or top.attributes["axis"].as_int() != 0:
        return False
    scores = _producer(top.inputs[0], "Sub")
    weighted = _producer(scores.inputs[0], "Mul") if scores is not None else None
    if (
        scores is None
        or weighted is None
        or weighted.inputs[0] is not counted
        or not top.attributes["largest"].as_int()
    ):
        return False
    return _is_time(weighted.inputs[1], steps) and _is_time(top.inputs[1], steps) and _is_numbers(scores.inputs[1])


def _is_time(value: ir.Value | None, steps: ir.Value) -> bool:
    array = constant_of(value) if value is not None else None
    if array is not None:
        return array.reshape(-1).tolist() == [steps.shape[0] if steps.shape is not None else None]
    node = _producer(value, "Shape")
    return node is not None and node.inputs[0] is steps and node.attributes["end"].as_int() == 1


def _is_numbers(value: ir.Value | None) -> bool:
    """0, 1, 2, … as a column."""
    array = constant_of(value) if value is not None else None
    if array is not None:
        return array.ndim == 2 and bool(np.array_equal(array[:, 0], np.arange(len(array))))
    numbers = _producer(_one(value, "Unsqueeze"), "Range")
    return numbers is not None and is_zero(numbers.inputs[0]) and _is_one(numbers.inputs[2])


def _is_place(value: ir.Value | None, counted: ir.Value) -> bool:
    """Whether it is the position of the last step that counted, 0 before there is any."""
    atleast = _producer(value, "Max")
    less = _producer(atleast.inputs[0], "Sub") if atleast is not None and is_zero(atleast.inputs[1]) else None
    return less is not None and _is_one(less.inputs[1]) and _counts_up(less.inputs[0], counted)


def _counts_up(value: ir.Value | None, counted: ir.Value) -> bool:
    node = _producer(value, "CumSum")
    if node is None or node.inputs[0] is not counted or not is_zero(node.inputs[1]):
        return False
    return not any(node.attributes[name].as_int() for name in ("reverse", "exclusive"))


def _is_one(value: ir.Value | None) -> bool:
    array = constant_of(value) if value is not None else None
    return array is not None and array.size == 1 and array.item() == 1


def _gathered(value: ir.Value | None) -> tuple[ir.Value | None, ir.Value | None]:
    """What steps are taken out of, and which: positions (time, batch) that hold for all features."""
    node = _producer(value, "GatherElements")
    if node is None or node.attributes["axis"].as_int() != 0:
        return None, None
    return node.inputs[0], _one(_one(node.inputs[1], "Expand"), "Unsqueeze")


def _one(value: ir.Value | None, op_type: str) -> ir.Value | None:
    """The first input of the node of that kind that made a value."""
    node = _producer(value, op_type)
    return node.inputs[0] if node is not None else None


def _producer(value: ir.Value | None, op_type: str) -> ir.Node | None:
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type == op_type and not node.domain else None
