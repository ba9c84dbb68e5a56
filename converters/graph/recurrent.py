"""Recurrent nodes in the form that target frameworks have: one sequence, one state vector per direction.

ONNX's LSTM, GRU and RNN give their output one axis per direction and take and give states stacked over directions,
so exporters surround them with Transpose, Reshape, Slice and Concat. Here each becomes one node of the domain
"porter" with inputs (x, w, r, b, *states) and outputs (sequence, *states):

    sequence   (time, batch, directions · hidden)
    states     (batch, hidden) each: h (and c for LSTM) of the forward direction, then of the backward one

Initial states that are zero by construction are left out, since that is what every framework starts from. A node with
lengths of its sequences or with peepholes becomes a GeneralLSTM, GeneralGRU or GeneralRNN, whose inputs are
(x, w, r, b, lengths, peepholes, *states).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from porter.converters.graph.canonical import constant_of
from porter.converters.graph.nesting import graphs
from porter.converters.graph.recurrent_modules import DOMAIN, copy_place, label, several
from porter.converters.opset import KIND

_STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
_KEEPS_ZERO = {"Expand", "Slice", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Concat", "Identity", "Cast", "Tile"}


def restore_recurrent(model: ir.Model) -> None:
    """Rewrite every LSTM, GRU and RNN in place."""
    for graph in list(graphs(model.graph)):
        nodes = [node for node in graph if node.op_type in _STATES and not node.domain]
        if not nodes:
            continue
        rewriter = _Rewriter(graph, model.graph)
        made = [rewriter.rewrite(node) for node in nodes]
        for group in several(made):
            label(graph, group)
        rewriter.simplify_rows()
        model.graph.opset_imports.setdefault(DOMAIN, 1)
        common.RemoveUnusedNodesPass()(model)


def is_zero(value: ir.Value | None) -> bool:
    """Whether a value is zero by the graph's structure: constant zeros, expanded, cut or joined. No parameter is."""
    if value is None:
        return False
    array = constant_of(value)
    if array is not None:
        return not array.any()
    node = value.producer()
    if node is None or node.domain:
        return False
    if node.op_type == "ConstantOfShape":
        fill = node.attributes.get("value")
        return fill is None or not fill.as_tensor().numpy().any()
    if node.op_type == "Concat":
        return all(is_zero(part) for part in node.inputs)
    return node.op_type in _KEEPS_ZERO and is_zero(node.inputs[0])


class _Rewriter:
    """Makes the new nodes, each next to the node it replaces and under the same module."""

    def __init__(self, graph: ir.Graph, root: ir.Graph) -> None:
        self.graph = graph
        self.root = root  # which holds all constants
        self._constants: dict[tuple[int, ...] | int, ir.Value] = {}
        self._rows: dict[tuple[ir.Value, int], ir.Value] = {}
        self._count = 0

    def _constant(self, content: list[int] | int) -> ir.Value:
        key = content if isinstance(content, int) else tuple(content)
        if key not in self._constants:
            array = np.asarray(content, dtype=np.int64)
            name = f"recurrent_constant_{len(self.root.initializers)}"
            value = ir.Value(
                name=name,
                shape=ir.Shape(array.shape),
                type=ir.TensorType(ir.DataType.INT64),
                const_value=ir.tensor(array),
            )
            value.metadata_props[KIND] = "constant"
            self.root.register_initializer(value)
            self._constants[key] = value
        return self._constants[key]

    def _make(
        self,
        at: ir.Node,
        op_type: str,
        inputs: list[ir.Value | None],
        shape: list,
        *,
        after: bool = True,
        **attributes: object,
    ) -> ir.Value:
        """A node beside `at`, with its module and source line."""
        self._count += 1
        assert inputs[0] is not None
        out = ir.Value(name=f"{at.name}_{op_type.lower()}_{self._count}", type=inputs[0].type, shape=ir.Shape(shape))
        attrs = [ir.convenience.convert_attribute(name, value) for name, value in attributes.items()]  # type: ignore[arg-type]
        node = ir.Node("", op_type, inputs, attrs, outputs=[out], name=f"{at.name}_{op_type}_{self._count}")
        copy_place(at, node)
        if after:
            self.graph.insert_after(at, node)
        else:
            self.graph.insert_before(at, node)
        return out

    def rewrite(self, node: ir.Node) -> ir.Node:
        """The new node; the old one is gone, its outputs rebuilt for whoever still needs them in ONNX's form."""
        count = _STATES[node.op_type]
        directions = 2 if node.attributes["direction"].as_string() == "bidirectional" else 1
        batch_first = bool(node.attributes["layout"].as_int())
        x, w, r, b, lengths, hidden_state, cell_state, peepholes = [*node.inputs, *[None] * 8][:8]
        assert x is not None and r is not None and r.shape is not None and x.shape is not None
        hidden = r.shape[-1]
        assert isinstance(hidden, int)
        if batch_first:
            x = self._make(node, "Transpose", [x], [x.shape[1], x.shape[0], x.shape[2]], after=False, perm=[1, 0, 2])
        time, batch = x.shape[0], x.shape[1]
        states: list[ir.Value] = []
        given = (hidden_state, cell_state)[:count]
        if not all(state is None or is_zero(state) for state in given):
            for direction in range(directions):
                states += self._initial(node, given, direction, batch_first, [batch, hidden])
        shapes = [[time, batch, directions * hidden], *[[batch, hidden]] * (count * directions)]
        names = [f"{node.name}_{name}" for name in _output_names(count, directions)]
        outputs = [ir.Value(name=n, type=x.type, shape=ir.Shape(s)) for n, s in zip(names, shapes, strict=True)]
        kept = {name: attr for name, attr in node.attributes.items() if name not in ("layout", "hidden_size")}
        peepholes = None if peepholes is None or is_zero(peepholes) else peepholes
        general = lengths is not None or peepholes is not None
        op_type, more = (f"General{node.op_type}", [lengths, peepholes]) if general else (node.op_type, [])
        read = [x, w, r, b, *more, *states]
        new = ir.Node(DOMAIN, op_type, read, list(kept.values()), outputs=outputs, name=node.name)
        copy_place(node, new)
        self.graph.insert_before(node, new)
        self._replace_sequence(node, new, directions, hidden, batch_first)
        for index, old in enumerate(node.outputs[1:]):
            if old.uses() or old.is_graph_output():
                self._replace_state(new, old, outputs[1 + index :: count], batch_first)
        self.graph.remove(node, safe=True)
        return new

    def _initial(
        self, node: ir.Node, given: Sequence[ir.Value | None], direction: int, batch_first: bool, shape: list
    ) -> list[ir.Value]:
        """The first states of a direction; one that is not given is zeros of the other's sizes."""
        states: list[ir.Value | None] = [
            None
            if state is None
            else self._make(node, "Gather", [state, self._constant(direction)], shape, after=False, axis=1)
            if batch_first
            else self.row(state, direction, node)
            for state in given
        ]
        like = next(state for state in states if state is not None)
        return [self._zeros(node, like) if state is None else state for state in states]

    def _zeros(self, node: ir.Node, like: ir.Value) -> ir.Value:
        assert like.shape is not None and like.dtype is not None
        sizes = self._make(node, "Shape", [like], [len(like.shape)], after=False, start=0)
        sizes.type = ir.TensorType(ir.DataType.INT64)
        fill = ir.tensor(np.zeros(1, like.dtype.numpy()))
        zeros = self._make(node, "ConstantOfShape", [sizes], list(like.shape), after=False, value=fill)
        zeros.type = like.type
        return zeros

    def _replace_sequence(self, node: ir.Node, new: ir.Node, directions: int, hidden: int, batch_first: bool) -> None:
        """A merge of Y's directions, or a squeeze of a single one, is the sequence itself; others get Y rebuilt."""
        y, sequence = node.outputs[0], new.outputs[0]
        if not batch_first:
            for user, _ in list(y.uses()):
                merged = _merged(user, directions)
                if merged is not None and not (merged.is_graph_output() and sequence.is_graph_output()):
                    _replace(self.graph, merged, sequence)
        if not (y.uses() or y.is_graph_output()):
            return
        time, batch, _ = sequence.shape
        if batch_first:
            turned = self._make(new, "Transpose", [sequence], [batch, time, directions * hidden], perm=[1, 0, 2])
            end = self._make(
                turned.producer(),
                "Reshape",
                [turned, self._constant([0, 0, directions, hidden])],
                [batch, time, directions, hidden],
                allowzero=0,
            )
        else:
            apart = self._make(
                new,
                "Reshape",
                [sequence, self._constant([0, 0, directions, hidden])],
                [time, batch, directions, hidden],
                allowzero=0,
            )
            end = self._make(
                apart.producer(), "Transpose", [apart], [time, directions, batch, hidden], perm=[0, 2, 1, 3]
            )
        _replace(self.graph, y, end)

    def _replace_state(self, new: ir.Node, old: ir.Value, states: list[ir.Value], batch_first: bool) -> None:
        """The states stacked as ONNX gives them."""
        axis = 1 if batch_first else 0
        batch, hidden = states[0].shape
        one = [batch, 1, hidden] if batch_first else [1, batch, hidden]
        at, parts = new, []
        for state in states:
            parts.append(self._make(at, "Unsqueeze", [state, self._constant([axis])], one))
            at = parts[-1].producer()
        end = parts[0]
        if len(parts) > 1:
            shape = [batch, len(parts), hidden] if batch_first else [len(parts), batch, hidden]
            end = self._make(at, "Concat", [*parts], shape, axis=axis)
        _replace(self.graph, old, end)

    # ---- rows of stacked states ----

    def row(self, value: ir.Value, index: int, at: ir.Node) -> ir.Value:
        """`value[index]`, found where it was stacked or else taken out before `at`."""
        found = _source_row(value, index)
        if isinstance(found, ir.Value):
            return found
        value, index = found
        if (value, index) not in self._rows:
            assert value.shape is not None
            self._rows[value, index] = self._make(
                at, "Gather", [value, self._constant(index)], list(value.shape[1:]), after=False, axis=0
            )
        return self._rows[value, index]

    def simplify_rows(self) -> None:
        """`states[-1]`, a squeeze of a single state and the like read what was stacked; stacks of stacks become one."""
        for node in list(self.graph):
            self._flatten_stack(node)
            index = _row_taken(node)
            if index is None:
                continue
            assert node.inputs[0] is not None
            found = _source_row(node.inputs[0], index)
            taken = node.outputs[0]
            if isinstance(found, ir.Value) and not (taken.is_graph_output() and _is_output(found)):
                _replace(self.graph, taken, found)

    def _flatten_stack(self, node: ir.Node) -> None:
        """A stack of stacks as one Concat of single rows."""
        out = node.outputs[0]
        if (
            node.op_type != "Concat"
            or node.attributes["axis"].as_int() != 0
            or out.shape is None
            or len(out.shape) != 3
        ):
            return
        parts = [part.producer() for part in node.inputs if part is not None]
        if not any(part is not None and part.op_type == "Concat" for part in parts) or not isinstance(
            out.shape[0], int
        ):
            return
        rows = [_source_row(out, index) for index in range(out.shape[0])]
        if not all(isinstance(row, ir.Value) for row in rows):
            return
        singles = [
            self._make(node, "Unsqueeze", [row, self._constant([0])], [1, *out.shape[1:]], after=False)  # type: ignore[list-item]
            for row in rows
        ]
        stack = self._make(node, "Concat", [*singles], list(out.shape), axis=0)
        _replace(self.graph, out, stack)


def _is_output(value: ir.Value) -> bool:
    """Whether it cannot become one more output of the graph: outputs are nodes' own and each once."""
    return value.is_graph_output() or value.producer() is None


def _output_names(states: int, directions: int) -> list[str]:
    ends = ["_forward", "_backward"] if directions == 2 else [""]
    return ["sequence", *(f"{state}{end}" for end in ends for state in ("hidden", "cell")[:states])]


def _replace(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """`new` for `old` everywhere, among the graph's outputs too."""
    name = old.name if old.is_graph_output() else None
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    if name is not None:
        old.name = f"{name}_stacked"
        new.name = name


def _merged(user: ir.Node, directions: int) -> ir.Value | None:
    """The (time, batch, directions · hidden) value that a user of Y makes, if that is what it does."""
    if user.op_type == "Squeeze" and directions == 1:
        axes = constant_of(user.inputs[1]) if len(user.inputs) > 1 else None
        return user.outputs[0] if axes is not None and axes.tolist() == [1] else None
    if user.op_type != "Transpose" or list(user.attributes["perm"].as_ints()) != [0, 2, 1, 3]:
        return None
    uses = list(user.outputs[0].uses())
    if len(uses) != 1 or uses[0][0].op_type != "Reshape" or user.outputs[0].is_graph_output():
        return None
    out, before = uses[0][0].outputs[0], user.outputs[0].shape
    if out.shape is None or before is None or len(out.shape) != 3:
        return None
    kept = [str(a) == str(b) for a, b in zip(out.shape[:2], before[:2], strict=True)]
    return out if all(kept) and out.shape[2] == before[2] * before[3] else None


def _bounds(node: ir.Node) -> tuple[int, int] | None:
    """Start and size of a Slice along axis 0 alone, in steps of one."""
    constants = [constant_of(value) for value in node.inputs[1:]]
    if len(constants) < 3 or any(array is None or array.size != 1 for array in constants):
        return None
    start, end, axis, *step = [int(array.reshape(-1)[0]) for array in constants if array is not None]
    size = node.inputs[0].shape[0] if node.inputs[0] is not None and node.inputs[0].shape is not None else None
    if axis != 0 or (step and step[0] != 1) or not isinstance(size, int):
        return None
    first, last, _ = slice(start, end).indices(size)
    return first, last - first


def _source_row(value: ir.Value, index: int) -> ir.Value | tuple[ir.Value, int]:
    """The value that was stacked as row `index` of `value`; where there is none, the stack and row that are left."""
    size = value.shape[0] if value.shape is not None and len(value.shape) else None
    if index < 0 and isinstance(size, int):
        index += size
    node = value.producer()
    if node is None or index < 0:
        return value, index
    if node.op_type == "Identity":
        return _source_row(node.inputs[0], index)
    if node.op_type == "Unsqueeze" and index == 0:
        axes = constant_of(node.inputs[1])
        return node.inputs[0] if axes is not None and axes.tolist() == [0] else (value, index)
    if node.op_type == "Slice":
        bounds = _bounds(node)
        return (value, index) if bounds is None else _source_row(node.inputs[0], bounds[0] + index)
    if node.op_type == "Concat" and node.attributes["axis"].as_int() == 0:
        offset = 0
        for part in node.inputs:
            length = part.shape[0] if part is not None and part.shape is not None else None
            if part is None or not isinstance(length, int):
                break
            if index - offset < length:
                return _source_row(part, index - offset)
            offset += length
    return value, index


def _row_taken(node: ir.Node) -> int | None:
    """The row of axis 0 that a Gather or Squeeze takes out."""
    if node.domain or not node.inputs or node.inputs[0] is None or node.inputs[0].producer() is None:
        return None
    if node.op_type == "Gather" and node.attributes["axis"].as_int() == 0:
        index = constant_of(node.inputs[1])
        return int(index) if index is not None and index.ndim == 0 else None
    if node.op_type == "Squeeze" and len(node.inputs) > 1:
        axes = constant_of(node.inputs[1])
        return 0 if axes is not None and axes.tolist() == [0] else None
    return None
