"""Recurrent layers as PyTorch has them: one node for all layers of a module, states stacked over layers and directions.

Each `porter::LSTM`, GRU or RNN, or a chain of those that are the layers of one module, becomes `porter::Recurrent`:

    inputs    x, hidden, cell (both absent where they start from zero), then w, r, b of every layer
    outputs   sequence, hidden, and for LSTM cell; states are (layers · directions, batch, hidden)

A GeneralLSTM, GeneralGRU or GeneralRNN without peepholes becomes `porter::RecurrentOfLengths`, which has the lengths of
its sequences as second input, and a masked one `porter::MaskedRecurrent`, which has the mask there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from porter.converters.graph.canonical import constant_of
from porter.converters.graph.nesting import graphs
from porter.converters.graph.recurrent_modules import DOMAIN
from porter.converters.opset import KIND, SCOPE, SOURCE

_STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
_GIVEN = ("General", "Masked")


def stack_recurrent(model: ir.Model) -> None:
    """Rewrite every recurrent node of porter's in place."""
    for graph in list(graphs(model.graph)):
        rewriter = _Rewriter(graph, model.graph)
        for nodes in _modules(graph):
            rewriter.join(nodes)
        for node in [node for node in graph if _has_lengths(node)]:
            masked = node.op_type.startswith("Masked")
            rewriter.join([node], "MaskedRecurrent" if masked else "RecurrentOfLengths", node.inputs[4])
    common.RemoveUnusedNodesPass()(model)


def _has_lengths(node: ir.Node) -> bool:
    """Whether a node has sequences of several lengths or a mask, and no peepholes."""
    general = node.domain == DOMAIN and node.op_type in [f"{how}{mode}" for mode in _STATES for how in _GIVEN]
    return general and len(node.inputs) > 4 and node.inputs[4] is not None and (*node.inputs, None)[5] is None


def _modules(graph: ir.Graph) -> Iterator[list[ir.Node]]:
    """The recurrent nodes, the layers of one module together where they are alike and follow each other."""
    modules: dict[str, list[ir.Node]] = defaultdict(list)
    for node in graph:
        if node.domain == DOMAIN and node.op_type in _STATES:
            labelled = "label" in node.attributes
            modules[node.metadata_props.get(SCOPE, "") if labelled else f"alone {len(modules)}"].append(node)
    for nodes in modules.values():
        labels = [node.attributes["label"].as_string() for node in nodes if "label" in node.attributes]
        counted = labels == [f"l{index}" for index in range(len(labels))]
        ratios = {between(a, b) for a, b in pairwise(nodes)}
        if len(nodes) > 1 and counted and len(ratios) == 1 and None not in ratios and len(set(map(_kind, nodes))) == 1:
            yield nodes
        else:
            yield from ([node] for node in nodes)


def _kind(node: ir.Node) -> tuple:
    """What the layers of one module have in common."""
    named = {name: attribute.value for name, attribute in node.attributes.items() if name != "label"}
    recurrent = node.inputs[2]
    return repr(sorted(named.items())), tuple(recurrent.shape), [v is None for v in node.inputs[3:]].count(True)


def between(a: ir.Node, b: ir.Node) -> float | None:
    """The rate of the dropout between two layers, 0 without one; None when `b` does not just read `a`."""
    producer, ratio = b.inputs[0].producer(), 0.0
    if producer is not None and producer.op_type == "DropoutBetween":
        if _read_elsewhere(producer.outputs[0]):
            return None
        ratio, producer = producer.attributes["ratio"].as_float(), producer.inputs[0].producer()
    return ratio if producer is a and not _read_elsewhere(a.outputs[0]) else None


def _read_elsewhere(value: ir.Value) -> bool:
    return len(value.uses()) != 1 or value.is_graph_output()


class _Rewriter:
    """Makes the new nodes of one graph; constants belong to the `root`."""

    def __init__(self, graph: ir.Graph, root: ir.Graph) -> None:
        self.graph = graph
        self.root = root
        self._count = 0

    def join(self, nodes: list[ir.Node], op_type: str = "Recurrent", given_steps: ir.Value | None = None) -> None:
        """One node in place of `nodes`; `given_steps` are lengths or a mask."""
        first, last = nodes[0], nodes[-1]
        mode = first.op_type.removeprefix("General").removeprefix("Masked")
        before = 4 if given_steps is None else 6
        count, each = _STATES[mode], [value for node in nodes for value in node.outputs[1:]]
        given = [value for node in nodes for value in node.inputs[before:] if value is not None]
        stacked = [self._stacked(given[index::count], first) if given else None for index in range(count)]
        weights = [value for node in nodes for value in (*node.inputs[1:4], None)[:3]]
        rows = len(each) // count
        batch, hidden = each[0].shape
        shapes = [last.outputs[0].shape, *[ir.Shape([rows, batch, hidden])] * count]
        names = [last.outputs[0].name, *(f"{first.name}_{state}" for state in ("hidden", "cell")[:count])]
        outputs = [
            ir.Value(name=name, shape=shape, type=each[0].type) for name, shape in zip(names, shapes, strict=True)
        ]
        new = ir.Node(
            DOMAIN,
            op_type,
            [
                first.inputs[0],
                *([] if given_steps is None else [given_steps]),
                *stacked,
                *([None] * (2 - count)),
                *weights,
            ],
            self._attributes(nodes, mode),
            outputs=outputs,
            name=first.name,
            metadata_props=dict(first.metadata_props),
        )
        self.graph.insert_before(last, new)
        last.outputs[0].name = f"{last.outputs[0].name}_joined"
        ir.convenience.replace_all_uses_with(last.outputs[0], outputs[0], replace_graph_outputs=True)
        for index in range(count):
            self._give_states(each[index::count], outputs[1 + index], new)

    def _attributes(self, nodes: list[ir.Node], kind: str) -> list[ir.Attr]:
        kept = [a for name, a in nodes[-1].attributes.items() if name != "label" or len(nodes) == 1]
        ratio = (between(nodes[0], nodes[1]) or 0.0) if len(nodes) > 1 else 0.0
        mode = ir.AttrString("mode", kind)
        return [*kept, mode, ir.AttrInt64("layers", len(nodes)), ir.AttrFloat32("dropout", ratio)]

    def _give_states(self, states: Sequence[ir.Value], stacked: ir.Value, node: ir.Node) -> None:
        """Whoever stacks all states in order reads them stacked, whoever reads one of them a row."""
        for whole in list(_stacks(states)):
            ir.convenience.replace_all_uses_with(whole, stacked, replace_graph_outputs=True)
        for index, state in enumerate(states):
            if not state.is_graph_output() and not any(user.outputs for user, _ in state.uses()):
                continue
            row = self._made("Gather", [stacked, self._constant(index)], state, node, axis=0)
            ir.convenience.replace_all_uses_with(state, row, replace_graph_outputs=True)

    def _stacked(self, states: Sequence[ir.Value], at: ir.Node) -> ir.Value:
        """Initial states as one tensor: the one that they are rows of, or a new one."""
        rows = [_row(state) for state in states]
        sources = {row[0] for row in rows if row is not None}
        whole = next(iter(sources), None)
        counted = [row[1] for row in rows if row is not None] == list(range(len(states)))
        if counted and len(sources) == 1 and whole.shape is not None and whole.shape[0] == len(states):
            return whole
        batch, hidden = states[0].shape
        axes = self._constant([0])
        like = ir.Value(shape=ir.Shape([1, batch, hidden]), type=states[0].type)
        parts = [self._made("Unsqueeze", [state, axes], like, at) for state in states]
        like = ir.Value(shape=ir.Shape([len(states), batch, hidden]), type=states[0].type)
        return parts[0] if len(parts) == 1 else self._made("Concat", parts, like, at, axis=0)

    def _made(self, op: str, inputs: list, like: ir.Value, at: ir.Node, **attributes: int) -> ir.Value:
        """A node beside `at`: before it what it reads, behind it what reads it."""
        self._count += 1
        out = ir.Value(name=f"{at.name}_{op.lower()}_stacked_{self._count}", shape=like.shape, type=like.type)
        attrs = [ir.AttrInt64(name, value) for name, value in attributes.items()]
        props = {key: at.metadata_props[key] for key in (SCOPE, SOURCE) if key in at.metadata_props}
        node = ir.Node("", op, inputs, attrs, outputs=[out], name=out.name, metadata_props=props)
        if any(value in inputs for value in at.outputs):
            self.graph.insert_after(at, node)
        else:
            self.graph.insert_before(at, node)
        return out

    def _constant(self, content: list[int] | int) -> ir.Value:
        array = np.asarray(content, dtype=np.int64)
        value = ir.Value(
            name=f"stacked_constant_{len(self.root.initializers)}",
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.INT64),
            const_value=ir.tensor(array),
        )
        value.metadata_props[KIND] = "constant"
        self.root.register_initializer(value)
        return value


def _row(state: ir.Value) -> tuple[ir.Value, int] | None:
    """(stacked states, index) of a state that is taken out of them."""
    node = state.producer()
    if node is None or node.op_type != "Gather" or node.attributes["axis"].as_int() != 0:
        return None
    index = constant_of(node.inputs[1])
    return (node.inputs[0], int(index)) if index is not None and index.ndim == 0 else None


def _stacks(states: Sequence[ir.Value]) -> Iterator[ir.Value]:
    """Values that are all the states in order, stacked along a new first axis."""
    for user, _ in states[0].uses():
        if user.op_type != "Unsqueeze" or _axes(user) != [0]:
            continue
        if len(states) == 1:
            yield user.outputs[0]
        for concat, position in user.outputs[0].uses():
            if concat.op_type != "Concat" or position != 0 or concat.attributes["axis"].as_int() != 0:
                continue
            parts = [part.producer() for part in concat.inputs]
            if len(parts) == len(states) and all(
                part is not None and part.op_type == "Unsqueeze" and _axes(part) == [0] and part.inputs[0] is state
                for part, state in zip(parts, states, strict=True)
            ):
                yield concat.outputs[0]


def _axes(node: ir.Node) -> list[int] | None:
    axes = constant_of(node.inputs[1])
    return None if axes is None else axes.reshape(-1).tolist()
