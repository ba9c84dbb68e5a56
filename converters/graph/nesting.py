"""Graphs inside graphs: the bodies of `If`, `Loop`, `Scan` and of porter's own control operators."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import onnx_ir as ir

from porter.converters.opset import FUNCTION


def subgraphs(node: ir.Node) -> dict[str, ir.Graph]:
    """{attribute: graph} of a node's own subgraphs."""
    return {
        name: attribute.as_graph()
        for name, attribute in node.attributes.items()
        if attribute.type == ir.AttributeType.GRAPH
    }


def everywhere(graph: ir.Graph) -> Iterator[ir.Node]:
    """All nodes of a graph and of the graphs inside it, an outer node before those inside it."""
    for node in graph:
        yield node
        for inner in subgraphs(node).values():
            yield from everywhere(inner)


def graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """The graph and all graphs inside it, outer ones first."""
    yield graph
    for node in graph:
        for inner in subgraphs(node).values():
            yield from graphs(inner)


def owners(graph: ir.Graph) -> dict[ir.Graph, ir.Node]:
    """{a graph inside: the node that holds it}."""
    return {inner: node for node in everywhere(graph) for inner in subgraphs(node).values()}


def passed_on(value: ir.Value) -> ir.Value:
    """What a value is a mere copy of."""
    node = value.producer()
    while node is not None and node.op_type == "Identity" and not node.domain and node.inputs[0] is not None:
        value = node.inputs[0]
        node = value.producer()
    return value


def own_outputs(graph: ir.Graph) -> None:
    """Give every graph inside outputs of its own: what it only hands through, or hands out twice, becomes a copy.

    So does a constant that the model itself returns.
    """
    for inner in graphs(graph):
        if inner is not graph:
            set_outputs(inner, list(inner.outputs))
    for index, value in enumerate(graph.outputs):
        node = value.producer()
        if node is not None and node.op_type == "Constant":
            copy = ir.Value(name=value.name, shape=value.shape, type=value.type)
            value.name = f"{value.name}_constant"
            graph.append(ir.Node("", "Identity", [value], outputs=[copy], name=f"{value.name}_copy"))
            graph.outputs[index] = copy


def set_outputs(inner: ir.Graph, values: list[ir.Value]) -> None:
    """Make values the outputs of a graph inside, as copies where they are not its own or are given twice."""
    inner.outputs.clear()
    for value in values:
        producer = value.producer()
        made = producer is not None and producer.graph is inner and producer.op_type != "Constant"
        if not made or value in inner.outputs:
            copy = ir.Value(name=f"{value.name}_{inner.name}_{len(inner.outputs)}", shape=value.shape, type=value.type)
            inner.append(ir.Node("", "Identity", [value], outputs=[copy], name=f"{copy.name}_copy"))
            value = copy
        inner.outputs.append(value)


def put_in_place(node: ir.Node, body: ir.Graph, arguments: list[ir.Value]) -> list[ir.Value]:
    """Move the nodes of a graph inside before `node`, which may own it; its results, given what it takes."""
    assert node.graph is not None
    results = [passed_on(value) for value in body.outputs]
    body.outputs.clear()
    inner = list(body)
    body.remove(inner)
    node.graph.insert_before(node, inner)
    given = dict(zip(body.inputs, arguments, strict=True))
    for formal, argument in given.items():
        ir.convenience.replace_all_uses_with(formal, argument)
    return [given.get(result, result) for result in results]


def replace_results(node: ir.Node, values: dict[ir.Value, ir.Value]) -> None:
    """Other values for results of a node, which goes."""
    graph = node.graph
    assert graph is not None
    for old, value in values.items():
        producer = value.producer()
        if old.is_graph_output() and (producer is None or producer.graph is not graph or value.is_graph_output()):
            copy = ir.Value(shape=value.shape, type=value.type)
            graph.insert_before(node, ir.Node("", "Identity", [value], outputs=[copy], name=f"{old.name}_copy"))
            value = copy
        value.shape = old.shape if value.shape is None else value.shape
        value.type = old.type if value.type is None else value.type
        if old.is_graph_output():
            value.name, old.name = old.name, f"{old.name}_before"
        ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
    graph.remove(node, safe=True)


def function_facts(graph: ir.Graph) -> dict[str, Any]:
    """What the author calls a subgraph and its parameters; empty where the source had no function."""
    return json.loads(graph.metadata_props.get(FUNCTION, "{}"))


def captured(graph: ir.Graph) -> list[ir.Value]:
    """The values of outer graphs that a subgraph reads, in the order of reading."""
    made: set[ir.Value] = set()
    read: dict[ir.Value, None] = {}

    def visit(inner: ir.Graph) -> None:
        made.update(inner.inputs)
        made.update(inner.initializers.values())
        for node in inner:
            read.update((value, None) for value in node.inputs if value is not None and value not in made)
            for body in subgraphs(node).values():
                visit(body)
            made.update(node.outputs)
        read.update((value, None) for value in inner.outputs if value not in made)

    visit(graph)
    return [value for value in read if value not in made]
