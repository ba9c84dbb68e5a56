"""The recurrent nodes of one module: its layers named by the source's own numbers, and the Dropout between them."""

from __future__ import annotations

import re
from collections import defaultdict

import onnx_ir as ir

from porter.converters.graph.canonical import constant_of
from porter.converters.opset import SCOPE, SOURCE

DOMAIN = "porter"


def copy_place(source: ir.Node, node: ir.Node) -> None:
    """Put a new node under the module and the line of another."""
    for key in (SCOPE, SOURCE):
        if key in source.metadata_props:
            node.metadata_props[key] = source.metadata_props[key]


def several(nodes: list[ir.Node]) -> list[list[ir.Node]]:
    """The nodes of each module call that has more than one."""
    calls: dict[str, list[ir.Node]] = defaultdict(list)
    for node in nodes:
        if SCOPE in node.metadata_props:
            calls[node.metadata_props[SCOPE]].append(node)
    return [group for group in calls.values() if len(group) > 1]


def label(graph: ir.Graph, group: list[ir.Node]) -> None:
    """Name the layers of one module by the source's own numbers, and the Dropout between them as what it is."""
    labels = [_layer_of(node) for node in group]
    if None in labels or len(set(labels)) < len(labels):
        return
    for node, own in zip(group, labels, strict=True):
        node.attributes["label"] = ir.AttrString("label", str(own))
    for node in list(graph):
        inside = node.metadata_props.get(SCOPE) == group[0].metadata_props[SCOPE]
        if inside and node.op_type == "Dropout" and not node.domain:
            out = node.outputs[0]
            ratio = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
            if ratio is None or len(node.outputs) > 1:
                continue
            new = ir.Node(
                DOMAIN,
                "DropoutBetween",
                [node.inputs[0]],
                [ir.AttrFloat32("ratio", float(ratio))],
                outputs=[ir.Value(name=out.name, type=out.type, shape=out.shape)],
                name=node.name,
            )
            copy_place(node, new)
            graph.insert_before(node, new)
            out.name = f"{out.name}_replaced"
            ir.convenience.replace_all_uses_with(out, new.outputs[0], replace_graph_outputs=True)
            graph.remove(node, safe=True)


def _layer_of(node: ir.Node) -> str | None:
    """ "l0" of `lstm.weight_ih_l0`, followed back from the node's input weight."""
    value = node.inputs[1]
    while value is not None and value.producer() is not None:
        value = value.producer().inputs[0]
    match = re.search(r"_(l\d+)(_reverse)?$", (value.name or "") if value is not None else "")
    return match[1] if match else None
