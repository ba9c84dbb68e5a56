"""In-place operators made functional: a write through a view reaches the tensor that it is a view of.

`torch.export` keeps the model's in-place operators. ONNX has no aliasing, so each fx node stands for its *current*
value; a mutation gives the node, the base it views and every other view of that base new values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from porter.converters.frontends.torch.builder import Builder
from porter.errors import ExportError

# Views whose write-back is known, with the name of the rule that puts the changed part back.
_WRITABLE = {"aten.slice.Tensor", "aten.select.int"}
# Views that only rename axes or sizes: written back by the inverse view.
_RESHAPING = {
    "aten.view.default",
    "aten.reshape.default",
    "aten.unsqueeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.default",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
    "aten.alias.default",
    "aten.detach.default",
    "aten.contiguous.default",
    "aten.view_as.default",
}
_PERMUTING = {"aten.transpose.int", "aten.permute.default", "aten.t.default"}
VIEWS = _WRITABLE | _RESHAPING | _PERMUTING | {"aten.expand.default", "aten.split.Tensor", "aten.chunk.default"}


@dataclass
class _View:
    base: torch.fx.Node
    node: torch.fx.Node
    stale: bool = False


class Aliases:
    """The current value of every fx node, under mutation."""

    def __init__(self, op: Builder, translate: Callable[[torch.fx.Node], Any]) -> None:
        self._op = op
        self._translate = translate
        self._values: dict[torch.fx.Node, Any] = {}
        self._views: dict[torch.fx.Node, _View] = {}

    def __getitem__(self, node: torch.fx.Node) -> Any:
        view = self._views.get(node)
        if view is not None and view.stale:
            view.stale = False
            self._values[node] = self._translate(node)
        return self._values[node]

    def define(self, node: torch.fx.Node, value: Any) -> None:
        """`value` is what `node` computes; a view remembers its base."""
        self._values[node] = value
        if str(node.target) in VIEWS and isinstance(node.args[0], torch.fx.Node):
            self._views[node] = _View(node.args[0], node)

    def mutate(self, node: torch.fx.Node, value: ir.Value) -> None:
        """`node`'s memory now holds `value`."""
        self._values[node] = value
        view = self._views.get(node)
        if view is not None:
            view.stale = False
            self.mutate(view.base, self._written_back(view, value))
        for other in self._views.values():
            if other.base is node and other.node is not (view.node if view else None):
                self._mark(other, exempt=node)
        self._values[node] = value

    def _mark(self, view: _View, exempt: torch.fx.Node) -> None:
        if view.node is exempt:
            return
        view.stale = True
        for other in self._views.values():
            if other.base is view.node:
                self._mark(other, exempt)

    def _written_back(self, view: _View, value: ir.Value) -> ir.Value:
        """The base with the viewed part replaced by `value`."""
        op, target = self._op, str(view.node.target)
        base = self[view.base]
        shape = [dim if isinstance(dim, int) else None for dim in view.base.meta["val"].shape]
        if target in _RESHAPING:
            return op.Reshape(value, op.Shape(base))
        if target in _PERMUTING:
            return op.Transpose(value, perm=_inverse_permutation(view.node))
        if target == "aten.select.int":
            axis, index = view.node.args[1], view.node.args[2]
            rows = op.Unsqueeze(value, [axis])
            return _replace(op, base, rows, axis, index, 1, 1, shape)
        if target == "aten.slice.Tensor":
            _, axis, start, stop, *step = [*view.node.args, 0, None, None][: max(len(view.node.args), 4)]
            return _replace_slice(op, base, value, axis, start or 0, stop, step[0] if step else 1, shape)
        raise ExportError(
            f"{view.node.name}: an in-place change through {target} cannot be carried over; "
            f"write to a copy of that view instead ({_where(view.node)})"
        )


def _inverse_permutation(node: torch.fx.Node) -> list[int]:
    rank = node.meta["val"].dim()
    if str(node.target) == "aten.permute.default":
        return [int(i) for i in np.argsort([axis % rank for axis in node.args[1]])]
    axes = (node.args[1] % rank, node.args[2] % rank) if len(node.args) > 2 else (0, rank - 1)
    perm = list(range(rank))
    perm[axes[0]], perm[axes[1]] = axes[1], axes[0]
    return perm


def _replace(op: Builder, base: ir.Value, rows: ir.Value, axis: int, start: int, count: int, step: int, shape: list) -> ir.Value:
    if start < 0:
        return _replace_slice(op, base, rows, axis, start, start + count or None, step, shape)
    return _replace_slice(op, base, rows, axis, start, start + count, step, shape)


def _replace_slice(op: Builder, base: ir.Value, part: ir.Value, axis: int, start: Any, stop: Any, step: int, shape: list) -> ir.Value:
    """`base` with `base[start:stop:step]` along `axis` replaced: scattered row by row by a range of indices."""
    axis %= len(shape)
    size = op.Squeeze(op.Shape(base, start=axis, end=axis + 1), [0])
    every = op.Range(op.constant(0, ir.DataType.INT64), size, op.constant(1, ir.DataType.INT64))
    stop = np.iinfo(np.int64).max if stop is None else stop
    rows = op.Slice(every, op.vector([start]), op.vector([stop]), [0], [step])
    if axis == 0:
        return op.ScatterND(base, op.Unsqueeze(rows, [1]), part)
    perm = [axis, *(i for i in range(len(shape)) if i != axis)]
    moved = op.ScatterND(op.Transpose(base, perm=perm), op.Unsqueeze(rows, [1]), op.Transpose(part, perm=perm))
    return op.Transpose(moved, perm=[int(i) for i in np.argsort(perm)])


def _where(node: torch.fx.Node) -> str:
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    return lines[-1] if lines else "unknown line"
