"""Axes that cannot vary although torch leaves them symbolic.

`torch.export` gives every axis a symbol that no operator forbids. A matrix product or convolution with a parameter does
fix the size that it sums over, but torch only notes that for run time: LeNet's height and width after the flatten, say.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from porter.converters.frontends.torch.fxgraph import everywhere

# operator -> position of the data, its axis whose size a parameter fixes, position of that parameter; None where the
# number of channels belongs to the operator also without one
_FIXING: dict[str, tuple[int, int, int | None]] = {
    "aten.linear.default": (0, -1, 1),
    "aten.matmul.default": (0, -1, 1),
    "aten.mm.default": (0, -1, 1),
    "aten.addmm.default": (1, -1, 2),
    "aten.batch_norm.default": (0, 1, 1),
    "aten.layer_norm.default": (0, -1, 2),
    "aten.group_norm.default": (0, 1, None),
    "aten.instance_norm.default": (0, 1, None),
    **{f"aten.conv{rank}d.{overload}": (0, 1, 1) for rank in (1, 2, 3) for overload in ("default", "padding")},
    "aten.conv_transpose1d.default": (0, 1, 1),
    "aten.conv_transpose2d.input": (0, 1, 1),
    "aten.conv_transpose3d.input": (0, 1, 1),
}


def fixed_axes(program: ExportedProgram) -> dict[str, set[int]]:
    """{input: its axes whose size some operator with a parameter fixes}."""
    fixed: set[Any] = set()
    for node in everywhere(program.graph):
        if str(node.target) not in _FIXING:
            continue
        data, axis, parameter = _FIXING[str(node.target)]
        if not isinstance(node.args[data], torch.fx.Node) or not _has_sizes(node, parameter):
            continue
        size = node.args[data].meta["val"].shape[axis]
        if isinstance(size, torch.SymInt):
            fixed |= size.node.expr.free_symbols
    if not fixed:
        return {}
    users = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT}
    found: dict[str, set[int]] = {}
    for node in program.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" and node.name in users else None
        if isinstance(value, torch.Tensor):
            axes = {
                axis
                for axis, size in enumerate(value.shape)
                if isinstance(size, torch.SymInt) and size.node.expr in fixed
            }
            if axes:
                found[node.name] = axes
    return found


def _has_sizes(node: torch.fx.Node, parameter: int | None) -> bool:
    """Whether the argument that fixes the size is there, and known in all its sizes."""
    if parameter is None:
        return True
    weight = node.args[parameter] if len(node.args) > parameter else None
    return isinstance(weight, torch.fx.Node) and all(isinstance(d, int) for d in weight.meta["val"].shape)
