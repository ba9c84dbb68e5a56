"""Layers restored from the arithmetic that an export leaves of them: BatchNorm, LayerNorm, GELU."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.tensorflow.ops.norm import MOMENTUM
from porter.converters.opset import KIND, ORIGIN, SCOPE, SOURCE, TRAINING

Value = ir.Value


def fuse(graph: ir.Graph) -> int:
    """Put one node where arithmetic is exactly a layer's; how many were put."""
    count = 0
    for node in list(graph):
        if node.graph is None:
            continue
        count += any(restore(graph, node) for restore in (_conv_bias, _dense, _batch_norm, _layer_norm, _gelu))
    return count


# ---- matching ----


def _made(value: Value | None, *kinds: str) -> ir.Node | None:
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type in kinds and not node.domain else None


def _pairs(node: ir.Node) -> list[tuple[Value, Value]]:
    """The operands of a commutative operator in both orders."""
    a, b = node.inputs
    return [(a, b), (b, a)]


def _number(value: Value | None) -> float | None:
    """A constant of one element."""
    if value is None or value.const_value is None or value.metadata_props.get(KIND) != "constant":
        return None
    array = value.const_value.numpy()
    return float(array.reshape(-1)[0]) if array.size == 1 else None


@dataclass(frozen=True)
class _Vector:
    """A parameter with one axis, and which axis of the data it lies along (counted from the end)."""

    value: Value
    axis: int


def _vector(value: Value | None) -> _Vector | None:
    """A parameter along one axis, itself or reshaped to broadcast."""
    if value is None:
        return None
    if value.is_initializer() and value.shape is not None and len(value.shape) == 1:
        return _Vector(value, -1)
    source = _reshaped(value)
    if source is None or value.shape is None:
        return None
    if source.dtype != value.dtype or source.shape is None or len(source.shape) != 1:
        return None
    long = [axis for axis, size in enumerate(value.shape) if size != 1]
    if len(long) != 1:  # a vector of one number says nothing about its axis
        return None
    return _Vector(source, long[0] - len(value.shape))


def _reshaped(value: Value) -> Value | None:
    """The parameter that a value is, in another shape."""
    while not value.is_initializer():
        node = _made(value, "Reshape", "Unsqueeze", "Squeeze", "Identity")
        if node is None or node.inputs[0] is None:
            return None
        value = node.inputs[0]
    return value


def _inverse(value: Value | None) -> tuple[Value, float] | None:
    """1 / sqrt(variance + epsilon)."""
    reciprocal = _made(value, "Reciprocal")
    root = _made(reciprocal.inputs[0], "Sqrt") if reciprocal is not None else None
    total = _made(root.inputs[0], "Add") if root is not None else None
    if total is None:
        return None
    for variance, epsilon in _pairs(total):
        number = _number(epsilon)
        if number is not None:
            return variance, number
    return None


def _scaled(value: Value | None) -> tuple[Value, float, Value | None] | None:
    """(variance, epsilon, scale) of 1 / sqrt(variance + epsilon), times a scale if there is one."""
    plain = _inverse(value)
    if plain is not None:
        return *plain, None
    product = _made(value, "Mul")
    for inverse, scale in _pairs(product) if product is not None else []:
        found = _inverse(inverse)
        if found is not None:
            return *found, scale
    return None


@dataclass(frozen=True)
class _Affine:
    """x · factor + (offset - mean · factor), the form that `tf.nn.batch_normalization` has."""

    x: Value
    mean: Value
    variance: Value
    epsilon: float
    scale: Value | None
    offset: Value | None


def _affine(node: ir.Node) -> _Affine | None:
    if node.op_type not in ("Add", "Sub"):
        return None
    for left, right in _pairs(node) if node.op_type == "Add" else [tuple(node.inputs)]:
        product = _made(left, "Mul")
        for x, factor in _pairs(product) if product is not None else []:
            found = _scaled(factor)
            shift = _shift(right, factor, node.op_type == "Sub") if found is not None else None
            if found is not None and shift is not None:
                return _Affine(x, shift[0], *found, shift[1])
    return None


def _shift(value: Value | None, factor: Value, subtracted: bool) -> tuple[Value, Value | None] | None:
    """(mean, offset) of offset - mean · factor in the forms that occur."""
    if subtracted:
        product = _times(value, factor)
        return None if product is None else (product, None)
    difference = _made(value, "Sub")
    if difference is not None:
        product = _times(difference.inputs[1], factor)
        return None if product is None else (product, difference.inputs[0])
    total = _made(value, "Add")
    for negative, offset in _pairs(total) if total is not None else [(value, None)]:
        product = _times(negative, factor)
        flipped = _made(product, "Neg")
        if flipped is not None:
            return flipped.inputs[0], offset
        flipped = _made(negative, "Neg")
        product = _times(flipped.inputs[0], factor) if flipped is not None else None
        if product is not None:
            return product, offset
    return None


def _times(value: Value | None, factor: Value) -> Value | None:
    """What is multiplied with the factor."""
    product = _made(value, "Mul")
    return next((a for a, b in _pairs(product) if b is factor), None) if product is not None else None


# ---- restoring ----


def _batch_norm(graph: ir.Graph, node: ir.Node) -> bool:
    """Statistics that are variables: a BatchNorm in inference."""
    found = _affine(node)
    if found is None or found.x.shape is None or found.x.is_initializer():
        return False
    mean, variance = _vector(found.mean), _vector(found.variance)
    scale, offset = _vector(found.scale), _vector(found.offset)
    given = [
        mean,
        variance,
        *([scale] if found.scale is not None else []),
        *([offset] if found.offset is not None else []),
    ]
    if any(vector is None for vector in given) or len({vector.axis for vector in given if vector}) != 1:
        return False
    assert mean is not None and variance is not None
    rank, out = len(found.x.shape), node.outputs[0]
    axis = mean.axis % rank
    if rank < 2 or axis == 0 or out.shape is None or len(out.shape) != rank or mean.axis < -rank:
        return False
    write = _Writer(graph, node)
    size = int(mean.value.shape[0])
    dtype = found.x.dtype.numpy()
    gamma = scale.value if scale is not None else write.constant(np.ones(size, dtype))
    beta = offset.value if offset is not None else write.constant(np.zeros(size, dtype))
    order = [0, axis, *(a for a in range(1, rank) if a != axis)]
    x = write.transposed(found.x, order)
    facts = {"affine": scale is not None or offset is not None, "variance": "biased"}
    y = write.node(
        "BatchNormalization",
        [x, gamma, beta, mean.value, variance.value],
        x.shape,
        {"epsilon": found.epsilon, "momentum": MOMENTUM},
        {TRAINING: json.dumps(facts)},
    )
    write.replace(write.transposed(y, [int(a) for a in np.argsort(order)]))
    return True


def _layer_norm(graph: ir.Graph, node: ir.Node) -> bool:
    """Statistics of the data's own last axes."""
    found = _affine(node)
    if found is None or found.x.shape is None:
        return False
    axes = _last_axes(found.mean, found.x)
    spread = _made(found.variance, "ReduceMean")
    if axes is None or spread is None or _last_axes(found.variance, None, found.x) != axes:
        return False
    square = _made(spread.inputs[0], "Mul")
    centred = _made(square.inputs[0], "Sub") if square is not None and square.inputs[0] is square.inputs[1] else None
    if centred is None or centred.inputs[0] is not found.x or not _is(centred.inputs[1], found.mean):
        return False
    sizes = [found.x.shape[axis] for axis in range(-axes, 0)]
    if not all(isinstance(size, int) for size in sizes):
        return False
    write = _Writer(graph, node)
    scale, offset = write.shaped(found.scale, sizes), write.shaped(found.offset, sizes)
    if (found.scale is not None and scale is None) or (found.offset is not None and offset is None):
        return False
    if scale is None:
        scale = write.constant(np.ones([int(size) for size in sizes], found.x.dtype.numpy()))
    y = write.node(
        "LayerNormalization",
        [found.x, scale, *([offset] if offset is not None else [])],
        found.x.shape,
        {"axis": -axes, "epsilon": found.epsilon},
        {},
    )
    write.replace(y)
    return True


def _is(value: Value | None, other: Value) -> bool:
    """Whether a value is another, perhaps held from the gradient."""
    node = _made(value, "Identity")
    return value is other or (node is not None and node.inputs[0] is other)


def _last_axes(value: Value | None, of: Value | None, like: Value | None = None) -> int | None:
    """Over how many last axes a mean goes that keeps them."""
    node = _made(value, "ReduceMean")
    data = of if of is not None else like
    if node is None or data is None or data.shape is None or not node.attributes.get_int("keepdims", 1):
        return None
    if of is not None and node.inputs[0] is not of:
        return None
    axes = node.inputs[1].const_value if len(node.inputs) > 1 and node.inputs[1] is not None else None
    if axes is None:
        return None
    rank = len(data.shape)
    along = sorted(int(axis) % rank for axis in axes.numpy().reshape(-1))
    return len(along) if along == list(range(rank - len(along), rank)) else None


def _gelu(graph: ir.Graph, node: ir.Node) -> bool:
    """x / 2 · erfc(-x / sqrt(2)), as TensorFlow computes it."""
    if node.op_type != "Mul":
        return False
    for half, rest in _pairs(node):
        halved, complement = _made(half, "Mul"), _made(rest, "Sub")
        error = _made(complement.inputs[1], "Erf") if complement is not None else None
        turned = _made(error.inputs[0], "Mul") if error is not None else None
        if halved is None or turned is None or complement is None or _number(complement.inputs[0]) != 1:
            continue
        for negative, root in _pairs(turned):
            flipped, factor = _made(negative, "Neg"), _number(root)
            if flipped is None or factor is None or abs(factor - 0.5**0.5) > 1e-6:
                continue
            x = flipped.inputs[0]
            if any(a is x and _number(b) == 0.5 for a, b in _pairs(halved)):
                write = _Writer(graph, node)
                write.replace(write.node("Gelu", [x], node.outputs[0].shape, {"approximate": "none"}, {}))
                return True
    return False


def _conv_bias(graph: ir.Graph, node: ir.Node) -> bool:
    """A convolution whose channels are put last, and then a bias added to them."""
    if node.op_type != "Add":
        return False
    for image, bias in _pairs(node):
        moved, vector = _made(image, "Transpose"), _vector(bias)
        conv = _made(moved.inputs[0], "Conv", "ConvTranspose") if moved is not None else None
        if conv is None or moved is None or vector is None or len(conv.inputs) > 2 or vector.axis != -1:
            continue
        order = moved.attributes["perm"].as_ints()
        if order[-1] != 1 or len(image.uses()) != 1 or len(moved.inputs[0].uses()) != 1 or image.is_graph_output():
            continue
        write = _Writer(graph, node)
        settings = {key: attribute.value for key, attribute in conv.attributes.items()}
        y = write.node(conv.op_type, [*conv.inputs, vector.value], conv.outputs[0].shape, settings, {})
        write.replace(write.transposed(y, list(order)))
        return True
    return False


def _dense(graph: ir.Graph, node: ir.Node) -> bool:
    """A matrix product over the last axis of more than two, taken apart into rows and put together again."""
    product = _made(node.inputs[0], "MatMul") if node.op_type == "Reshape" else None
    rows = _made(product.inputs[0], "Reshape") if product is not None else None
    if product is None or rows is None or not product.inputs[1].is_initializer():
        return False
    x, out, weight = rows.inputs[0], node.outputs[0], product.inputs[1]
    if any(value.shape is None for value in (x, out, rows.outputs[0])) or len(weight.shape) != 2:
        return False
    fits = list(rows.outputs[0].shape)[1:] == [weight.shape[0]] and len(x.shape) > 2 and x.shape[-1] == weight.shape[0]
    if not fits or list(out.shape) != [*list(x.shape)[:-1], weight.shape[1]]:
        return False
    write = _Writer(graph, node)
    write.replace(write.node("MatMul", [x, weight], out.shape, {}, {}))
    return True


class _Writer:
    """Puts nodes before one that they replace."""

    def __init__(self, graph: ir.Graph, at: ir.Node) -> None:
        self.graph = graph
        self.at = at
        kept = {key: at.metadata_props[key] for key in (SCOPE, SOURCE, ORIGIN) if key in at.metadata_props}
        self.metadata = kept
        self.count = 0

    def node(
        self, kind: str, inputs: list[Value], shape: ir.Shape | None, settings: dict, facts: dict[str, str]
    ) -> Value:
        self.count += 1
        attributes = [ir.convenience.convert_attribute(key, value) for key, value in settings.items()]
        out = ir.Value(
            name=f"{self.at.outputs[0].name}_{kind.lower()}_{self.count}",
            type=ir.TensorType(self.at.outputs[0].dtype),
            shape=None if shape is None else ir.Shape(list(shape)),
        )
        node = ir.Node("", kind, inputs, attributes, outputs=[out], metadata_props={**self.metadata, **facts})
        self.graph.insert_before(self.at, node)
        return out

    def transposed(self, value: Value, order: list[int]) -> Value:
        if order == sorted(order):
            return value
        before = _made(value, "Transpose")
        if before is not None:
            first = before.attributes["perm"].as_ints()
            if [first[axis] for axis in order] == sorted(order):
                return before.inputs[0]
        shape = ir.Shape([value.shape[axis] for axis in order])
        return self.node("Transpose", [value], shape, {"perm": order}, {})

    def constant(self, array: np.ndarray) -> Value:
        number = len(self.graph.initializers)
        while (name := f"fused_{number}") in self.graph.initializers:
            number += 1
        value = ir.Value(
            name=name,
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            const_value=ir.tensor(array),
        )
        value.metadata_props[KIND] = "constant"
        self.graph.register_initializer(value)
        return value

    def shaped(self, value: Value | None, sizes: list) -> Value | None:
        """A parameter of exactly these sizes, from one that was reshaped to broadcast."""
        if value is None:
            return None
        source = _reshaped(value)
        if source is None or source.shape is None:
            return None
        return source if list(source.shape) == list(sizes) else None

    def replace(self, value: Value) -> None:
        old = self.at.outputs[0]
        name, was_output = old.name, old.is_graph_output()
        ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
        if was_output:
            old.name, value.name = f"{name}_unfused", name
        self.graph.remove(self.at, safe=True)
