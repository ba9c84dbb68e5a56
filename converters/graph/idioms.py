"""Idioms restored: what the standard spells out in several nodes and every framework has as one."""

from __future__ import annotations

import json
from collections.abc import Callable

import onnx_ir as ir

from porter.converters.graph.canonical import constant_of
from porter.converters.graph.control import settle
from porter.converters.graph.fourier import restore_real_transforms
from porter.converters.graph.multihead import restore_multihead
from porter.converters.graph.nesting import graphs
from porter.converters.graph.positions import restore as restore_positions
from porter.converters.graph.recurrent import restore_recurrent
from porter.converters.library import is_library
from porter.converters.opset import SCOPE


def restore(model: ir.Model) -> None:
    """Rewrite the graph in place, each idiom where it is exactly that."""
    settle(model)
    restore_multihead(model)
    restore_recurrent(model)
    restore_real_transforms(model)
    for graph in graphs(model.graph):
        for node in list(graph):
            rewrite = _REWRITES.get(node.op_type)
            if rewrite is not None and node.graph is graph:
                rewrite(graph, node)
    restore_positions(model)


def _only_use(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """The node that makes a value, when it is of that type and nothing else reads the value."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != op_type or len(value.uses()) != 1 or value.is_graph_output():
        return None
    return node


def _replace(graph: ir.Graph, old: list[ir.Node], op_type: str, inputs: list[ir.Value | None]) -> None:
    """One internal node in place of `old`, the last of which gives the result."""
    last = old[-1]
    out = last.outputs[0]
    new = ir.Node(
        "porter",
        op_type,
        inputs,
        outputs=[ir.Value(name=out.name, shape=out.shape, type=out.type)],
        name=last.name,
        metadata_props=dict(old[0].metadata_props),
    )
    graph.insert_before(last, new)
    ir.convenience.replace_all_uses_with(out, new.outputs[0], replace_graph_outputs=True)
    out.name = f"{out.name}_replaced"
    for node in reversed(old):
        graph.remove(node, safe=True)


def _linear(graph: ir.Graph, node: ir.Node) -> None:
    """MatMul with a matrix parameter, plus a vector parameter: a Linear layer of more than one leading axis."""
    for product, bias in (node.inputs, reversed(node.inputs)):
        matmul = _only_use(product, "MatMul")
        if matmul is None or bias is None or not bias.is_initializer() or bias.shape is None or len(bias.shape) != 1:
            continue
        weight = matmul.inputs[1]
        if (
            weight is not None
            and weight.shape is not None
            and len(weight.shape) == 2
            and weight.shape[1] == bias.shape[0]
            and _is_parameter(weight)
        ):
            _replace(graph, [matmul, node], "Linear", [matmul.inputs[0], weight, bias])
            return


def _is_parameter(value: ir.Value) -> bool:
    producer = value.producer()
    while producer is not None and producer.op_type == "Transpose":
        value = producer.inputs[0]
        producer = value.producer()
    return value.is_initializer()


def _silu(graph: ir.Graph, node: ir.Node) -> None:
    """x · sigmoid(x)."""
    for x, gate in (node.inputs, reversed(node.inputs)):
        sigmoid = _only_use(gate, "Sigmoid")
        if sigmoid is not None and sigmoid.inputs[0] is x:
            _replace(graph, [sigmoid, node], "Silu", [x])
            return


def _rsqrt(graph: ir.Graph, node: ir.Node) -> None:
    """1 / sqrt(x)."""
    root = _only_use(node.inputs[0], "Sqrt")
    if root is not None:
        _replace(graph, [root, node], "Rsqrt", [root.inputs[0]])


def _not_equal(graph: ir.Graph, node: ir.Node) -> None:
    """Not(a == b)."""
    equal = _only_use(node.inputs[0], "Equal")
    if equal is not None:
        _replace(graph, [equal, node], "NotEqual", list(equal.inputs))


def _reduced_away(graph: ir.Graph, node: ir.Node) -> None:
    """A reduction that keeps its axes, and a reshape that drops them: a global pool and its flatten."""
    reduction = node.inputs[0].producer() if node.inputs[0] is not None else None
    if reduction is None or not reduction.op_type.startswith("Reduce") or len(reduction.inputs) != 2:
        return
    axes, source, result = constant_of(reduction.inputs[1]), reduction.inputs[0], node.outputs[0].shape
    if _only_use(node.inputs[0], reduction.op_type) is None or axes is None or not axes.size:
        return
    if source is None or source.shape is None or result is None or not reduction.attributes.get_int("keepdims", 1):
        return
    dropped = {int(axis) % len(source.shape) for axis in axes.reshape(-1)}
    left = [str(size) for axis, size in enumerate(source.shape) if axis not in dropped]
    if left != [str(size) for size in result] or _home(reduction) != _home(node):
        return
    reduction.attributes["keepdims"] = ir.AttrInt64("keepdims", 0)
    out = reduction.outputs[0]
    out.shape = result
    ir.convenience.replace_all_uses_with(node.outputs[0], out, replace_graph_outputs=True)
    graph.remove(node, safe=True)


def _seen_at_all(graph: ir.Graph, node: ir.Node) -> None:
    """Zeros where a mask lets a query see no key at all: what attention gives in every target."""
    seen, attention, zero = node.inputs[0], _only_use(node.inputs[1], "Attention"), constant_of(node.inputs[2])
    if attention is None or zero is None or zero.any() or len(attention.inputs) < 4:
        return
    mask = attention.inputs[3]
    for step in ("Cast", "ReduceMax", "Cast"):
        maker = _only_use(seen, step)
        if maker is None or (step == "ReduceMax" and not _keeps_last_axis(maker)):
            return
        seen = maker.inputs[0]
    compared = seen.producer() if seen is not None else None
    if seen is mask or (compared is not None and _above_minus_infinity(compared, mask)):
        out = attention.outputs[0]
        ir.convenience.replace_all_uses_with(node.outputs[0], out, replace_graph_outputs=True)
        graph.remove(node, safe=True)


def _keeps_last_axis(reduction: ir.Node) -> bool:
    """Whether it reduces the last axis to a length of 1."""
    axes, value = constant_of(reduction.inputs[1]) if len(reduction.inputs) > 1 else None, reduction.inputs[0]
    rank = len(value.shape) if value is not None and value.shape is not None else 0
    last = axes is not None and [int(axis) for axis in axes.reshape(-1)] in ([-1], [rank - 1])
    return last and bool(reduction.attributes.get_int("keepdims", 1))


def _above_minus_infinity(node: ir.Node, mask: ir.Value | None) -> bool:
    least = constant_of(node.inputs[1]) if node.op_type == "Greater" else None
    return least is not None and node.inputs[0] is mask and bool((least == float("-inf")).all())


def _home(node: ir.Node) -> list:
    """The calls around a node that have classes of their own: one of the library's layers has none."""
    scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
    leaf = scope[-1][2] if scope else ""
    return scope[:-1] if is_library(leaf) and ".container." not in leaf else scope


_REWRITES: dict[str, Callable[[ir.Graph, ir.Node], None]] = {
    "Add": _linear,
    "Mul": _silu,
    "Reciprocal": _rsqrt,
    "Not": _not_equal,
    "Reshape": _reduced_away,
    "Squeeze": _reduced_away,
    "Where": _seen_at_all,
}
