"""Structured ONNX brought to one form: every attribute explicit, every value with a shape, constants folded."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator
from onnx_ir.passes import common

from porter.converters.opset import KIND, OPSET

# A folded constant larger than this would be data, not source.
_FOLD_LIMIT = 1 << 20
_RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}


def canonicalize(model: ir.Model) -> ir.Model:
    """The model in porter's canonical form, changed in place."""
    _name_values(model.graph)
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    common.AddDefaultAttributesPass()(model)
    _normalize_optional_axes(model.graph)
    fold_constants(model.graph)
    infer_shapes(model)
    _drop_identities(model.graph)
    common.RemoveUnusedNodesPass()(model)
    return model


def _name_values(graph: ir.Graph) -> None:
    for index, node in enumerate(graph):
        if not node.name:
            node.name = f"{node.op_type}_{index}"


def constant_of(value: ir.Value | None) -> np.ndarray | None:
    """The array of a constant; None for parameters, buffers and computed values."""
    if value is None or value.const_value is None or value.metadata_props.get(KIND, "constant") != "constant":
        return None
    return value.const_value.numpy()


def fold_constants(graph: ir.Graph) -> None:
    """Compute nodes whose inputs are all constants; parameters and buffers are never folded."""
    for node in list(graph):
        if not node.inputs or node.op_type in _RANDOM or node.domain:
            continue
        if any(attr.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for attr in node.attributes.values()):
            continue
        arrays = [constant_of(value) for value in node.inputs]
        if any(array is None for array, value in zip(arrays, node.inputs, strict=True) if value is not None):
            continue
        results = _evaluate(node, [array for array in arrays if array is not None])
        if sum(array.size for array in results) > _FOLD_LIMIT:
            continue
        for output in node.outputs:
            if output.is_graph_output():
                break
        else:
            for output, array in zip(node.outputs, results, strict=True):
                folded = ir.Value(
                    name=f"{output.name}_folded",
                    shape=ir.Shape(array.shape),
                    type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
                    const_value=ir.tensor(array),
                )
                folded.metadata_props[KIND] = "constant"
                graph.register_initializer(folded)
                ir.convenience.replace_all_uses_with(output, folded)
            graph.remove(node, safe=True)


def _evaluate(node: ir.Node, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """ONNX's own reference implementation of one node."""
    present = [value for value in node.inputs if value is not None]
    proto = ir.serde.serialize_node(node)
    graph = onnx.helper.make_graph(
        [proto],
        "constant",
        [
            onnx.helper.make_tensor_value_info(v.name or "", onnx.helper.np_dtype_to_tensor_dtype(a.dtype), None)
            for v, a in zip(present, arrays, strict=True)
        ],
        [onnx.helper.make_empty_tensor_value_info(output.name or "") for output in node.outputs],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)])
    feeds = {value.name or "": array for value, array in zip(present, arrays, strict=True)}
    return [np.asarray(result) for result in ReferenceEvaluator(model).run(None, feeds)]


def infer_shapes(model: ir.Model) -> None:
    """Give every value a shape and type where ONNX's inference can; what the front end knew is kept."""
    if all(out.shape is not None and out.dtype is not None for node in model.graph for out in node.outputs):
        return
    common.ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)


def _drop_identities(graph: ir.Graph) -> None:
    for node in list(graph):
        if node.op_type == "Identity" and not node.outputs[0].is_graph_output():
            source = node.inputs[0]
            assert source is not None
            ir.convenience.replace_all_uses_with(node.outputs[0], source)
            graph.remove(node, safe=True)


def _normalize_optional_axes(graph: ir.Graph) -> None:
    """`noop_with_empty_axes` has a meaning only without axes."""
    for node in graph:
        if node.op_type.startswith("Reduce") and len(node.inputs) > 1 and node.inputs[1] is not None:
            node.attributes.pop("noop_with_empty_axes", None)
