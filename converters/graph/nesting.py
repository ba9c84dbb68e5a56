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
    """Give every graph inside outputs of its own: what it only hands through, or hands out twice, becomes a copy."""
    for inner in graphs(graph):
        if inner is graph:
            continue
        for index, value in enumerate(inner.outputs):
            producer = value.producer()
            made = producer is not None and producer.graph is inner and producer.op_type != "Constant"
            if not made or list(inner.outputs).index(value) < index:
                set_output(inner, index, value)


def set_output(inner: ir.Graph, index: int, value: ir.Value) -> None:
    """Make a value the output of a graph inside, as a copy where it is not the graph's own or already one."""
    producer = value.producer()
    if producer is None or producer.graph is not inner or producer.op_type == "Constant" or value in inner.outputs:
        copy = ir.Value(name=f"{value.name}_out_{inner.name}_{index}", shape=value.shape, type=value.type)
        inner.append(ir.Node("", "Identity", [value], outputs=[copy], name=f"{copy.name}_copy"))
        value = copy
    inner.outputs[index] = value


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
