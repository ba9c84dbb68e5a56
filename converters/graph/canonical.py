"""Structured ONNX brought to one form: every attribute explicit, every value with a shape, constants folded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator
from onnx_ir.passes import common

from porter.converters.graph.nesting import everywhere, graphs, own_outputs, subgraphs
from porter.converters.opset import KIND, OPSET, SCOPE, SOURCE, TRAINING

# A folded constant larger than this would be data, not source.
_FOLD_LIMIT = 1 << 20
_RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
# Operators on lists of tensors, which are no arrays.
_SEQUENCES = {"SequenceConstruct", "SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength", "SplitToSequence"}
_SEQUENCES |= {"ConcatFromSequence", "SequenceMap"}


def canonicalize(model: ir.Model) -> ir.Model:
    """The model in porter's canonical form, changed in place."""
    _name_values(model.graph)
    own_outputs(model.graph)
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    common.LiftSubgraphInitializersToMainGraphPass()(model)
    common.AddDefaultAttributesPass()(model)
    for graph in graphs(model.graph):
        _drop_noops(graph)
    fold_constants(model.graph)
    infer_shapes(model)
    _explicit_axes(model.graph)
    _join_unsqueezes(model.graph)
    common.RemoveUnusedNodesPass()(model)
    return model


def _name_values(graph: ir.Graph) -> None:
    for index, node in enumerate(everywhere(graph)):
        if not node.name:
            node.name = f"{node.op_type}_{index}"


def constant_of(value: ir.Value | None) -> np.ndarray | None:
    """The array of a constant; None for parameters, buffers and computed values."""
    if value is None or value.const_value is None or value.metadata_props.get(KIND, "constant") != "constant":
        return None
    return value.const_value.numpy()


def fold_constants(graph: ir.Graph) -> None:
    """Compute nodes whose inputs are all constants; parameters and buffers are never folded."""
    for node in list(everywhere(graph)):
        if not node.inputs or node.op_type in _RANDOM or node.domain:
            continue
        if subgraphs(node) or node.op_type in _SEQUENCES:
            continue
        arrays = [constant_of(value) for value in node.inputs]
        if any(array is None for array, value in zip(arrays, node.inputs, strict=True) if value is not None):
            continue
        results = computed(node, [array for array in arrays if array is not None])
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
            node.graph.remove(node, safe=True)


def computed(node: ir.Node, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """A node's results on arrays, one for each input that it has, by ONNX's own reference implementation."""
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
    if all(out.shape is not None and out.dtype is not None for node in everywhere(model.graph) for out in node.outputs):
        return
    common.ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)


def _drop_noops(graph: ir.Graph) -> None:
    """What tracing leaves of `x + 0`, `True & x` or a reshape to the shape there was; what a graph returns is kept."""
    for node in list(graph):
        operand = _OPERANDS[node.op_type](node) if node.op_type in _OPERANDS and not node.domain else None
        if operand is None or node.outputs[0].is_graph_output() or TRAINING in node.metadata_props:
            continue
        ir.convenience.replace_all_uses_with(node.outputs[0], operand)
        graph.remove(node, safe=True)


def _identity(node: ir.Node) -> ir.Value | None:
    return node.inputs[0]


def _reshaped(node: ir.Node) -> ir.Value | None:
    """Same sizes by number or by symbol; a size without a name is equal to nothing."""
    return node.inputs[0] if _sizes(node.inputs[0]) == _sizes(node.outputs[0]) is not None else None


def _sizes(value: ir.Value | None) -> list[int | str] | None:
    if value is None or value.shape is None:
        return None
    sizes = [size if isinstance(size, int) else size.value for size in value.shape]
    return None if None in sizes else sizes


def _neutral(kinds: Callable[[ir.DataType], bool], element: int) -> Callable[[ir.Node], ir.Value | None]:
    """A rule for operators with a neutral element: a number of the author's, never a parameter or a table."""

    def operand(node: ir.Node) -> ir.Value | None:
        for value, other in (node.inputs, reversed(node.inputs)):
            constant = constant_of(other)
            if constant is None or constant.size != 1 or constant.item() != element or value is None:
                continue
            # Floats are left alone: -0.0 + 0 is 0.0.
            if value.dtype is not None and kinds(value.dtype) and _sizes(value) == _sizes(node.outputs[0]) is not None:
                return value
        return None

    return operand


_OPERANDS: dict[str, Callable[[ir.Node], ir.Value | None]] = {
    "Identity": _identity,
    "Reshape": _reshaped,
    "Expand": _reshaped,
    "Add": _neutral(lambda dtype: dtype.is_integer(), 0),
    "And": _neutral(lambda dtype: dtype == ir.DataType.BOOL, 1),
}


def _explicit_axes(graph: ir.Graph) -> None:
    """Every node says which axes it means: permutations, slices and pads of some axes only are spelled out in full."""
    for node in everywhere(graph):
        rank = (
            len(node.inputs[0].shape) if node.inputs and node.inputs[0] is not None and node.inputs[0].shape else None
        )
        if node.op_type.startswith("Reduce") and _names_axes(node):
            node.attributes.pop("noop_with_empty_axes", None)
        elif node.op_type == "Transpose" and "perm" not in node.attributes and rank is not None:
            node.attributes["perm"] = ir.AttrInt64s("perm", list(reversed(range(rank))))
        elif node.op_type == "Slice" and (len(node.inputs) < 4 or node.inputs[3] is None):
            _slice_axes(graph, node)
        elif node.op_type == "Pad" and len(node.inputs) > 3 and node.inputs[3] is not None and rank is not None:
            _full_pads(graph, node, rank)


def _join_unsqueezes(graph: ir.Graph) -> None:
    """New axes are made in one step, where tracing makes two of `x[:, None, :, None]`."""
    for node in list(everywhere(graph)):
        value, shape = node.inputs[0] if node.inputs else None, node.outputs[0].shape
        first = value.producer() if value is not None else None
        if node.op_type != "Unsqueeze" or first is None or first.op_type != "Unsqueeze" or shape is None:
            continue
        late, early = constant_of(node.inputs[1]), constant_of(first.inputs[1])
        shared = len(value.uses()) > 1 or value.is_graph_output()
        if late is None or early is None or shared or first.graph is not node.graph or not _one_place(first, node):
            continue
        new = {int(axis) % len(shape) for axis in late.reshape(-1)}
        between = [axis for axis in range(len(shape)) if axis not in new]
        new |= {between[int(axis) % len(between)] for axis in early.reshape(-1)}
        node.replace_input_with(0, first.inputs[0])
        node.replace_input_with(1, new_constant(graph, np.asarray(sorted(new), dtype=np.int64)))
        first.graph.remove(first, safe=True)


def _one_place(first: ir.Node, second: ir.Node) -> bool:
    """Whether both are of one statement of one call of a module."""
    return all(first.metadata_props.get(key) == second.metadata_props.get(key) for key in (SCOPE, SOURCE))


def _names_axes(node: ir.Node) -> bool:
    axes = node.inputs[1] if len(node.inputs) > 1 else None
    constant = constant_of(axes)
    return axes is not None and (constant is None or constant.size > 0)


def _slice_axes(graph: ir.Graph, node: ir.Node) -> None:
    starts = node.inputs[1]
    count = starts.shape[0] if starts is not None and starts.shape is not None else None
    if isinstance(count, int):
        node.resize_inputs(max(4, len(node.inputs)))
        node.replace_input_with(3, new_constant(graph, np.arange(count, dtype=np.int64)))


def _full_pads(graph: ir.Graph, node: ir.Node, rank: int) -> None:
    pads, axes = constant_of(node.inputs[1]), constant_of(node.inputs[3])
    if pads is None or axes is None:
        return
    full = np.zeros((2, rank), np.int64)
    full[:, [int(axis) % rank for axis in axes]] = pads.reshape(2, -1)
    node.replace_input_with(1, new_constant(graph, full.reshape(-1)))
    node.resize_inputs(3)


def new_constant(graph: ir.Graph, array: np.ndarray) -> ir.Value:
    """A new constant of the outermost graph."""
    count = len(graph.initializers)
    while f"canonical_{count}" in graph.initializers:
        count += 1
    value = ir.Value(
        name=f"canonical_{count}",
        shape=ir.Shape(array.shape),
        type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
        const_value=ir.tensor(array),
    )
    value.metadata_props[KIND] = "constant"
    graph.register_initializer(value)
    return value
