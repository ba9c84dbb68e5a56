"""`nn.MultiheadAttention` restored: the many nodes that it traces to become one, where a layer can be that."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from porter.converters.opset import MODULES, SCOPE, SOURCE

_CLASS = "torch.nn.modules.activation.MultiheadAttention"


@dataclass(frozen=True)
class _Call:
    """One call of one such module: its nodes and what its signature says."""

    path: str
    nodes: list[ir.Node]
    facts: dict[str, Any]
    arguments: dict[str, ir.Value]
    output: ir.Value


def restore_multihead(model: ir.Model) -> None:
    """Replace each call by one internal node (query, key, value, weights…, mask), in place; others are left alone."""
    modules = json.loads(model.graph.metadata_props.get(MODULES, "{}"))
    for call in _calls(model.graph, modules):
        _replace(model.graph, call)


def _calls(graph: ir.Graph, modules: dict[str, dict[str, Any]]) -> list[_Call]:
    values = {value.name: value for value in (*graph.inputs, *(out for node in graph for out in node.outputs))}
    nodes: dict[tuple[str, int], list[ir.Node]] = defaultdict(list)
    for node in graph:
        scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
        for path, number, cls in scope:
            if cls == _CLASS:
                nodes[(path, number)].append(node)
    found = []
    for (path, number), members in nodes.items():
        facts = modules.get(path, {})
        recorded = facts.get("calls", {}).get(path if number == 0 else f"{path}@{number}")
        if not recorded:
            continue
        named = {**dict(zip(facts["parameters"], recorded["args"], strict=False)), **recorded["kwargs"]}
        arguments = {name: values[value] for name, value in named.items() if value in values}
        output = values.get(recorded["outputs"][0]) if recorded["outputs"] else None
        weights_used = any(
            name in values and (values[name].uses() or values[name].is_graph_output())
            for name in recorded["outputs"][1:]
        )
        if output is not None and not weights_used and {"query", "key", "value"} <= set(arguments):
            found.append(_Call(path, members, facts["attributes"], arguments, output))
    return found


def _replace(graph: ir.Graph, call: _Call) -> None:
    weights = _weights(graph, call)
    attention = [node for node in call.nodes if node.op_type == "Attention"]
    plain = call.facts.get("add_zero_attn") is False and call.facts.get("bias_k") is None
    if weights is None or len(attention) != 1 or not plain or len(call.output.shape or []) != 3:
        return
    mask = _mask(call, attention[0])
    if mask is None:
        return
    producer = call.output.producer()
    if producer is None or producer not in call.nodes:
        return
    batch_first = bool(call.facts.get("batch_first"))
    props = {SCOPE: call.nodes[0].metadata_props.get(SCOPE, "[]")}
    if SOURCE in producer.metadata_props:
        props[SOURCE] = producer.metadata_props[SOURCE]
    queries = [call.arguments[name] for name in ("query", "key", "value")]
    if not batch_first:
        queries = [_swapped(graph, value, producer, props) for value in queries]
    attributes = {
        "num_heads": call.facts["num_heads"],
        "is_causal": attention[0].attributes["is_causal"].as_int() if "is_causal" in attention[0].attributes else 0,
        "dropout": float(call.facts.get("dropout", 0.0)),
        "mask_kind": mask[0],
    }
    out = ir.Value(
        name=f"{call.output.name}_heads", shape=_swapped_shape(call.output, batch_first), type=call.output.type
    )
    node = ir.Node(
        "porter",
        "MultiHeadAttention",
        [*queries, *weights, mask[1]],
        [ir.convenience.convert_attribute(name, value) for name, value in attributes.items()],
        outputs=[out],
        name=f"{call.path}_heads",
        metadata_props=props,
    )
    graph.insert_before(producer, node)
    result = out if batch_first else _swapped(graph, out, producer, props)
    name = call.output.name
    ir.convenience.replace_all_uses_with(call.output, result, replace_graph_outputs=True)
    call.output.name, result.name = f"{name}_replaced", name
    _sweep(graph, call.nodes)


def _sweep(graph: ir.Graph, nodes: list[ir.Node]) -> None:
    for node in reversed(nodes):
        if node.graph is graph and not any(out.uses() or out.is_graph_output() for out in node.outputs):
            graph.remove(node, safe=True)


def _weights(graph: ir.Graph, call: _Call) -> list[ir.Value | None] | None:
    """[in_proj weight, in_proj bias, out_proj weight, out_proj bias]; None for keys of another width."""
    found = [
        graph.initializers.get(f"{call.path}.{name}")
        for name in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    ]
    return found if found[0] is not None and found[2] is not None else None


def _mask(call: _Call, attention: ir.Node) -> tuple[str, ir.Value | None] | None:
    """(kind, value) of the one boolean mask that the layer can take; None when there are others."""
    masked = len(attention.inputs) > 3 and attention.inputs[3] is not None
    if not masked:
        return "none", None
    given = {name: call.arguments[name] for name in ("key_padding_mask", "attn_mask") if name in call.arguments}
    if len(given) != 1:
        return None
    ((kind, value),) = given.items()
    rank = 2
    if value.dtype != ir.DataType.BOOL or value.shape is None or len(value.shape) != rank:
        return None
    return kind, value


def _swapped_shape(value: ir.Value, batch_first: bool) -> ir.Shape:
    sizes = list(value.shape or [])
    return ir.Shape(sizes if batch_first else [sizes[1], sizes[0], *sizes[2:]])


def _swapped(graph: ir.Graph, value: ir.Value, before: ir.Node, props: dict[str, str]) -> ir.Value:
    """The value with time and batch exchanged."""
    sizes = list(value.shape or [])
    out = ir.Value(
        name=f"{value.name}_swapped_{len(list(value.uses()))}",
        shape=ir.Shape([sizes[1], sizes[0], *sizes[2:]]),
        type=value.type,
    )
    node = ir.Node(
        "", "Transpose", [value], [ir.AttrInt64s("perm", [1, 0, 2])], outputs=[out], metadata_props=dict(props)
    )
    graph.insert_before(before, node)
    return out
