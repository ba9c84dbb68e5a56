"""Weights and what is derived from them by structure alone: a re-ordered parameter is still that parameter.

Arithmetic on parameters (weight normalisation, say) is not derived: it is computed in every call, so that gradients
reach the parameter itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters import weights as wx
from porter.converters.codegen.nodes import Weight, joint
from porter.converters.graph.canonical import constant_of
from porter.converters.graph.nesting import everywhere
from porter.converters.opset import KIND, TRAINABLE, TRAINING
from porter.errors import WeightsError


def find_weights(graph: ir.Graph) -> dict[ir.Value, Weight]:
    """Every initializer and every value that is a structural expression of one kind of initializer."""
    found = {value: _initializer(value) for value in graph.initializers.values()}
    for node in everywhere(graph):
        if node.op_type in _STRUCTURAL and node.inputs and node.inputs[0] in found and len(node.outputs) == 1:
            parts = [found.get(value) for value in node.inputs] if node.op_type == "Concat" else [found[node.inputs[0]]]
            known = [part for part in parts if part is not None]
            expr = _derive(node, [part.expr for part in known]) if len(known) == len(parts) else None
            if expr is not None:
                found[node.outputs[0]] = joint(known, expr)
    return found


def _initializer(value: ir.Value) -> Weight:
    assert value.const_value is not None and value.dtype is not None and value.name is not None
    kind = value.metadata_props.get(KIND, "constant")
    constants = {value.name: value.const_value.numpy()} if kind == "constant" else {}
    trainable = value.metadata_props.get(TRAINABLE, "0") == "1"
    return Weight(wx.source(value.name, value.const_value.shape.numpy()), value.dtype, kind, trainable, constants)


_STRUCTURAL = {"Transpose", "Reshape", "Unsqueeze", "Squeeze", "Slice", "Concat", "Identity", "Flatten", "Gather"}


def _derive(node: ir.Node, inner: list[wx.WeightExpr]) -> wx.WeightExpr | None:
    """The node as a weight expression; None when it is not structural here."""
    x = inner[0]
    constants = [constant_of(value) for value in node.inputs[1:]]
    attribute: dict[str, Any] = {name: attr.value for name, attr in node.attributes.items()}
    try:
        match node.op_type:
            case "Identity":
                return x if TRAINING not in node.metadata_props else None
            case "Transpose":
                return wx.transpose(x, attribute.get("perm") or tuple(reversed(range(len(x.shape)))))
            case "Concat":
                return wx.concat(inner, attribute["axis"] % len(x.shape))
            case "Reshape" | "Unsqueeze" | "Squeeze" | "Flatten":
                shape = node.outputs[0].shape
                if shape is None or not all(isinstance(size, int) for size in shape):
                    return _reshape_by_constant(node.op_type, x, constants)
                return wx.reshape(x, shape.numpy())
            case "Slice":
                return _slice(x, constants)
    except WeightsError:
        return None
    return None


def _reshape_by_constant(op_type: str, x: wx.WeightExpr, constants: list[np.ndarray | None]) -> wx.WeightExpr | None:
    if not constants or constants[0] is None:
        return None
    argument = [int(item) for item in np.atleast_1d(constants[0])]
    if op_type == "Reshape":
        return wx.reshape(x, [x.shape[i] if size == 0 else size for i, size in enumerate(argument)])
    if op_type == "Squeeze":
        axes = {axis % len(x.shape) for axis in argument}
        return wx.reshape(x, [size for i, size in enumerate(x.shape) if i not in axes])
    rank = len(x.shape) + len(argument)
    axes = {axis % rank for axis in argument}
    rest = iter(x.shape)
    return wx.reshape(x, [1 if i in axes else next(rest) for i in range(rank)])


def _slice(x: wx.WeightExpr, constants: list[np.ndarray | None]) -> wx.WeightExpr | None:
    if any(constant is None for constant in constants):
        return None
    starts, ends, *rest = [[int(item) for item in constant] for constant in constants if constant is not None]
    axes = rest[0] if rest else list(range(len(starts)))
    steps = rest[1] if len(rest) > 1 else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis]
        if step == -1 and start in (-1, size - 1) and end < -size:
            x = wx.flip(x, [axis])
        elif step == 1:
            first, last, _ = slice(start, end).indices(size)
            x = wx.slice_(x, axis % len(x.shape), first, max(first, last))
        else:
            return None
    return x
