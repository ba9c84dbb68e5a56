"""Axes that cannot vary although torch leaves them symbolic.

`torch.export` gives every axis a symbol that no operator forbids. A matrix product with a parameter does fix the size
that it sums over, but torch only notes that for run time: LeNet's height and width after the flatten, for example.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

_PRODUCTS: dict[str, tuple[int, int]] = {  # operator -> position of the data, of the weight
    "aten.linear.default": (0, 1),
    "aten.matmul.default": (0, 1),
    "aten.mm.default": (0, 1),
    "aten.addmm.default": (1, 2),
}


def fixed_axes(program: ExportedProgram) -> dict[str, set[int]]:
    """{input: its axes whose size some matrix product with a parameter fixes}."""
    fixed: set[Any] = set()
    for node in program.graph.nodes:
        if str(node.target) not in _PRODUCTS:
            continue
        data, weight = (node.args[position] for position in _PRODUCTS[str(node.target)])
        size = data.meta["val"].shape[-1]
        if isinstance(size, torch.SymInt) and all(isinstance(d, int) for d in weight.meta["val"].shape):
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
