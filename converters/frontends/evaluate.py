"""One ONNX node, or a whole graph, computed on arrays in float64."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from porter.converters.frontends import recurrent_kernels, resize_kernel
from porter.converters.frontends.kernels import KERNELS
from porter.converters.opset import OPSET

__all__ = ["as_double", "evaluate_node", "evaluate_nodes", "recurrent_kernels", "resize_kernel"]

_TYPED = {"to", "dtype"}
_NARROW = {ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}


def as_double(array: np.ndarray) -> np.ndarray:
    """Floats in float64, everything else as it is."""
    return array if array.dtype.kind in "biu" or array.dtype == np.float64 else array.astype(np.float64)


Values = dict[ir.Value, np.ndarray]


def evaluate_nodes(nodes: Iterable[ir.Node], known: Values) -> None:
    """Compute nodes in their order; `known` holds what they read and takes what they make."""
    for node in nodes:
        operands = [known.get(value) for value in node.inputs]
        control = _CONTROL.get(node.op_type)
        outputs = control(node, operands, known) if control is not None else evaluate_node(node, operands)
        known.update(zip(node.outputs, outputs, strict=False))


def _inside(body: ir.Graph, operands: Sequence[np.ndarray | None], known: Values) -> list[np.ndarray]:
    """What a subgraph gives for its inputs among the values around it."""
    inside = {**known, **{value: np.asarray(array) for value, array in zip(body.inputs, operands, strict=True)}}
    evaluate_nodes(body, inside)
    return [inside[output] for output in body.outputs]


def _branch(node: ir.Node, operands: Sequence[Any], known: Values) -> list[np.ndarray]:
    taken = "then_branch" if operands[0] else "else_branch"
    return _inside(node.attributes[taken].as_graph(), [], known)


def _loop(node: ir.Node, operands: Sequence[Any], known: Values) -> list[np.ndarray]:
    """A loop of torch's, whose turns give nothing beside what they hand on."""
    body = node.attributes["body"].as_graph()
    goes_on, carried, turn = operands[1], list(operands[2:]), 0
    while goes_on:
        goes_on, *carried = _inside(body, [np.asarray(turn), goes_on, *carried], known)
        turn += 1
    return carried


def _scan(node: ir.Node, operands: Sequence[Any], known: Values) -> list[np.ndarray]:
    """A scan of torch's, which runs over first axes."""
    body = node.attributes["body"].as_graph()
    count = len(operands) - node.attributes["num_scan_inputs"].as_int()
    carried, turns = list(operands[:count]), []
    for slices in zip(*operands[count:], strict=True):
        results = _inside(body, [*carried, *slices], known)
        carried = results[:count]
        turns.append(results[count:])
    return [*carried, *(np.stack(results) for results in zip(*turns, strict=True))]


_CONTROL = {"If": _branch, "Loop": _loop, "Scan": _scan}


def evaluate_node(node: ir.Node, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """The outputs of one node; floats are float64 throughout, whatever types the node names."""
    attributes = {name: _double_attribute(name, attribute) for name, attribute in node.attributes.items()}
    run = KERNELS.get(node.op_type) if not node.domain else None
    if run is not None:
        try:
            return [np.asarray(output) for output in run({k: a.value for k, a in attributes.items()}, *inputs)]
        except NotImplementedError:
            pass  # a rare form: ONNX's own implementation knows it
    return _reference(node, attributes, inputs)


def _double_attribute(name: str, attribute: ir.Attr) -> ir.Attr:
    if name in _TYPED and ir.DataType(attribute.as_int()) in _NARROW:
        return ir.AttrInt64(name, int(ir.DataType.DOUBLE))
    if attribute.type == ir.AttributeType.TENSOR:
        return ir.AttrTensor(name, ir.tensor(as_double(attribute.as_tensor().numpy())))
    return attribute


def _reference(
    node: ir.Node,
    attributes: dict[str, ir.Attr],
    inputs: Sequence[np.ndarray | None],
) -> list[np.ndarray]:
    feeds: dict[str, np.ndarray] = {}
    names = []
    for value, array in zip(node.inputs, inputs, strict=True):
        names.append("" if value is None else f"in_{value.name}")
        if value is not None and array is not None:
            feeds[names[-1]] = array
    proto = ir.serde.serialize_node(node)
    del proto.input[:]
    proto.input.extend(names)
    del proto.attribute[:]
    proto.attribute.extend(ir.serde.serialize_attribute(attribute) for attribute in attributes.values())
    graph = onnx.helper.make_graph(
        [proto],
        "node",
        [_info(name, array) for name, array in feeds.items()],
        [onnx.helper.make_empty_tensor_value_info(output.name or "") for output in node.outputs],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)])
    return [np.asarray(result) for result in ReferenceEvaluator(model).run(None, feeds)]


def _info(name: str, array: np.ndarray) -> Any:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), None)
