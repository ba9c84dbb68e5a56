"""Zeros around an image as the padding of the convolution or the pool that reads it, where a target's layers pad."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.graph.canonical import constant_of
from porter.converters.graph.nesting import everywhere
from porter.converters.graph.recurrent import is_zero

Pads = dict[int, tuple[int, int]]  # axis -> zeros before and behind


def absorb_padding(model: ir.Model) -> None:
    """Let convolutions pad evenly by themselves; pools too, of values among which a zero is never the largest."""
    for node in list(everywhere(model.graph)):
        if node.op_type in ("Conv", "MaxPool") and not node.domain and node.inputs[0] is not None:
            _absorb(node)


def _absorb(node: ir.Node) -> None:
    source = node.inputs[0]
    turn = source.producer() if source is not None else None
    perm = None
    if turn is not None and turn.op_type == "Transpose" and _read_once(source):
        perm, source = list(turn.attributes["perm"].as_ints()), turn.inputs[0]
    pad = source.producer() if source is not None else None
    if pad is None or pad.op_type != "Pad" or pad.domain or not _read_once(source):
        return
    zeros = _zeros(pad)
    inner, shape = pad.inputs[0], node.inputs[0].shape if node.inputs[0] is not None else None
    if zeros is None or inner is None or inner.shape is None or shape is None:
        return
    zeros = {axis if perm is None else perm.index(axis): counts for axis, counts in zeros.items()}
    own = list(node.attributes["pads"].as_ints()) if "pads" in node.attributes else [0] * (2 * (len(shape) - 2))
    pads = _together(own, zeros, len(shape) - 2)
    if pads is None or (node.op_type == "MaxPool" and not _fits_pool(node, pads, own, inner)):
        return
    node.attributes["pads"] = ir.AttrInt64s("pads", pads)
    if turn is not None and perm is not None:
        turn.replace_input_with(0, inner)
        turn.outputs[0].shape = ir.Shape([inner.shape[axis] for axis in perm])
    else:
        node.replace_input_with(0, inner)


def _read_once(value: ir.Value | None) -> bool:
    return value is not None and len(value.uses()) == 1 and not value.is_graph_output()


def _zeros(pad: ir.Node) -> Pads | None:
    """What a Pad puts around its axes, if that is zeros."""
    counts = constant_of(pad.inputs[1])
    mode = pad.attributes["mode"].as_string() if "mode" in pad.attributes else "constant"
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    axes = constant_of(pad.inputs[3]) if len(pad.inputs) > 3 and pad.inputs[3] is not None else None
    if counts is None or mode != "constant" or (value is not None and not is_zero(value)):
        return None
    numbers, count = counts.tolist(), len(counts) // 2
    named = range(count) if axes is None else [int(axis) % len(pad.outputs[0].shape) for axis in axes]
    return {axis: (numbers[i], numbers[i + count]) for i, axis in enumerate(named) if numbers[i] or numbers[i + count]}


def _together(own: list[int], zeros: Pads, spatial: int) -> list[int] | None:
    """The pads of an operator and the zeros before it as its pads; None unless they are even."""
    if any(axis < 2 or min(counts) < 0 for axis, counts in zeros.items()):
        return None
    sides = [
        [own[axis + side * spatial] + zeros.get(axis + 2, (0, 0))[side] for axis in range(spatial)] for side in (0, 1)
    ]
    return [*sides[0], *sides[1]] if sides[0] == sides[1] else None


def _fits_pool(node: ir.Node, pads: list[int], own: list[int], inner: ir.Value) -> bool:
    """Whether a pool that does not see its own padding gives the same: every window has a value that is not below 0."""
    kernel = list(node.attributes["kernel_shape"].as_ints())
    plain = not any(own) and len(node.outputs) == 1 and not node.attributes["ceil_mode"].as_int()
    dilated = "dilations" in node.attributes and any(size != 1 for size in node.attributes["dilations"].as_ints())
    small = all(2 * pad <= size for pad, size in zip(pads, kernel, strict=False))
    producer = inner.producer()
    while producer is not None and producer.op_type in ("Transpose", "Identity") and producer.inputs[0] is not None:
        producer = producer.inputs[0].producer()
    return plain and not dilated and small and producer is not None and producer.op_type == "Relu"
