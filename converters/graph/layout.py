"""Layout, decided once: which order of axes each value is stored in, and the few transposes that are left.

Every value has a *source* order of axes, the one that ONNX gives it, and an `Order`: stored axis i is source axis
`order[i]`. Spatial operators want channels where the target has them; operators that commute with a permutation keep
the order they meet; the source's own transposes only rename axes. A transpose is made where an operator needs another
order than it finds. Nothing is inferred from sizes: how an operator stands to a permutation is declared by its rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from porter.converters.graph.axes import Stance
from porter.converters.graph.boundaries import crossings, place
from porter.converters.graph.nesting import graphs, owners
from porter.converters.graph.orders import (
    CHANNEL_AXIS,
    NAMES,
    Habits,
    Interface,
    Order,
    Stored,
    class_scope,
    identity,
)
from porter.converters.graph.structural import CHANGES_RANK, HANDLERS
from porter.converters.opset import KIND, SCOPE, SOURCE

# Over sequences these make no image of their operand: they want its channels where they have them.
_NORMS = {"BatchNormalization", "InstanceNormalization", "GroupNormalization"}


class LayoutPass:
    """One graph, brought in place to the order of axes that a target has."""

    def __init__(self, model: ir.Model, stances: Callable[[ir.Node], Stance], habits: Habits, *, native: bool) -> None:
        self.habits = habits
        self.graph = model.graph
        self.stances = stances
        self.native = native
        self.state: dict[ir.Value, Stored] = {}
        self.source_shape: dict[ir.Value, list] = {}
        self.transposed: dict[ir.Value, ir.Node] = {}
        self.home: dict[ir.Value, ir.Graph] = {}
        self.owners = owners(self.graph)
        self.across = crossings(self.graph)
        self._conversions: dict[tuple, ir.Value] = {}
        self._inserted = 0

    def run(self) -> Interface:
        """Rewrite the graph; the orders of its inputs and outputs."""
        for graph in graphs(self.graph):
            for value in (*graph.inputs, *graph.initializers.values(), *(o for n in graph for o in n.outputs)):
                self.source_shape[value] = list(value.shape) if value.shape is not None else []
                self.home[value] = graph
        inputs = [self._seed(value) for value in self.graph.inputs]
        self.visit(self.graph)
        outputs = []
        for index, value in enumerate(self.graph.outputs):
            stored = self.at(value)
            rank = len(stored.order)
            if not (self.native and stored.native and stored.order == self.habits.foreign(rank)) or stored.features:
                stored = replace(stored, value=self.want(value, identity(rank), value.producer()), order=identity(rank))
            self.graph.outputs[index] = stored.value
            outputs.append(stored.order)
        return Interface(inputs, outputs)

    def visit(self, graph: ir.Graph) -> None:
        """Settle the nodes of a graph, whose inputs have been."""
        for node in list(graph):
            self._visit(node)

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
        order = self.spatial_order(value) if self.native and rank >= 3 else None
        if order is None:
            return identity(rank)
        self.set(value, order, native=True)
        return order

    def spatial_order(self, value: ir.Value) -> Order | None:
        """The order that the first spatial operator wants which the value reaches before its axes lose their meaning.

        A transpose on the way only renames them. None when it reaches no such operator.
        """
        rank = self.rank(value)
        seen, queue = {value}, deque([(value, identity(rank))])
        while queue:
            current, axes = queue.popleft()  # axis i of `current` is axis `axes[i]` of the value
            reached = [(other, axes) for other in self.across.get(current, ())]
            for node, position in current.uses():
                stance = self.stances(node)
                sequence = rank == 3 and node.op_type in _NORMS
                if stance.kind == "spatial" and position == 0 and not sequence:
                    return tuple(axes[axis] for axis in self.habits.spatial(rank))
                if node.op_type == "Transpose":
                    reached.append((node.outputs[0], tuple(axes[axis] for axis in node.attributes["perm"].as_ints())))
                elif (stance.kind in ("any", "axes") or sequence) and node.op_type not in CHANGES_RANK:
                    reached += [(out, axes) for out in node.outputs]
            for other, found in reached:
                if other not in seen and self.rank(other) == rank:
                    seen.add(other)
                    queue.append((other, found))
        return None

    def adopt(self, value: ir.Value, source: ir.Value, order: Order, home: ir.Graph) -> None:
        """`value`, new in the graph `home`, is `source` stored in `order`."""
        self.home[value] = home
        self.source_shape[value] = self.source_shape[source]
        self.state[value] = Stored(value, order, self.at(source).native)

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
        converted = self.insert("Transpose", stored.value, tuple(perm), user, attributes={"perm": perm})
        self.also_named(converted, value)
        return converted

    def insert(
        self,
        op_type: str,
        value: ir.Value,
        tag: tuple,
        user: ir.Node | None,
        attributes: dict,
        extra: Sequence[ir.Value] = (),
        shape: Sequence | None = None,
    ) -> ir.Value:
        if user is not None:
            user = place(self, value, user)
        scope = user.metadata_props.get(SCOPE, "[]") if user is not None else "[]"
        key = (op_type, value, tuple(tag), scope, user.graph if user is not None else None)
        if key in self._conversions:
            return self._conversions[key]
        self._inserted += 1
        attrs = [ir.convenience.convert_attribute(name, item) for name, item in attributes.items()]
        if shape is None and value.shape is not None:
            shape = [list(value.shape)[axis] for axis in attributes["perm"]]
        out = ir.Value(name=f"{value.name}_layout_{self._inserted}", type=value.type, shape=ir.Shape(shape or []))
        node = ir.Node(
            "",
            op_type,
            [value, *extra],
            attrs,
            outputs=[out],
            name=f"layout_{self._inserted}",
            metadata_props={SCOPE: scope},
        )
        if user is not None and SOURCE in user.metadata_props:
            node.metadata_props[SOURCE] = user.metadata_props[SOURCE]
        if user is not None and user.graph is not None and user is not value.producer():
            user.graph.insert_before(user, node)
        elif value.producer() is not None:
            value.producer().graph.insert_after(value.producer(), node)
        else:
            self.graph.insert_before(self.graph[0], node)
        self.home[out] = node.graph
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
        full = self.insert("Unsqueeze", plain, (missing,), node, {}, [axes], [1] * missing + list(plain.shape or []))
        return self.insert("Transpose", full, order, node, {"perm": list(order)})

    # ---- nodes ----

    def _settle(self, node: ir.Node) -> None:
        """A transpose is made real before another class takes its result: interfaces stay the author's."""
        for value in dict.fromkeys(node.inputs):
            stored = self.state.get(value) if value is not None else None
            if (
                value is None
                or stored is None
                or stored.native
                or value not in self.transposed
                or stored.order == identity(len(stored.order))
            ):
                continue
            if stored.scope != class_scope(node):
                real = self.want(value, identity(len(stored.order)), self.transposed[value])
                self.state[value] = Stored(real, identity(len(stored.order)))

    def _visit(self, node: ir.Node) -> None:
        self._settle(node)
        stance = self.stances(node)
        handler = HANDLERS.get(node.op_type if not node.domain else f"{node.domain}::{node.op_type}")
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
        order = self.habits.spatial(self.rank(data))
        node.replace_input_with(0, self.want(data, order, node))
        for index, value in enumerate(node.inputs[1:], 1):
            if value is not None:
                node.replace_input_with(index, self.want(value, identity(self.rank(value)), node))
        image = len(order) > 3 or node.op_type not in _NORMS
        for out in node.outputs:
            self.set(out, order if self.rank(out) == len(order) else identity(self.rank(out)), native=image)

    def common_order(self, values: Sequence[ir.Value | None], rank: int) -> Stored | None:
        """The order to meet in: that of a native operand first, then any that is not the source's own."""
        full = [
            self.at(v)
            for v in values
            if (v is not None and self.rank(v) == rank and v.producer() is not None) or v in self.state
        ]
        full = [stored for stored in full if len(stored.order) == rank]
        chosen = rank >= self.habits.prefers
        native = next((stored for stored in full if chosen and stored.native and stored.order != identity(rank)), None)
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
            self.set(
                out,
                order if self.rank(out) == rank else identity(self.rank(out)),
                native=bool(met and met.native),
                features=features,
            )

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
                node.replace_input_with(
                    index,
                    self.want(value, order, node) if self.rank(value) == rank else self.broadcast(value, order, node),
                )
            else:
                node.replace_input_with(index, self.want(value, identity(self.rank(value)), node))
        if order != identity(rank):
            stance.follow(node, order, self.constant)
        for out in node.outputs:
            self.set(
                out, order if self.rank(out) == rank else identity(self.rank(out)), native=bool(met and met.native)
            )
        if rank > 1:
            node.metadata_props[CHANNEL_AXIS] = str(order.index(1))


def assign(model: ir.Model, stances: Callable[[ir.Node], Stance], habits: Habits, *, native: bool = True) -> Interface:
    """Store every value in the order that suits its users: `habits` says how the target's spatial operators want it.

    `native=False` keeps the source's order at the inputs and outputs.
    """
    return LayoutPass(model, stances, habits, native=native).run()
