"""Matrix products in a layout, and a flatten before one: its permutation goes into the rows of the weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from porter.converters.graph.orders import Order, identity

if TYPE_CHECKING:
    from porter.converters.graph.layout import LayoutPass


def absorbed(run: LayoutPass, value: ir.Value) -> bool:
    """Whether every path from a flattened value ends in a Linear whose rows can be permuted."""
    if value.is_graph_output() or not value.uses():
        return False
    for node, position in value.uses():
        if node.op_type in ("Gemm", "MatMul", "Linear") and position == 0 and rows(node) is not None:
            continue
        elementwise = run.stances(node).kind == "any" and all(
            run.rank(other) == 0 for index, other in enumerate(node.inputs) if other is not None and index != position
        )
        if node.op_type in ("BatchNormalization", "Dropout") or (elementwise and len(node.outputs) == 1):
            if not absorbed(run, node.outputs[0]):
                return False
            continue
        return False
    return True


def rows(node: ir.Node) -> int | None:
    """The axis of the weight that a product sums over; None when the weight is computed."""
    weight = node.inputs[1] if len(node.inputs) > 1 else None
    while weight is not None and weight.producer() is not None and weight.producer().op_type == "Transpose":
        weight = weight.producer().inputs[0]
    if weight is None or not weight.is_initializer() or weight.shape is None or len(weight.shape) != 2:
        return None
    if node.op_type == "Gemm":
        if node.attributes["transA"].as_int():
            return None
        return 1 if node.attributes["transB"].as_int() else 0
    return 0


def _permuted_features(
    run: LayoutPass, node: ir.Node, index: int, axis: int, features: tuple[tuple[int, ...], Order]
) -> None:
    """Re-order one axis of a weight to match a flattening in stored order."""
    sizes, order = features
    weight = run.want(node.inputs[index], identity(run.rank(node.inputs[index])), node)
    shape = [int(d) for d in weight.shape.numpy()]
    apart = [*shape[:axis], *sizes, *shape[axis + 1 :]]
    perm = [*range(axis), *(axis + i for i in order), *range(axis + len(sizes), len(apart))]
    tag = (features, axis)
    wide = run.insert(
        "Reshape", weight, (*tag, 0), node, {"allowzero": 0}, [run.constant(np.asarray(apart, dtype=np.int64))], apart
    )
    moved = run.insert("Transpose", wide, (*tag, 1), node, {"perm": perm})
    flat = run.insert(
        "Reshape", moved, (*tag, 2), node, {"allowzero": 0}, [run.constant(np.asarray(shape, dtype=np.int64))], shape
    )
    node.replace_input_with(index, flat)


def dropout(run: LayoutPass, node: ir.Node) -> bool:
    """Drops flattened features wherever they stand."""
    stored = run.at(node.inputs[0])
    if stored.features is None:
        return False
    node.replace_input_with(0, stored.value)
    run.set(node.outputs[0], stored.order, features=stored.features)
    return True


def unflattened(run: LayoutPass, node: ir.Node) -> bool:
    """A Linear's features made an image: its columns are permuted, so that the image lies channels last at once."""
    value, out = node.inputs[0], node.outputs[0]
    before, after = run.source_shape[value], run.source_shape[out]
    image = len(before) == 2 and len(after) >= 3 and all(isinstance(d, int) for d in after[1:])
    order = run.spatial_order(out) if run.native and image and before[0] == after[0] else None
    if order is None or order == identity(len(after)):
        return False
    producer = value.producer()
    while producer is not None and _alone(run, producer) and producer.op_type not in _PRODUCTS:
        producer = producer.inputs[0].producer()
    if producer is None or producer.op_type not in _PRODUCTS or not _alone(run, producer):
        return False
    axis = rows(producer)
    if axis is None:
        return False
    sizes = tuple(int(d) for d in after[1:])
    features = (sizes, tuple(a - 1 for a in order if a != 0))
    _permuted_features(run, producer, 1, 1 - axis, features)
    if len(producer.inputs) > 2 and producer.inputs[2] is not None:
        _permuted_features(run, producer, 2, 0, features)
    node.replace_input_with(0, run.at(value).value)
    run.set(out, order, native=True)
    return True


_PRODUCTS = ("Gemm", "MatMul", "Linear")


def _alone(run: LayoutPass, node: ir.Node) -> bool:
    """Whether a node's one result is read once, and it is a product or changes elements only, by numbers at most."""
    out = node.outputs[0]
    if len(node.outputs) != 1 or len(out.uses()) != 1 or out.is_graph_output():
        return False
    numbers = all(run.rank(other) == 0 for other in node.inputs[1:] if other is not None)
    return node.op_type in _PRODUCTS or (run.stances(node).kind == "any" and numbers)


def product(run: LayoutPass, node: ir.Node) -> bool:
    """A product with a weight needs only its own axis last; two computed operands need both of theirs."""
    a, b = node.inputs[0], node.inputs[1]
    assert a is not None and b is not None
    first, second = run.at(a), run.at(b)
    if first.features is not None:
        axis = rows(node)
        assert axis is not None
        _permuted_features(run, node, 1, axis, first.features)
        node.replace_input_with(0, first.value)
        run.set(node.outputs[0], identity(2))
        return True
    rank, out = len(first.order), node.outputs[0]
    if (
        rank == run.rank(out)
        and second.value.producer() is None
        and len(second.order) == 2
        and first.order[-1] == rank - 1
    ):
        node.replace_input_with(0, first.value)
        run.set(out, first.order, native=first.native)
        return True
    if first.order == second.order and rank == run.rank(out) and first.order[-2:] == (rank - 2, rank - 1):
        node.replace_input_with(0, first.value)
        node.replace_input_with(1, second.value)
        run.set(out, first.order, native=first.native)
        return True
    run.fixed(node)
    return True


def batch_norm(run: LayoutPass, node: ir.Node) -> bool:
    value = node.inputs[0]
    assert value is not None
    stored = run.at(value)
    if stored.features is not None:
        for index in range(1, 5):
            _permuted_features(run, node, index, 0, stored.features)
        node.replace_input_with(0, stored.value)
        run.set(node.outputs[0], stored.order, features=stored.features)
        return True
    return False
