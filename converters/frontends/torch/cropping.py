"""Inputs made smaller along the axes that may vary: an operator's translation shows its faults at any size."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

# Large enough that five halvings leave two elements, odd ones among them.
_ENOUGH = 40


def cropped(program: ExportedProgram, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]] | None:
    """The arguments with every large varying size cut; None when there is none."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    sizes = _wanted_sizes(program)
    positions = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    if not sizes or len(positions) != len(sizes) or not any(sizes):
        return None
    for position, cuts in zip(positions, sizes, strict=True):
        for axis, size in cuts.items():
            leaves[position] = leaves[position].narrow(axis, 0, min(size, leaves[position].shape[axis]))
    return pytree.tree_unflatten(leaves, spec)


def _wanted_sizes(program: ExportedProgram) -> list[dict[int, int]]:
    """Per tensor input {axis: size to cut it to}; the same symbol gets the same size everywhere."""
    users = {item.arg.name for item in program.graph_signature.input_specs if item.kind is InputKind.USER_INPUT}
    found = []
    for node in program.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" and node.name in users else None
        if not isinstance(value, torch.Tensor):
            continue
        cuts = {}
        for axis, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and size.node.hint > _ENOUGH:
                limits = program.range_constraints.get(size.node.expr)
                lowest = int(limits.lower) if limits is not None else 0
                cuts[axis] = max(_ENOUGH, lowest)
        found.append(cuts)
    return found
