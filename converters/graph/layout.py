"""Layout, decided once: which order of axes each value is stored in, and the few transposes that are left.

Every value has a *source* order of axes, the one that ONNX gives it, and an `Order`: stored axis i is source axis
`order[i]`. Spatial operators want channels last; operators that commute with a permutation keep the order they meet;
the source's own transposes only rename axes. A transpose is made where an operator needs another order than it finds.
Nothing is inferred from sizes: how an operator stands to a permutation is declared by its rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from porter.converters.graph.axes import Stance
from porter.converters.graph.canonical import constant_of
from porter.converters.graph.regroup import regrouped
from porter.converters.opset import KIND, SCOPE, SOURCE

Order = tuple[int, ...]
# On nodes after this pass: the stored axis of the channels, for operators whose channel axis is no attribute.
CHANNEL_AXIS = "porter.channel_axis"
# On values after this pass: the names of the graph's own values that it stands for, joined by "|".
NAMES = "porter.names"


@dataclass(frozen=True)
class Stored:
    """How a value is stored. `native`: its order comes from a spatial operator, not from a transpose of the source.

    `features` says that axis 1 is a flattened (C, H, …) stored channels last: (source sizes, order of them).
    """

    value: ir.Value
    order: Order
    native: bool = False
    features: tuple[tuple[int, ...], Order] | None = None
    scope: str = ""  # the module with a class of its own in which a transpose renamed the axes


@dataclass(frozen=True)
class Interface:
    """The stored order of each graph input and output; the identity where nothing changed."""

    inputs: list[Order]
    outputs: list[Order]


def identity(rank: int) -> Order:
    """The source's own order."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """Batch, spatial axes, channels."""
    return (0, *range(2, rank), 1) if rank >= 3 else identity(rank)


class LayoutPass:
    """One graph, brought to channels-last order in place."""

    def __init__(self, model: ir.Model, stances: Callable[[ir.Node], Stance], *, native: bool) -> None:
        self.graph = model.graph
        self.stances = stances
        self.native = native
        self.state: dict[ir.Value, Stored] = {}
        self.source_shape: dict[ir.Value, list] = {}
        self.transposed: dict[ir.Value, ir.Node] = {}
        self._conversions: dict[tuple, ir.Value] = {}
        self._inserted = 0

    def run(self) -> Interface:
        """Rewrite the graph; the orders of its inputs and outputs."""
        for value in [*self.graph.inputs, *self.graph.initializers.values(), *(o for n in self.graph for o in n.outputs)]:
            self.source_shape[value] = list(value.shape) if value.shape is not None else []
        inputs = [self._seed(value) for value in self.graph.inputs]
        for node in list(self.graph):
            self._visit(node)
        outputs = []
        for index, value in enumerate(self.graph.outputs):
            stored = self.at(value)
            rank = len(stored.order)
            if not (self.native and stored.native and stored.order == channels_last(rank)) or stored.features:
                stored = replace(stored, value=self.want(value, identity(rank), value.producer()), order=identity(rank))
            self.graph.outputs[index] = stored.value
            outputs.append(stored.order)
        return Interface(inputs, outputs)

    # ---- the state of values ----

    def rank(self, value: ir.Value) -> int:
        return len(self.source_shape.get(value, []))

    def at(self, value: ir.Value) -> Stored:
        return self.state.get(value) or Stored(value, identity(len(value.shape or [])))

    def set(self, value: ir.Value, order: Order, *, native: bool = False, features: tuple | None = None) -> None:
        """`value`, an output of a node that stays, is stored in `order` from now on."""
        self.state[value] = Stored(value, order, native, features)
        shape = self.source_shape[value]
        if shape or value.shape is not None:
            value.shape = ir.Shape([shape[axis] for axis in order])

    def _seed(self, value: ir.Value) -> Order:
        rank = self.rank(value)
        if self.native and rank >= 3 and self._meets_spatial(value):
            self.set(value, channels_last(rank), native=True)
            return channels_last(rank)
        return identity(rank)

    def _meets_spatial(self, value: ir.Value) -> bool:
        """Whether the value reaches a spatial operator before its axes lose their meaning."""
        seen, queue = set(), [value]
        while queue:
            current = queue.pop()
            for node, position in current.uses():
                stance = self.stances(node)
                if stance.kind == "spatial" and position == 0:
                    return True
                passes = stance.kind in ("any", "axes") and node.op_type not in _CHANGES_RANK
                if passes and self.rank(node.outputs[0]) == self.rank(value):
                    queue.extend(out for out in node.outputs if out not in seen and not seen.add(out))  # type: ignore[func-returns-value]
        return False

    def also_named(self, stored: ir.Value, value: ir.Value) -> None:
        """`stored` now stands for `value` too: the author's signatures may name it so."""
        names = [*filter(None, stored.metadata_props.get(NAMES, "").split("|")), value.name or ""]
        stored.metadata_props[NAMES] = "|".join(dict.fromkeys(names))

    # ---- conversions ----

    def want(self, value: ir.Value, order: Order, user: ir.Node | None) -> ir.Value:
        """The value stored in `order`; a transpose is inserted before `user` unless it is stored so already."""
        stored = self.at(value)
        if stored.order == order:
            return stored.value
        perm = [stored.order.index(axis) for axis in order]
        converted = self._insert("Transpose", stored.value, order, user, attributes={"perm": perm})
        self.also_named(converted, value)
        return converted

    def _insert(self, op_type: str, value: ir.Value, tag: tuple, user: ir.Node | None, attributes: dict, extra: Sequence[ir.Value] = (), shape: Sequence | None = None) -> ir.Value:
        scope = user.metadata_props.get(SCOPE, "[]") if user is not None else "[]"
        key = (op_type, value, tuple(tag), scope)
        if key in self._conversions:
            return self._conversions[key]
        self._inserted += 1
        attrs = [ir.convenience.convert_attribute(name, item) for name, item in attributes.items()]
        if shape is None and value.shape is not None:
            shape = [list(value.shape)[axis] for axis in attributes["perm"]]
        out = ir.Value(name=f"{value.name}_layout_{self._inserted}", type=value.type, shape=ir.Shape(shape or []))
        node = ir.Node("", op_type, [value, *extra], attrs, outputs=[out], name=f"layout_{self._inserted}", metadata_props={SCOPE: scope})
        if user is not None and SOURCE in user.metadata_props:
            node.metadata_props[SOURCE] = user.metadata_props[SOURCE]
        if user is not None and user.graph is self.graph and user is not value.producer():
            self.graph.insert_before(user, node)
        elif value.producer() is not None:
            self.graph.insert_after(value.producer(), node)
        else:
            self.graph.insert_before(self.graph[0], node)
        self._conversions[key] = out
        return out

    def constant(self, array: np.ndarray) -> ir.Value:
        """A new constant of the graph."""
        self._inserted += 1
        value = ir.Value(
            name=f"layout_constant_{self._inserted}",
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            const_value=ir.tensor(array),
        )
        value.metadata_props[KIND] = "constant"
        self.graph.register_initializer(value)
        return value

    def broadcast(self, value: ir.Value, order: Order, node: ir.Node) -> ir.Value:
        """An operand of lower rank made ready for a broadcast against a value stored in `order`."""
        missing = len(order) - self.rank(value)
        if missing <= 0:
            return self.want(value, order, node)
        if self.rank(value) == 0 or order == identity(len(order)):
            return self.want(value, identity(self.rank(value)), node)
        plain = self.want(value, identity(self.rank(value)), node)
        axes = self.constant(np.arange(missing, dtype=np.int64))
        full = self._insert("Unsqueeze", plain, (missing,), node, {}, [axes], [1] * missing + list(plain.shape or []))
        return self._insert("Transpose", full, order, node, {"perm": list(order)})

    # ---- nodes ----

    def _settle(self, node: ir.Node) -> None:
        """What a transpose of the source renamed is made real before another class takes it: interfaces stay the author's."""
        for value in dict.fromkeys(node.inputs):
            stored = self.state.get(value) if value is not None else None
            if value is None or stored is None or stored.native or value not in self.transposed or stored.order == identity(len(stored.order)):
                continue
            if stored.scope != class_scope(node):
                real = self.want(value, identity(len(stored.order)), self.transposed[value])
                self.state[value] = Stored(real, identity(len(stored.order)))

    def _visit(self, node: ir.Node) -> None:
        self._settle(node)
        stance = self.stances(node)
        handler = _HANDLERS.get(node.op_type if not node.domain else f"{node.domain}::{node.op_type}")
        if handler is not None and handler(self, node):
            return
        if stance.kind == "spatial":
            self._spatial(node)
        elif stance.kind == "any":
            self._any(node)
        elif stance.kind == "axes":
            self._axes(node, stance)
        else:
            self.fixed(node)

    def fixed(self, node: ir.Node) -> None:
        """Everything in the source's order."""
        for index, value in enumerate(node.inputs):
            if value is not None:
                node.replace_input_with(index, self.want(value, identity(self.rank(value)), node))

    def _spatial(self, node: ir.Node) -> None:
        data = node.inputs[0]
        assert data is not None
        order = channels_last(self.rank(data))
        node.replace_input_with(0, self.want(data, order, node))
        for index, value in enumerate(node.inputs[1:], 1):
            if value is not None:
                node.replace_input_with(index, self.want(value, identity(self.rank(value)), node))
        for out in node.outputs:
            self.set(out, order if self.rank(out) == len(order) else identity(self.rank(out)), native=True)

    def common_order(self, values: Sequence[ir.Value | None], rank: int) -> Stored | None:
        """The order to meet in: that of a native operand first, then any that is not the source's own."""
        full = [self.at(v) for v in values if v is not None and self.rank(v) == rank and v.producer() is not None or v in self.state]
        full = [stored for stored in full if len(stored.order) == rank]
        native = next((stored for stored in full if stored.native and stored.order != identity(rank)), None)
        same = len({stored.order for stored in full}) == 1
        return native or (full[0] if full and same else None)

    def _any(self, node: ir.Node) -> None:
        rank = max((self.rank(value) for value in node.inputs if value is not None), default=0)
        met = self.common_order(node.inputs, rank)
        order = met.order if met else identity(rank)
        features = next((self.at(v).features for v in node.inputs if v is not None and self.at(v).features), None)
        for index, value in enumerate(node.inputs):
            if value is not None:
                node.replace_input_with(index, self.broadcast(value, order, node))
        for out in node.outputs:
            self.set(out, order if self.rank(out) == rank else identity(self.rank(out)), native=bool(met and met.native), features=features)

    def _axes(self, node: ir.Node, stance: Stance) -> None:
        """All operands of the data's rank in one order; axis numbers and per-axis vectors follow it."""
        rank = max((self.rank(node.inputs[i]) for i in stance.operands(node) if node.inputs[i] is not None), default=0)
        operands = [node.inputs[i] for i in stance.operands(node)]
        met = self.common_order(operands, rank)
        order = met.order if met else identity(rank)
        if order != identity(rank) and not stance.can_follow(node):
            self.fixed(node)
            return
        for index, value in enumerate(node.inputs):
            if value is None:
                continue
            if index in stance.operands(node):
                node.replace_input_with(index, self.want(value, order, node) if self.rank(value) == rank else self.broadcast(value, order, node))
            else:
                node.replace_input_with(index, self.want(value, identity(self.rank(value)), node))
        if order != identity(rank):
            stance.follow(node, order, self.constant)
        for out in node.outputs:
            self.set(out, order if self.rank(out) == rank else identity(self.rank(out)), native=bool(met and met.native))
        if rank > 1:
            node.metadata_props[CHANNEL_AXIS] = str(order.index(1))


def class_scope(node: ir.Node) -> str:
    """The innermost module of the author's own (or a composite of the library) that a node belongs to."""
    scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
    own = [path for path, _, cls in scope if not cls.startswith("torch.nn.") or cls.rpartition(".")[2].startswith(("Transformer", "MultiheadAttention"))]
    return own[-1] if own else ""


# ---- operators whose result has other axes ----

_CHANGES_RANK = {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Gather"}


def _transpose(run: LayoutPass, node: ir.Node) -> bool:
    """Only renames axes: nothing moves until an operator asks for it."""
    value = node.inputs[0]
    assert value is not None
    stored = run.at(value)
    perm = tuple(node.attributes["perm"].as_ints())
    order = tuple(perm.index(axis) for axis in stored.order)
    # An image brought back to channels first (ConvNeXt's permute) is stored as every image is.
    native = stored.native or (len(order) >= 4 and order == channels_last(len(order)))
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
    if stored.features is not None or stored.order == identity(len(before)):
        run.fixed(node)
        return True
    order = regrouped(before, after, stored.order)
    if order is not None:
        node.replace_input_with(0, stored.value)
        run.set(out, order, native=stored.native)
        return True
    if len(after) == 2 and before[:1] == after[:1] and all(isinstance(d, int) for d in before[1:]) and _absorbed(run, out):
        node.replace_input_with(0, stored.value)
        inner = tuple(axis - 1 for axis in stored.order if axis != 0)
        if stored.order[0] == 0:
            run.set(out, identity(2), features=(tuple(int(d) for d in before[1:]), inner))
            return True
    run.fixed(node)
    return True


def _absorbed(run: LayoutPass, value: ir.Value) -> bool:
    """Whether every path from a flattened value ends in a Linear whose rows can be permuted."""
    if value.is_graph_output() or not value.uses():
        return False
    for node, position in value.uses():
        if node.op_type in ("Gemm", "MatMul", "Linear") and position == 0 and _rows(node) is not None:
            continue
        elementwise = run.stances(node).kind == "any" and all(
            run.rank(other) == 0 for index, other in enumerate(node.inputs) if other is not None and index != position
        )
        if node.op_type == "BatchNormalization" or (elementwise and len(node.outputs) == 1):
            if not _absorbed(run, node.outputs[0]):
                return False
            continue
        return False
    return True


def _rows(node: ir.Node) -> int | None:
    """The axis of the weight that a product sums over; None when the weight is computed."""
    weight = node.inputs[1] if len(node.inputs) > 1 else None
    while weight is not None and weight.producer() is not None and weight.producer().op_type == "Transpose":
        weight = weight.producer().inputs[0]
    if weight is None or not weight.is_initializer() or weight.shape is None or len(weight.shape) != 2:
        return None
    if node.op_type == "Gemm":
        if node.attributes["transA"].as_int():
            return None
        return 1 if node.attributes["transB"].as_int() else 0
    return 0


def _permuted_features(run: LayoutPass, node: ir.Node, index: int, axis: int, features: tuple[tuple[int, ...], Order]) -> None:
    """Re-order one axis of a weight to match a flattening in stored order."""
    sizes, order = features
    weight = run.want(node.inputs[index], identity(run.rank(node.inputs[index])), node)  # type: ignore[arg-type]
    shape = [int(d) for d in weight.shape]  # type: ignore[arg-type, union-attr]
    apart = [*shape[:axis], *sizes, *shape[axis + 1 :]]
    perm = [*range(axis), *(axis + i for i in order), *range(axis + len(sizes), len(apart))]
    tag = (features, axis)
    wide = run._insert("Reshape", weight, (*tag, 0), node, {"allowzero": 0}, [run.constant(np.asarray(apart, dtype=np.int64))], apart)
    moved = run._insert("Transpose", wide, (*tag, 1), node, {"perm": perm})
    flat = run._insert("Reshape", moved, (*tag, 2), node, {"allowzero": 0}, [run.constant(np.asarray(shape, dtype=np.int64))], shape)
    node.replace_input_with(index, flat)


def _product(run: LayoutPass, node: ir.Node) -> bool:
    """A product with a weight needs only its own axis last; two computed operands need both of theirs."""
    a, b = node.inputs[0], node.inputs[1]
    assert a is not None and b is not None
    first, second = run.at(a), run.at(b)
    if first.features is not None:
        axis = _rows(node)
        assert axis is not None
        _permuted_features(run, node, 1, axis, first.features)
        node.replace_input_with(0, first.value)
        run.set(node.outputs[0], identity(2))
        return True
    rank, out = len(first.order), node.outputs[0]
    if rank == run.rank(out) and second.value.producer() is None and len(second.order) == 2 and first.order[-1] == rank - 1:
        node.replace_input_with(0, first.value)
        run.set(out, first.order, native=first.native)
        return True
    if first.order == second.order and rank == run.rank(out) and first.order[-2:] == (rank - 2, rank - 1):
        node.replace_input_with(0, first.value)
        node.replace_input_with(1, second.value)
        run.set(out, first.order, native=first.native)
        return True
    run.fixed(node)
    return True


def _batch_norm(run: LayoutPass, node: ir.Node) -> bool:
    value = node.inputs[0]
    assert value is not None
    stored = run.at(value)
    if stored.features is not None:
        for index in range(1, 5):
            _permuted_features(run, node, index, 0, stored.features)
        node.replace_input_with(0, stored.value)
        run.set(node.outputs[0], stored.order, features=stored.features)
        return True
    return False


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
    node.replace_input_with(1, run.constant(np.asarray(sorted(stored.order.index(axis) for axis in gone), dtype=np.int64)))
    run.set(node.outputs[0], tuple(kept.index(axis) for axis in stored.order if axis not in gone), native=stored.native)
    return True


def _unsqueeze(run: LayoutPass, node: ir.Node) -> bool:
    """A new axis is stored before the axis that follows it in the source, or last."""
    value = node.inputs[0]
    assert value is not None
    stored, axes = run.at(value), _axes_input(node)
    if axes is None or stored.order == identity(len(stored.order)):
        return False
    rank = len(stored.order) + len(axes)
    new = sorted(axis % rank for axis in axes)
    old = [axis for axis in range(rank) if axis not in new]
    order = [old[axis] for axis in stored.order]
    for axis in new:
        follower = next((position for position, other in enumerate(order) if other == axis + 1), len(order))
        order.insert(follower, axis)
    node.replace_input_with(0, stored.value)
    node.replace_input_with(1, run.constant(np.asarray([order.index(axis) for axis in new], dtype=np.int64)))
    run.set(node.outputs[0], tuple(order), native=stored.native)
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
        node.replace_input_with(1, run.constant(np.asarray(sorted(stored.order.index(axis) for axis in gone), dtype=np.int64)))
    if node.attributes["keepdims"].as_int():
        run.set(node.outputs[0], stored.order, native=stored.native)
    else:
        kept = [axis for axis in range(rank) if axis not in gone]
        run.set(node.outputs[0], tuple(kept.index(axis) for axis in stored.order if axis not in gone), native=stored.native)
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
    """Keras keeps time before heads: (batch, time, heads, depth)."""
    if run.rank(node.inputs[0]) != 4 or len([v for v in node.inputs[4:] if v is not None]) > 0:  # type: ignore[arg-type]
        return False
    order = (0, 2, 1, 3)
    for index in range(3):
        node.replace_input_with(index, run.want(node.inputs[index], order, node))  # type: ignore[arg-type]
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        mask = node.inputs[3]
        node.replace_input_with(3, run.want(mask, identity(run.rank(mask)), node))
    run.set(node.outputs[0], order)
    return True


def _recurrent(run: LayoutPass, node: ir.Node) -> bool:
    """Batch first: the sequence is (time, batch, features) in ONNX and (batch, time, features) in the target."""
    sequence = node.inputs[0]
    assert sequence is not None
    node.replace_input_with(0, run.want(sequence, (1, 0, 2), node))
    for index, value in enumerate(node.inputs[1:], 1):
        if value is not None:
            node.replace_input_with(index, run.want(value, identity(run.rank(value)), node))
    run.set(node.outputs[0], (1, 0, 2))
    return True


def _expand(run: LayoutPass, node: ir.Node) -> bool:
    value, out = node.inputs[0], node.outputs[0]
    assert value is not None
    stored = run.at(value)
    if stored.order == identity(len(stored.order)) or run.rank(out) != len(stored.order):
        return False
    node.replace_input_with(0, stored.value)
    run.set(out, stored.order, native=stored.native)
    return True


def _shape_of(run: LayoutPass, node: ir.Node) -> bool:
    """Sizes are read in the source's order; they are symbolic, so nothing needs to move."""
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
_HANDLERS: dict[str, Callable[[LayoutPass, ir.Node], bool]] = {
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "MatMul": _product,
    "Gemm": _product,
    "porter::Linear": _product,
    "BatchNormalization": _batch_norm,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Gather": _gather,
    "ArgMax": _arg_reduce,
    "ArgMin": _arg_reduce,
    "Attention": _attention,
    "Expand": _expand,
    "Shape": _shape_of,
    "LayerNormalization": _last_axes,
    "RMSNormalization": _last_axes,
    "porter::LSTM": _recurrent,
    "porter::GRU": _recurrent,
    "porter::RNN": _recurrent,
    **{f"Reduce{name}": _reduce for name in _REDUCTIONS},
}


def assign(model: ir.Model, stances: Callable[[ir.Node], Stance], *, native: bool = True) -> Interface:
    """Store every value in the order that suits its users, channels last where operators are spatial.

    `native=False` keeps the source's order at the inputs and outputs.
    """
    return LayoutPass(model, stances, native=native).run()
