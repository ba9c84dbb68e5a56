"""Sequences of tensors dissolved: where their structure is known they are their tensors, else one tensor of all.

A sequence that is built, cut or changed at known places becomes the list of its tensors. One that is cut along an axis
of unknown size, or that a loop makes by adding a tensor of one shape in every turn, becomes a tensor that is read by
index. What is left is refused by the rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from porter.converters.graph.canonical import constant_of, new_constant
from porter.converters.graph.nesting import everywhere, passed_on, replace_results, set_outputs, subgraphs

_OPERATORS = {"SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength"}
_OPERATORS |= {"SplitToSequence", "ConcatFromSequence"}
_MAKERS = {"SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence"}


@dataclass(frozen=True)
class Stack:
    """The slices of one tensor along an axis, which they keep with size one if `kept`."""

    tensor: ir.Value
    axis: int
    kept: bool


Pieces = list[ir.Value] | Stack


def is_sequence(value: ir.Value | None) -> bool:
    """Whether a value is a sequence of tensors."""
    return value is not None and isinstance(value.type, ir.SequenceType)


def _mark(graph: ir.Graph) -> None:
    """Say of every sequence that it is one: ONNX's inference does not reach all of them."""

    def mark(value: ir.Value, source: ir.Value | None) -> None:
        if not is_sequence(value):
            dtype = source.dtype if source is not None and source.dtype is not None else ir.DataType.FLOAT
            value.type = ir.SequenceType(ir.TensorType(dtype))
            value.shape = None

    for node in graph:
        bodies = list(subgraphs(node).values())
        if node.op_type == "Loop":
            for value, formal in zip(node.inputs[2:], bodies[0].inputs[2:], strict=True):
                if is_sequence(value):
                    mark(formal, value)
        for body in bodies:
            _mark(body)
        offset = 1 if node.op_type == "Loop" else 0  # a loop's body gives its condition first
        for body in bodies:
            for result, out in zip(list(body.outputs)[offset:], node.outputs, strict=False):
                if is_sequence(result):
                    mark(out, result)
        if node.op_type in _MAKERS or (node.op_type == "Identity" and is_sequence(node.inputs[0])):
            mark(node.outputs[0], node.inputs[0] if node.inputs else None)


def dissolve_sequences(model: ir.Model) -> bool:
    """Rewrite in place what is known of sequences; whether there was any."""
    if not any(node.op_type in _OPERATORS for node in everywhere(model.graph)):
        return False
    _mark(model.graph)
    run = Dissolver(model)
    run.visit(model.graph)
    run.outputs()
    return run.changed


class Dissolver:
    """One pass over a model: what each sequence is made of."""

    def __init__(self, model: ir.Model) -> None:
        self.model, self.root = model, model.graph
        self.pieces: dict[ir.Value, Pieces] = {}
        self.changed = False
        self._count = 0
        shapes = [value.shape for value in self.root.inputs if value.shape is not None]
        self._fixed = {str(size) for shape in shapes for size in shape if not isinstance(size, int)}

    def visit(self, graph: ir.Graph) -> None:
        """Settle the nodes of a graph in their order."""
        for node in list(graph):
            if node.domain:
                continue
            if node.op_type in _OPERATORS:
                self._operator(node)
            elif node.op_type == "Identity" and is_sequence(node.inputs[0]) and self.of(node.inputs[0]) is not None:
                self.pieces[node.outputs[0]] = self.of(node.inputs[0])
            elif node.op_type == "Loop":
                self._loop(node)
            else:
                for body in subgraphs(node).values():
                    self.visit(body)
                if node.op_type == "If":
                    self._branches(node)

    def _operator(self, node: ir.Node) -> None:
        match node.op_type:
            case "SequenceConstruct":
                self.pieces[node.outputs[0]] = [value for value in node.inputs if value is not None]
            case "SequenceEmpty":
                self.pieces[node.outputs[0]] = []
            case "SequenceInsert":
                self._insert(node)
            case "SequenceErase":
                self._erase(node)
            case "SequenceAt":
                self._at(node)
            case "SequenceLength":
                self._length(node)
            case "SplitToSequence":
                self._split(node)
            case "ConcatFromSequence":
                self._concat(node)

    def of(self, value: ir.Value | None) -> Pieces | None:
        """What a sequence is made of; None where that is not known."""
        return self.pieces.get(value)

    def outputs(self) -> None:
        """A list that the model returns is returned as its tensors."""
        lists = [self.of(value) for value in self.root.outputs]
        values: list[ir.Value] = []
        for value, made in zip(list(self.root.outputs), lists, strict=True):
            values += made if isinstance(made, list) else [value]
        if any(isinstance(made, list) for made in lists):
            set_outputs(self.root, values)
            self.changed = True

    # ---- making nodes ----

    def make(
        self, at: ir.Node, op_type: str, inputs: list[ir.Value | None], outputs: int = 1, **attributes: object
    ) -> list[ir.Value]:
        """The results of a new node before `at`."""
        self._count += 1
        name = f"{at.name}_{op_type.lower()}_{self._count}"
        made = [ir.Value(name=f"{name}_{index}") for index in range(outputs)]
        attrs = [ir.convenience.convert_attribute(key, value) for key, value in attributes.items()]  # type: ignore[arg-type]
        node = ir.Node("", op_type, inputs, attrs, outputs=made, name=name, metadata_props=dict(at.metadata_props))
        assert at.graph is not None
        at.graph.insert_before(at, node)
        return made

    def constant(self, content: object) -> ir.Value:
        return new_constant(self.root, np.asarray(content, dtype=np.int64))

    def replace(self, node: ir.Node, value: ir.Value) -> None:
        """`value` for the result of a node, which goes."""
        replace_results(node, {node.outputs[0]: value})
        self.changed = True

    # ---- lists ----

    def _insert(self, node: ir.Node) -> None:
        made, place = self.of(node.inputs[0]), position(node, 2)
        if isinstance(made, list) and place is not None:
            changed = list(made)
            changed.insert(len(made) if place == LAST else int(place), node.inputs[1])
            self._listed(node, changed)

    def _erase(self, node: ir.Node) -> None:
        made, place = self.of(node.inputs[0]), position(node, 1)
        if isinstance(made, list) and place is not None:
            changed = list(made)
            del changed[-1 if place == LAST else int(place)]
            self._listed(node, changed)

    def _at(self, node: ir.Node) -> None:
        made, index = self.of(node.inputs[0]), constant_of(node.inputs[1])
        if isinstance(made, list) and index is not None:
            self.replace(node, made[int(index.reshape(-1)[0])])
        elif isinstance(made, list) and alike(made):
            axes = self.constant([0])
            rows = [self.make(node, "Unsqueeze", [value, axes])[0] for value in made]
            (whole,) = self.make(node, "Concat", rows, axis=0)
            self.replace(node, self.make(node, "Gather", [whole, node.inputs[1]], axis=0)[0])
        elif isinstance(made, Stack):
            (item,) = self.make(node, "Gather", [made.tensor, node.inputs[1]], axis=made.axis)
            if made.kept:
                (item,) = self.make(node, "Unsqueeze", [item, self.constant([made.axis])])
            self.replace(node, item)

    def _length(self, node: ir.Node) -> None:
        made = self.of(node.inputs[0])
        if isinstance(made, list):
            self.replace(node, self.constant(len(made)))
        elif isinstance(made, Stack):
            (size,) = self.make(node, "Shape", [made.tensor], start=made.axis, end=made.axis + 1)
            (number,) = self.make(node, "Squeeze", [size, self.constant([0])])
            self.replace(node, self.make(node, "Cast", [number], to=int(ir.DataType.INT64))[0])

    def _concat(self, node: ir.Node) -> None:
        made, axis = self.of(node.inputs[0]), node.attributes["axis"].as_int()
        new = bool(node.attributes["new_axis"].as_int()) if "new_axis" in node.attributes else False
        if isinstance(made, list) and made:
            if new:
                axes = self.constant([axis])
                made = [self.make(node, "Unsqueeze", [value, axes])[0] for value in made]
            self.replace(node, self.make(node, "Concat", list(made), axis=axis)[0])
        elif isinstance(made, Stack):
            whole = self._joined(node, made, axis, new)
            if whole is not None:
                self.replace(node, whole)

    def _joined(self, node: ir.Node, made: Stack, axis: int, new: bool) -> ir.Value | None:
        """The slices of a tensor put together again, along another axis perhaps."""
        shape = made.tensor.shape
        if shape is None:
            return None
        rank = len(shape)  # of the stack: its slices have one axis less, if they do not keep it
        if made.kept:
            return made.tensor if not new and axis % rank == made.axis else None
        axis %= rank if new else max(rank - 1, 1)
        rest = [other for other in range(rank) if other != made.axis]
        perm = [*rest[:axis], made.axis, *rest[axis:]]
        moved = made.tensor
        if perm != list(range(rank)):
            (moved,) = self.make(node, "Transpose", [moved], perm=perm)
        if new:
            return moved
        (before,) = self.make(node, "Shape", [moved], start=0, end=axis)
        (after,) = self.make(node, "Shape", [moved], start=axis + 2)
        parts = [part for part, there in ((before, axis), (self.constant([-1]), 1), (after, rank - axis - 2)) if there]
        sizes = self.make(node, "Concat", list(parts), axis=0)[0] if len(parts) > 1 else parts[0]
        return self.make(node, "Reshape", [moved, sizes], allowzero=0)[0]

    def _split(self, node: ir.Node) -> None:
        x, split = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
        if x is None or x.shape is None:
            return
        axis = node.attributes["axis"].as_int() % len(x.shape)
        kept = split is not None or "keepdims" not in node.attributes or bool(node.attributes["keepdims"].as_int())
        sizes = _sizes(split, x.shape[axis])
        singly = split is None or (constant_of(split) is not None and constant_of(split).tolist() == 1)
        if singly and (sizes is None or _indexed(node.outputs[0])):
            self.pieces[node.outputs[0]] = Stack(x, axis, kept)
            return
        if sizes is None:
            return
        count, cuts = (sizes, split) if isinstance(sizes, int) else (len(sizes), self.constant(sizes))
        made = self.make(node, "Split", [x, cuts], count, axis=axis)
        if not kept:
            made = [self.make(node, "Squeeze", [piece, self.constant([axis])])[0] for piece in made]
        self._listed(node, made)

    def _listed(self, node: ir.Node, made: list[ir.Value]) -> None:
        """The list of tensors in place of a node that changes or cuts something."""
        self.replace(node, self._as_sequence(node, node.outputs[0], made))

    # ---- branches and loops ----

    def rebuild(
        self,
        node: ir.Node,
        inputs: list[ir.Value | None],
        outputs: list[ir.Value],
        results: list[ir.Value | Pieces],
    ) -> None:
        """The node with other inputs and outputs; `results` are what its old outputs are now."""
        new = ir.Node(
            node.domain, node.op_type, inputs, node.attributes.values(), outputs=outputs, name=node.name,
            metadata_props=dict(node.metadata_props),
        )  # fmt: skip
        assert node.graph is not None
        node.graph.insert_before(node, new)
        for old, result in zip(node.outputs, results, strict=True):
            value = result if isinstance(result, ir.Value) else self._as_sequence(node, old, result)
            ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
            old.name = f"{old.name}_before"
        node.graph.remove(node, safe=True)
        self.changed = True

    def _as_sequence(self, at: ir.Node, old: ir.Value, pieces: Pieces) -> ir.Value:
        """Pieces as a sequence, for what still takes it as one."""
        if isinstance(pieces, Stack):
            (new,) = self.make(at, "SplitToSequence", [pieces.tensor], axis=pieces.axis, keepdims=int(pieces.kept))
        elif pieces:
            (new,) = self.make(at, "SequenceConstruct", list(pieces))
        else:
            (new,) = self.make(at, "SequenceEmpty", [])
        new.type = old.type
        self.pieces[new] = pieces
        return new

    def _branches(self, node: ir.Node) -> None:
        """Lists of equal length that all branches give are given as their tensors."""
        bodies = list(subgraphs(node).values())
        given: list[list[ir.Value]] = [[] for _ in bodies]
        outputs: list[ir.Value] = []
        results: list[ir.Value | Pieces] = []
        for index, out in enumerate(node.outputs):
            ends = [body.outputs[index] for body in bodies]
            lists = [self.of(passed_on(end)) for end in ends]
            first = lists[0]
            if isinstance(first, list) and all(isinstance(each, list) and len(each) == len(first) for each in lists):
                new = [ir.Value(name=f"{out.name}_{i}", type=value.type) for i, value in enumerate(first)]
                results.append(new)
            else:
                new, lists = [ir.Value(name=out.name, shape=out.shape, type=out.type)], [[end] for end in ends]
                results.append(new[0])
            outputs += new
            for values, each in zip(given, lists, strict=True):
                assert isinstance(each, list)
                values += each
        if any(isinstance(result, list) for result in results):
            for body, values in zip(bodies, given, strict=True):
                set_outputs(body, values)
            self.rebuild(node, list(node.inputs), outputs, results)

    def lasting(self, value: ir.Value) -> bool:
        """Whether every size of a value is a number or made of sizes of the model's inputs: the same in every turn."""
        sizes = value.shape if value.shape is not None else [None]
        names = {
            name for size in sizes for name in re.findall(r"[^\W\d]\w*", "" if isinstance(size, int) else str(size))
        }
        return all(size is not None and str(size) != "None" for size in sizes) and names <= self._fixed

    def _loop(self, node: ir.Node) -> None:
        from porter.converters.graph.sequence_loops import dissolve_loop

        if not dissolve_loop(self, node):
            for body in subgraphs(node).values():
                self.visit(body)


# ***** facts *****

# Where a sequence is changed if nothing else is said.
LAST = "last"


def position(node: ir.Node, index: int) -> int | str | None:
    """A position in a sequence: a number, `LAST` where none is given, None where it is computed."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        return LAST
    array = constant_of(value)
    return None if array is None else int(array.reshape(-1)[0])


def _indexed(sequence: ir.Value) -> bool:
    """Whether one of a sequence's tensors is chosen at run time."""
    users = [user for user, _ in sequence.uses() if user.op_type == "SequenceAt"]
    return any(constant_of(user.inputs[1]) is None for user in users)


def alike(values: list[ir.Value]) -> bool:
    """Whether tensors are known to have one shape and type."""
    kinds = {(value.dtype, tuple(map(str, value.shape)) if value.shape is not None else None) for value in values}
    return len(kinds) == 1 and None not in next(iter(kinds)) and "None" not in next(iter(kinds))[1]


def _sizes(split: ir.Value | None, total: int | ir.SymbolicDim) -> list[int] | int | None:
    """The sizes of the pieces of a split, their number where the sizes are computed, None where that is not known."""
    known = constant_of(split)
    if split is not None and known is None:
        count = split.shape[0] if split.shape is not None and len(split.shape) == 1 else None
        return count if isinstance(count, int) else None
    if known is not None and known.ndim == 1:
        return [int(size) for size in known]
    if not isinstance(total, int):
        return None
    step = int(known) if known is not None else 1
    return [min(step, total - start) for start in range(0, total, step)] if total else None
