"""Fourier transforms of real data in the form that frameworks have: without an axis of size one for the real part.

    Unsqueeze(-1) → DFT(onesided)              becomes  porter::RFFT(x, length)   (…, n) to (…, n // 2 + 1, 2)
    DFT(inverse, onesided) → Squeeze(-1)       becomes  porter::IRFFT(x, length)  (…, m, 2) to (…, n)

`axis` numbers the axes of the real side and is not negative.
"""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.graph.canonical import constant_of
from porter.converters.graph.nesting import everywhere

DOMAIN = "porter"


def restore_real_transforms(model: ir.Model) -> None:
    """Rewrite every DFT that is one of the two; others stay as they are."""
    for node in list(everywhere(model.graph)):
        if node.op_type != "DFT" or node.domain or not node.attributes["onesided"].as_int():
            continue
        data = node.inputs[0]
        if data is None or data.shape is None:
            continue
        axis = _axis(node, len(data.shape))
        if axis is None:
            continue
        if node.attributes["inverse"].as_int():
            _restore_inverse(node.graph, node, axis)
        else:
            _restore_forward(node.graph, node, axis)
    if any(node.op_type in ("RFFT", "IRFFT") for node in everywhere(model.graph)):
        model.graph.opset_imports.setdefault(DOMAIN, 1)


def _axis(node: ir.Node, rank: int) -> int | None:
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return rank - 2
    array = constant_of(node.inputs[2])
    return None if array is None else int(array.reshape(-1)[0]) % rank


def _last(node: ir.Node | None, op_type: str, rank: int) -> bool:
    """Whether a node adds or removes the last of `rank` axes."""
    if node is None or node.op_type != op_type or len(node.inputs) < 2:
        return False
    axes = constant_of(node.inputs[1])
    return axes is not None and [int(axis) % rank for axis in axes.reshape(-1)] == [rank - 1]


def _restore_forward(graph: ir.Graph, node: ir.Node, axis: int) -> None:
    data = node.inputs[0]
    assert data is not None and data.shape is not None
    producer = data.producer()
    if not _last(producer, "Unsqueeze", len(data.shape)):
        return
    _replace(graph, node, node.outputs[0], "RFFT", producer.inputs[0], axis)
    if not data.uses() and not data.is_graph_output():
        graph.remove(producer, safe=True)


def _restore_inverse(graph: ir.Graph, node: ir.Node, axis: int) -> None:
    out = node.outputs[0]
    assert node.inputs[0] is not None and node.inputs[0].shape is not None
    uses = list(out.uses())
    if len(uses) != 1 or out.is_graph_output() or not _last(uses[0][0], "Squeeze", len(node.inputs[0].shape)):
        return
    squeeze = uses[0][0]
    _replace(graph, node, squeeze.outputs[0], "IRFFT", node.inputs[0], axis, also=squeeze)


def _replace(
    graph: ir.Graph, node: ir.Node, old: ir.Value, op_type: str, data: ir.Value, axis: int, also: ir.Node | None = None
) -> None:
    length = node.inputs[1] if len(node.inputs) > 1 else None
    new = ir.Value(name=old.name, type=old.type, shape=old.shape)
    old.name = f"{old.name}_dft"
    made = ir.Node(
        DOMAIN,
        op_type,
        [data, length],
        [ir.AttrInt64("axis", axis)],
        outputs=[new],
        name=node.name,
        metadata_props=dict(node.metadata_props),
    )
    graph.insert_before(node, made)
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    if also is not None:
        graph.remove(also, safe=True)
    graph.remove(node, safe=True)
