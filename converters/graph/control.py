"""`If` and `Loop` in the form that is written: branches that are known are taken, loops say when they go on.

ONNX's `Loop` asks for its condition before the first turn and again in every turn. porter's own

    porter::Loop(turns?, carried…; body, condition?) → carried…, stacked…

has a `body` of (number of the turn, carried…) that gives what it hands on and what it gives of one turn, and a
`condition` of what is carried, which is the source's own where both of ONNX's are the same computation. A loop without
one runs `turns` times.
"""

from __future__ import annotations

import json

import numpy as np
import onnx_ir as ir

from porter.converters.graph.canonical import canonicalize, computed, constant_of, new_constant
from porter.converters.graph.loop_shapes import infer_inside_loops
from porter.converters.graph.nesting import (
    everywhere,
    function_facts,
    passed_on,
    put_in_place,
    replace_results,
    set_outputs,
    subgraphs,
)
from porter.converters.graph.sequences import dissolve_sequences
from porter.converters.opset import FUNCTION

DOMAIN = "porter"
# More turns than any loop makes: exporters write it where there is no limit.
_UNLIMITED = 2**31 - 1


def settle(model: ir.Model) -> None:
    """Bring the control flow of a canonical model into porter's form, in place."""
    infer_inside_loops(model)
    while take_known_branches(model) or dissolve_sequences(model):
        canonicalize(model)
        infer_inside_loops(model)
    normalize_loops(model)


def take_known_branches(model: ir.Model) -> bool:
    """Put the branch of every `If` whose condition is a constant in its place; whether there was one."""
    taken = False
    for node in list(everywhere(model.graph)):
        condition = constant_of(node.inputs[0]) if node.op_type == "If" and not node.domain else None
        if condition is None or node.graph is None:
            continue
        branch = subgraphs(node)["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        results = put_in_place(node, branch, [])
        replace_results(node, dict(zip(node.outputs, results, strict=True)))
        taken = True
    return taken


def normalize_loops(model: ir.Model) -> None:
    """Rewrite every `Loop` as porter's own, in place."""
    for node in list(everywhere(model.graph)):
        if node.op_type == "Loop" and not node.domain:
            _Loop(model.graph, node).rewrite()
    if any(node.op_type == "Loop" for node in everywhere(model.graph)):
        model.graph.opset_imports.setdefault(DOMAIN, 1)


class _Loop:
    """One loop on its way from ONNX's form to porter's."""

    def __init__(self, root: ir.Graph, node: ir.Node) -> None:
        self.root, self.node = root, node
        self.body = subgraphs(node)["body"]
        self.turns, self.first = node.inputs[0], node.inputs[1]
        self.initial = list(node.inputs[2:])
        self.facts = function_facts(self.body)

    def rewrite(self) -> None:
        """Put the new node in place of the old one."""
        body = self.body
        limit = constant_of(self.turns)
        if limit is not None and int(limit.reshape(-1)[0]) >= _UNLIMITED:
            self.turns = None
        again = passed_on(body.outputs[0])
        if again is body.inputs[1] and self.first is not None:  # it stays what it is
            again = passed_on(self.first)
        ir.convenience.replace_all_uses_with(body.inputs[1], new_constant(self.root, np.asarray(True)))
        condition = self._condition(again)
        names = self.facts.get("parameters", [])
        del body.inputs[1], names[1:2]
        del body.outputs[0]
        outputs = list(self.node.outputs)
        if condition is None and not self._endless(again):
            self._carry_condition(again, outputs)
            names += [""] * bool(names)
            formals = self._formals()
            condition = self._copied([], formals, formals[-1], {})
        if self.facts:
            body.metadata_props[FUNCTION] = json.dumps({**self.facts, "parameters": names})
        self._replace(condition, outputs)

    def _endless(self, again: ir.Value) -> bool:
        """Whether only the number of turns ends the loop: it has no condition, or one that always holds."""
        known = [constant_of(self.first), constant_of(again)]
        return self.first is None or all(array is not None and bool(array.reshape(-1)[0]) for array in known)

    # ---- the condition ----

    def _condition(self, again: ir.Value) -> ir.Graph | None:
        """The condition as a function of what is carried, where that is what the loop computes before it and in it."""
        if self._endless(again):
            return None
        if again is passed_on(self.first):
            return self._copied([], self._formals(), again, {})
        carried = {passed_on(value): index for index, value in enumerate(self.body.outputs[1:][: len(self.initial)])}
        nodes: dict[ir.Node, None] = {}
        if constant_of(again) is not None or not self._same(again, self.first, carried, nodes):
            return None
        formals = self._formals()
        places = {value: formals[index] for value, index in carried.items()}
        ordered = [node for node in self.body if node in nodes]
        return self._copied(ordered, formals, again, places)

    def _same(self, inner: ir.Value, outer: ir.Value, carried: dict[ir.Value, int], nodes: dict[ir.Node, None]) -> bool:
        """Whether `inner`, computed of what a turn hands on, is what `outer` is of the initial values."""
        inner, outer = passed_on(inner), passed_on(outer)
        index = carried.get(inner)
        if index is not None:
            start = self.initial[index]
            return start is not None and (passed_on(start) is outer or _equal(constant_of(start), constant_of(outer)))
        producer = inner.producer()
        if producer is None or producer.graph is not self.body:
            return inner is outer or _equal(constant_of(inner), constant_of(outer))
        if subgraphs(producer):
            return False
        nodes[producer] = None
        known = constant_of(outer)
        if known is not None:
            return _equal(self._at_first(inner, carried, nodes), known)
        other = outer.producer()
        if other is None or (producer.op_type, producer.domain) != (other.op_type, other.domain):
            return False
        same = {k: v.value for k, v in producer.attributes.items()} == {k: v.value for k, v in other.attributes.items()}
        if not same or len(producer.inputs) != len(other.inputs) or inner.index() != outer.index():
            return False
        pairs = zip(producer.inputs, other.inputs, strict=True)
        return all(a is b or (a is not None and b is not None and self._same(a, b, carried, nodes)) for a, b in pairs)

    def _at_first(self, value: ir.Value, carried: dict[ir.Value, int], nodes: dict[ir.Node, None]) -> np.ndarray | None:
        """What a value of the body is of the initial values, where those are constants."""
        value = passed_on(value)
        if value in carried:
            return constant_of(self.initial[carried[value]])
        producer = value.producer()
        if producer is None or producer.graph is not self.body:
            return constant_of(value)
        nodes[producer] = None
        operands = [self._at_first(each, carried, nodes) if each is not None else None for each in producer.inputs]
        missing = any(a is None for a, v in zip(operands, producer.inputs, strict=True) if v is not None)
        if missing or subgraphs(producer) or producer.domain or len(producer.outputs) != 1:
            return None
        return computed(producer, [operand for operand in operands if operand is not None])[0]

    def _formals(self) -> list[ir.Value]:
        """New values for what is carried."""
        inside = self.body.inputs[-len(self.initial) :] if self.initial else []
        return [ir.Value(name=f"{value.name}_asked", shape=value.shape, type=value.type) for value in inside]

    def _copied(
        self,
        nodes: list[ir.Node],
        formals: list[ir.Value],
        result: ir.Value,
        places: dict[ir.Value, ir.Value],
    ) -> ir.Graph:
        """A condition graph with copies of `nodes` in which `places` stand for others."""
        copied = dict(places)
        inner: list[ir.Node] = []
        for node in nodes:
            outputs = [ir.Value(name=f"{o.name}_asked", shape=o.shape, type=o.type) for o in node.outputs]
            inputs = [copied.get(passed_on(v), v) if v is not None else None for v in node.inputs]
            copied.update(zip(node.outputs, outputs, strict=True))
            props = dict(node.metadata_props)
            made = ir.Node(
                node.domain, node.op_type, inputs, node.attributes.values(), outputs=outputs, metadata_props=props
            )
            made.name = f"{node.name}_asked"
            inner.append(made)
        end = ir.Value(name=f"{self.node.name}_goes_on", shape=ir.Shape([]), type=ir.TensorType(ir.DataType.BOOL))
        inner.append(
            ir.Node("", "Identity", [copied.get(result, result)], outputs=[end], name=f"{self.node.name}_goes_on")
        )
        graph = ir.Graph(formals, [end], nodes=inner, name=f"{self.body.name}_condition")
        asked = self.facts.get("condition")
        names = self.facts.get("parameters", [])[-len(formals) :] if formals else []
        if asked or names:
            graph.metadata_props[FUNCTION] = json.dumps({"name": asked or "", "parameters": names})
        return graph

    def _carry_condition(self, again: ir.Value, outputs: list[ir.Value]) -> None:
        """The condition as one more value that a turn hands on."""
        count = len(self.initial)
        kind = ir.TensorType(ir.DataType.BOOL)
        self.initial.append(self.first)
        self.body.inputs.append(ir.Value(name=f"{self.node.name}_goes_on_in", shape=ir.Shape([]), type=kind))
        values = list(self.body.outputs)
        set_outputs(self.body, [*values[:count], again, *values[count:]])
        outputs.insert(count, ir.Value(name=f"{self.node.name}_went_on", shape=ir.Shape([]), type=kind))

    # ---- the node ----

    def _replace(self, condition: ir.Graph | None, outputs: list[ir.Value]) -> None:
        node, graph = self.node, self.node.graph
        assert graph is not None
        attributes = [ir.AttrGraph("body", self.body)]
        attributes += [ir.AttrGraph("condition", condition)] if condition is not None else []
        made = [ir.Value(name=out.name, shape=out.shape, type=out.type) for out in outputs]
        new = ir.Node(
            DOMAIN, "Loop", [self.turns, *self.initial], attributes, outputs=made, name=node.name,
            metadata_props=dict(node.metadata_props),
        )  # fmt: skip
        graph.insert_before(node, new)
        for old, value in zip(outputs, made, strict=True):
            if old.producer() is node:
                ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
                old.name = f"{old.name}_replaced"
        graph.remove(node, safe=True)


def _equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b)
