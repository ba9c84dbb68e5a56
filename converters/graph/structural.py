"""Operators whose result has other axes than their operand, and what layout makes of them.

Each handler gets the running pass and a node, and says whether it settled the node; if not, the operator's own stance
decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from porter.converters.graph import boundaries
from porter.converters.graph.canonical import constant_of
from porter.converters.graph.orders import BATCH_FIRST, Order, Stored, class_scope, identity
from porter.converters.graph.products import absorbed, batch_norm, dropout, product, unflattened
from porter.converters.graph.regroup import regrouped

if TYPE_CHECKING:
    from porter.converters.graph.layout import LayoutPass

CHANGES_RANK = {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Gather"}


def _transpose(run: LayoutPass, node: ir.Node) -> bool:
    """Only renames axes: nothing moves until an operator asks for it."""
    value = node.inputs[0]
    assert value is not None
    stored = run.at(value)
    perm = tuple(node.attributes["perm"].as_ints())
    order = tuple(perm.index(axis) for axis in stored.order)
    # An image brought back to the source's form (ConvNeXt's permute) is stored as every image is.
    native = stored.native or (len(order) >= 4 and order == run.habits.foreign(len(order)))
    run.state[node.outputs[0]] = Stored(stored.value, order, native, scope=class_scope(node))
    run.transposed[node.outputs[0]] = node
    run.also_named(stored.value, node.outputs[0])
    return True


def _reshape(run: LayoutPass, node: ir.Node) -> bool:
    """Stays in the stored order when whole groups of axes are merged or split there too."""
    value, out = node.inputs[0], node.outputs[0]
    assert value is not None
    stored = run.at(value)
    before, after = run.source_shape[value], run.source_shape[out]
    plain = stored.features is None and stored.order == identity(len(before))
    if plain and (unflattened(run, node) or _with_ones(run, node)):
        return True
    if stored.features is not None or stored.order == identity(len(before)):
        run.fixed(node)
        return True
    order = regrouped(before, after, stored.order)
    if order is not None:
        node.replace_input_with(0, stored.value)
        run.set(out, order, native=stored.native)
        return True
    if (
        len(after) == 2
        and before[:1] == after[:1]
        and all(isinstance(d, int) for d in before[1:])
        and stored.order[0] == 0
        and absorbed(run, out)
    ):
        node.replace_input_with(0, stored.value)
        inner = tuple(axis - 1 for axis in stored.order if axis != 0)
        run.set(out, identity(2), features=(tuple(int(d) for d in before[1:]), inner))
        return True
    run.fixed(node)
    return True


def _with_ones(run: LayoutPass, node: ir.Node) -> bool:
    """A reshape that puts in axes of size one gives them where a spatial operator behind it wants them."""
    value, out = node.inputs[0], node.outputs[0]
    after, shape = run.source_shape[out], constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    if shape is None or 0 in shape.reshape(-1)[1:] or len(after) < 3 or len(after) <= run.rank(value):
        return False
    order = run.spatial_order(out)
    if order is None or order == identity(len(after)):
        return False
    kept = [axis for axis in order if after[axis] != 1]
    if kept != sorted(kept):
        return False
    node.replace_input_with(0, run.at(value).value)
    node.replace_input_with(1, run.constant(shape.reshape(-1)[list(order)]))
    run.set(out, order, native=True)
    return True


def _axes_input(node: ir.Node) -> list[int] | None:
    array = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if array is None else [int(axis) for axis in array.reshape(-1)]


def _squeeze(run: LayoutPass, node: ir.Node) -> bool:
    value = node.inputs[0]
    assert value is not None
    stored, axes = run.at(value), _axes_input(node)
    rank = len(stored.order)
    if axes is None or stored.order == identity(rank):
        return False
    gone = {axis % rank for axis in axes}
    kept = [axis for axis in range(rank) if axis not in gone]
    node.replace_input_with(0, stored.value)
    node.replace_input_with(
        1, run.constant(np.asarray(sorted(stored.order.index(axis) for axis in gone), dtype=np.int64))
    )
    run.set(node.outputs[0], tuple(kept.index(axis) for axis in stored.order if axis not in gone), native=stored.native)
    return True


def _unsqueeze(run: LayoutPass, node: ir.Node) -> bool:
    """A new axis is stored before the axis that follows it in the source, or last.

    What becomes an image for a spatial operator gets its axes channels last at once, where the axes that there are stay
    in their order.
    """
    value = node.inputs[0]
    assert value is not None
    stored, axes = run.at(value), _axes_input(node)
    if axes is None:
        return False
    rank = len(stored.order) + len(axes)
    new = sorted(axis % rank for axis in axes)
    old = [axis for axis in range(rank) if axis not in new]
    order = [old[axis] for axis in stored.order]
    wanted = run.spatial_order(node.outputs[0])
    image = wanted is not None and [axis for axis in wanted if axis in old] == order
    if image and stored.features is None:
        order = list(wanted)
    elif stored.order == identity(len(stored.order)):
        return False
    else:
        for axis in new:
            follower = next((position for position, other in enumerate(order) if other == axis + 1), len(order))
            order.insert(follower, axis)
    node.replace_input_with(0, stored.value)
    node.replace_input_with(1, run.constant(np.asarray(sorted(order.index(axis) for axis in new), dtype=np.int64)))
    run.set(node.outputs[0], tuple(order), native=stored.native or image)
    return True


def _gather(run: LayoutPass, node: ir.Node) -> bool:
    """A scalar index drops its axis, a vector of indices keeps it; any other result is made in the source's order."""
    value, indices = node.inputs[0], node.inputs[1]
    assert value is not None and indices is not None
    stored = run.at(value)
    rank = len(stored.order)
    if stored.order == identity(rank) or run.rank(indices) > 1:
        return False
    axis = node.attributes["axis"].as_int() % rank
    node.replace_input_with(0, stored.value)
    node.attributes["axis"] = ir.AttrInt64("axis", stored.order.index(axis))
    if run.rank(indices) == 1:
        run.set(node.outputs[0], stored.order, native=stored.native)
    else:
        order = tuple(a - (a > axis) for a in stored.order if a != axis)
        run.set(node.outputs[0], order, native=stored.native)
    return True


def _reduce(run: LayoutPass, node: ir.Node) -> bool:
    value = node.inputs[0]
    assert value is not None
    stored, axes = run.at(value), _axes_input(node)
    rank = len(stored.order)
    if stored.order == identity(rank):
        return False
    gone = {axis % rank for axis in axes} if axes is not None else set(range(rank))
    node.replace_input_with(0, stored.value)
    if axes is not None:
        node.replace_input_with(
            1, run.constant(np.asarray(sorted(stored.order.index(axis) for axis in gone), dtype=np.int64))
        )
    if node.attributes["keepdims"].as_int():
        run.set(node.outputs[0], stored.order, native=stored.native)
    else:
        kept = [axis for axis in range(rank) if axis not in gone]
        run.set(
            node.outputs[0], tuple(kept.index(axis) for axis in stored.order if axis not in gone), native=stored.native
        )
    return True


def _arg_reduce(run: LayoutPass, node: ir.Node) -> bool:
    value = node.inputs[0]
    assert value is not None
    stored = run.at(value)
    rank = len(stored.order)
    if stored.order == identity(rank):
        return False
    axis = node.attributes["axis"].as_int() % rank
    node.replace_input_with(0, stored.value)
    node.attributes["axis"] = ir.AttrInt64("axis", stored.order.index(axis))
    if node.attributes["keepdims"].as_int():
        run.set(node.outputs[0], stored.order, native=stored.native)
    else:
        run.set(node.outputs[0], tuple(a - (a > axis) for a in stored.order if a != axis), native=stored.native)
    return True


def _attention(run: LayoutPass, node: ir.Node) -> bool:
    """Some keep time before heads: (batch, time, heads, depth). Masks, caches and scores are in ONNX's order."""
    if run.rank(node.inputs[0]) != 4:
        return False
    order = run.habits.heads
    for index, value in enumerate(node.inputs):
        if value is not None:
            node.replace_input_with(index, run.want(value, order if index < 3 else identity(run.rank(value)), node))
    run.set(node.outputs[0], order)
    return True


def _recurrent(run: LayoutPass, node: ir.Node) -> bool:
    """The sequence is (time, batch, features) in ONNX, and in the target that or (batch, time, features)."""
    sequence = node.inputs[0]
    assert sequence is not None
    order = _sequence_order(run, node, [sequence], (0, 1, 2))
    node.replace_input_with(0, run.want(sequence, order, node))
    for index, value in enumerate(node.inputs[1:], 1):
        if value is not None:
            node.replace_input_with(index, run.want(value, identity(run.rank(value)), node))
    run.set(node.outputs[0], order)
    return True


def _sequence_order(run: LayoutPass, node: ir.Node, values: list[ir.Value], time_first: Order) -> Order:
    """The order in which a node takes its sequences: the one that they are in, if the target has it."""
    orders = [tuple(time_first[axis] for axis in order) for order in run.habits.sequences]
    met = {run.at(value).order for value in values}
    order = next((order for order in orders if met == {order}), orders[0])
    if len(orders) > 1:
        node.metadata_props[BATCH_FIRST] = "1" if order != time_first else ""
    return order


def _multihead(run: LayoutPass, node: ir.Node) -> bool:
    """Queries, keys and values are (batch, time, features), and where the target has that also (time, batch, …)."""
    if len(run.habits.sequences) < 2:
        return False
    sequences = [value for value in node.inputs[:3] if value is not None]
    order = (1, 0, 2) if all(run.at(value).order == (1, 0, 2) for value in sequences) else (0, 1, 2)
    node.metadata_props[BATCH_FIRST] = "1" if order == (0, 1, 2) else ""
    for index, value in enumerate(node.inputs):
        if value is not None:
            wanted = order if index < 3 else identity(run.rank(value))
            node.replace_input_with(index, run.want(value, wanted, node))
    run.set(node.outputs[0], order)
    return True


def _expand(run: LayoutPass, node: ir.Node) -> bool:
    value, out = node.inputs[0], node.outputs[0]
    assert value is not None
    stored = run.at(value)
    rank = len(stored.order)
    if stored.order == identity(rank) or run.rank(out) != rank:
        return False
    sizes, order = node.inputs[1], run.constant(np.asarray(stored.order, dtype=np.int64))
    assert sizes is not None
    node.replace_input_with(0, stored.value)
    node.replace_input_with(1, run.insert("Gather", sizes, stored.order, node, {"axis": 0}, [order], [rank]))
    run.set(out, stored.order, native=stored.native)
    return True


def _last_axes(run: LayoutPass, node: ir.Node) -> bool:
    """LayerNormalization works on the last axes, which must be last and in order where it is stored too."""
    value = node.inputs[0]
    assert value is not None
    stored = run.at(value)
    rank = len(stored.order)
    axis = node.attributes["axis"].as_int() % rank
    tail = tuple(range(axis, rank))
    if stored.order != identity(rank) and stored.order[axis:] == tail:
        node.replace_input_with(0, stored.value)
        run.set(node.outputs[0], stored.order, native=stored.native)
        return True
    run.fixed(node)
    return True


_REDUCTIONS = ("Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
HANDLERS: dict[str, Callable[[LayoutPass, ir.Node], bool]] = {
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "MatMul": product,
    "Gemm": product,
    "porter::Linear": product,
    "BatchNormalization": batch_norm,
    "Dropout": dropout,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Gather": _gather,
    "ArgMax": _arg_reduce,
    "ArgMin": _arg_reduce,
    "Attention": _attention,
    "Expand": _expand,
    "LayerNormalization": _last_axes,
    "RMSNormalization": _last_axes,
    "porter::LSTM": _recurrent,
    "porter::GRU": _recurrent,
    "porter::RNN": _recurrent,
    "porter::Recurrent": _recurrent,
    "porter::RecurrentOfLengths": _recurrent,
    "porter::MaskedRecurrent": _recurrent,
    "porter::GeneralLSTM": _recurrent,
    "porter::GeneralGRU": _recurrent,
    "porter::GeneralRNN": _recurrent,
    "porter::MultiHeadAttention": _multihead,
    "If": boundaries.branches,
    "porter::Loop": boundaries.loop,
    "Scan": boundaries.scan,
    **{f"Reduce{name}": _reduce for name in _REDUCTIONS},
}
