"""Shapes of what layers make: windows over space, resizing, recurrence, counting."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.frontends.tensorflow.dims import add, divide, multiply, round_up, subtract
from porter.converters.frontends.tensorflow.shapes import (
    Contents,
    Shape,
    Unknown,
    content_of,
    content_or_blank,
    shape_rule,
    sizes_of,
)


@shape_rule("Conv")
def _conv(node: ir.Node, contents: Contents) -> list[Shape | None]:
    x, w = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    return [[x[0], w[0], *_windows(node, x[2:], w[2:])]]


@shape_rule("MaxPool", "AveragePool", "LpPool")
def _pool(node: ir.Node, contents: Contents) -> list[Shape | None]:
    x = sizes_of(node.inputs[0])
    shape = [*x[:2], *_windows(node, x[2:], list(node.attributes["kernel_shape"].as_ints()))]
    return [shape] * len(node.outputs)


def _windows(node: ir.Node, sizes: Shape, kernel: list[Any]) -> Shape:
    rank = len(sizes)
    strides = node.attributes.get_ints("strides", [1] * rank)
    dilations = node.attributes.get_ints("dilations", [1] * rank)
    pads = node.attributes.get_ints("pads", [0] * 2 * rank)
    auto = node.attributes.get_string("auto_pad", "NOTSET")
    if node.attributes.get_int("ceil_mode", 0):
        raise Unknown
    found: Shape = []
    for axis, size in enumerate(sizes):
        if size is None or not isinstance(kernel[axis], int):
            found.append(None)
        elif auto.startswith("SAME"):
            found.append(round_up(size, strides[axis]))
        else:
            reach = dilations[axis] * (kernel[axis] - 1) + 1
            found.append(add(divide(add(size, pads[axis] + pads[axis + rank] - reach), strides[axis]), 1))
    return found


@shape_rule("ConvTranspose")
def _conv_transpose(node: ir.Node, contents: Contents) -> list[Shape | None]:
    x, w = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    rank = len(x) - 2
    strides = node.attributes.get_ints("strides", [1] * rank)
    dilations = node.attributes.get_ints("dilations", [1] * rank)
    pads = node.attributes.get_ints("pads", [0] * 2 * rank)
    extra = node.attributes.get_ints("output_padding", [0] * rank)
    channels = w[1] if not isinstance(w[1], int) else w[1] * node.attributes.get_int("group", 1)
    found: Shape = [x[0], channels]
    for axis in range(rank):
        size, kernel = x[axis + 2], w[axis + 2]
        if size is None or not isinstance(kernel, int):
            found.append(None)
            continue
        reach = dilations[axis] * (kernel - 1) + 1 + extra[axis] - pads[axis] - pads[axis + rank]
        found.append(add(multiply(add(size, -1), strides[axis]), reach))
    return [found]


@shape_rule("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(node: ir.Node, contents: Contents) -> list[Shape | None]:
    x = sizes_of(node.inputs[0])
    return [[*x[:2], *[1] * (len(x) - 2)]]


@shape_rule("Resize")
def _resize(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        return [content_or_blank(node, 3, contents)]
    scales = node.inputs[2].const_value
    if scales is None or not all(float(s).is_integer() for s in scales.numpy()):
        raise Unknown
    return [[None if a is None else multiply(a, int(s)) for a, s in zip(shape, scales.numpy(), strict=True)]]


@shape_rule("Range")
def _range(node: ir.Node, contents: Contents) -> list[Shape | None]:
    try:
        (start,), (stop,), (step,) = (content_of(node, position, contents) for position in range(3))
    except Unknown:
        return [[None]]
    if not isinstance(step, int):
        return [[None]]
    if step < 0:
        return [[divide(add(subtract(start, stop), -step - 1), -step)]]
    return [[round_up(subtract(stop, start), step)]]


@shape_rule("OneHot")
def _one_hot(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    depth = content_or_blank(node, 1, contents) if node.inputs[1].shape else contents.get(node.inputs[1], [None])
    axis = node.attributes.get_int("axis", -1) % (len(shape) + 1)
    return [[*shape[:axis], next(iter(depth)), *shape[axis:]]]


@shape_rule("DepthToSpace")
def _depth_to_space(node: ir.Node, contents: Contents) -> list[Shape | None]:
    n, c, h, w = sizes_of(node.inputs[0])
    block = node.attributes["blocksize"].as_int()
    times = [None if size is None else multiply(size, block) for size in (h, w)]
    return [[n, None if c is None else divide(c, block * block), *times]]


@shape_rule("SpaceToDepth")
def _space_to_depth(node: ir.Node, contents: Contents) -> list[Shape | None]:
    n, c, h, w = sizes_of(node.inputs[0])
    block = node.attributes["blocksize"].as_int()
    parts = [None if size is None else divide(size, block) for size in (h, w)]
    return [[n, None if c is None else multiply(c, block * block), *parts]]


@shape_rule("NonZero")
def _non_zero(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [[len(sizes_of(node.inputs[0])), None]]


@shape_rule("EyeLike")
def _eye(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [sizes_of(node.inputs[0])]


@shape_rule("Det")
def _det(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [sizes_of(node.inputs[0])[:-2]]


@shape_rule("NonMaxSuppression")
def _suppression(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [[None, 3]]


@shape_rule("LSTM", "GRU", "RNN")
def _recurrent(node: ir.Node, contents: Contents) -> list[Shape | None]:
    """Every step, the last state, and the last cell of an LSTM."""
    steps, batch, _ = sizes_of(node.inputs[0])
    directions, _, hidden = sizes_of(node.inputs[2])
    last = [directions, batch, hidden]
    return [[steps, directions, batch, hidden], last, last][: len(node.outputs)]
