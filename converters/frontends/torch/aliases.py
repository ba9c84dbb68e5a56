"""In-place operators made functional: a write through a view reaches the tensor that it is a view of.

`torch.export` keeps the model's in-place operators. ONNX has no aliasing, so each fx node stands for its *current*
value; a mutation gives the node, the base it views and every other view of that base new values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.metadata import source_line
from porter.converters.opset import KIND
from porter.errors import ExportError, UnsupportedError

# Views that only rename sizes: written back by the inverse view.
_RESHAPING = {
    "view",
    "reshape",
    "unsqueeze",
    "squeeze",
    "flatten",
    "unflatten",
    "alias",
    "detach",
    "contiguous",
    "view_as",
    "_unsafe_view",
}
_PERMUTING = {"transpose", "permute", "t"}
# Operators that hand back their argument itself when there is nothing to do, without saying so in their schema.
_IDENTITIES = {"dropout", "feature_dropout", "alpha_dropout", "dropout_"}
# Views for certain; of any other operator that may return a view, torch itself is asked.
_CERTAIN = {
    "alias", "chunk", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice", "split", "squeeze", "t",
    "transpose", "unbind", "unsqueeze", "view",
}  # fmt: skip


@dataclass
class _View:
    base: torch.fx.Node
    node: torch.fx.Node
    stale: bool = False
    shares: bool | None = None


class Aliases:
    """The current value of every fx node, under mutation.

    `translate(node, made)` makes a node's value anew from the current values of its arguments; `made` says whether the
    result stands for the node, or is an auxiliary tensor of another type.
    """

    def __init__(self, op: Builder, translate: Callable[[torch.fx.Node, bool], Any]) -> None:
        self._op = op
        self._translate = translate
        self._values: dict[torch.fx.Node, Any] = {}
        self._views: dict[torch.fx.Node, _View] = {}
        self._owners: dict[torch.fx.Node, torch.fx.Node] = {}  # in-place operator -> the tensor that it returns

    def __getitem__(self, node: torch.fx.Node) -> Any:
        node = self._owners.get(node, node)
        view = self._views.get(node)
        if view is not None and view.stale:
            view.stale = False
            self._values[node] = self._translate(node, True)
        return self._values[node]

    def get(self, node: torch.fx.Node) -> Any:
        """The current value; None for a node that nothing needs."""
        owner = self._owners.get(node, node)
        return self[owner] if owner in self._values else None

    def define(self, node: torch.fx.Node, value: Any) -> None:
        """`value` is what `node` computes; a view remembers its base."""
        self._values[node] = value
        base = base_of(node)
        if base is not None:
            self._views[node] = _View(self._owners.get(base, base), node)

    def rename(self, node: torch.fx.Node, owner: torch.fx.Node) -> None:
        """`node`, the placeholder of an inner graph, is `owner` outside."""
        self._owners[node] = self._owners.get(owner, owner)

    def change(self, node: torch.fx.Node, value: ir.Value) -> torch.fx.Node:
        """`value` is what the in-place operator `node` leaves in its first argument; gives the node that owns it."""
        owner = self._owners.get(node.args[0], node.args[0])
        self._owners[node] = owner
        self._mutate(owner, value)
        return owner

    def holders(self) -> list[tuple[torch.fx.Node, Any]]:
        """Every node with its current value, views that await their new value left out."""
        return [
            (node, value)
            for node, value in self._values.items()
            if node not in self._views or not self._views[node].stale
        ]

    def _mutate(self, node: torch.fx.Node, value: ir.Value) -> None:
        held = self._values[node]
        if isinstance(held, ir.Value) and held.metadata_props.get(KIND) in ("parameter", "buffer"):
            raise ExportError(
                f"the model changes its own {held.metadata_props[KIND]} {held.name!r} in a forward pass "
                f"({source_line(node)}); ports are functions of their inputs"
            )
        self._values[node] = value
        view = self._views.get(node)
        shares = view is not None and self._shares(view)
        if view is not None and shares:
            self._mutate_base(view, value)
        for other in list(self._views.values()):
            if other.base is node and self._shares(other):
                self._mark(other)
        if view is not None and shares:
            view.stale = False
        self._values[node] = value

    def _mutate_base(self, view: _View, value: ir.Value) -> None:
        written = self._written_back(view, value)
        base = view.base
        if isinstance(base.meta["val"], list | tuple):  # one piece of many: what was cut is the base
            self._views[base].stale = True
            base = self._views[base].base
        self._mutate(base, written)

    def _mark(self, view: _View) -> None:
        view.stale = True
        for other in self._views.values():
            if other.base is view.node and self._shares(other):
                self._mark(other)

    def _shares(self, view: _View) -> bool:
        """Whether a view is one: `reshape` of a transposed tensor, for instance, is a copy."""
        if view.shares is None:
            target = view.node.target
            view.shares = target is operator.getitem or target._opname in _CERTAIN or _returns_memory(view.node)
        return view.shares

    def _written_back(self, view: _View, value: ir.Value) -> ir.Value:
        """The base with the viewed part replaced by `value`."""
        op, node = self._op, view.node
        name = "getitem" if node.target is operator.getitem else node.target._opname
        if name in _IDENTITIES or name in ("detach", "view_as_real", "view_as_complex"):
            return value
        if name in _RESHAPING:
            return op.Reshape(value, op.Shape(self[view.base]))
        if name in _PERMUTING:
            return op.Transpose(value, perm=_inverse_permutation(node))
        if name in ("select", "slice") and all(isinstance(argument, int | None) for argument in node.args[1:]):
            base = self[view.base]
            axis, start, stop, step = _range(node)
            if name == "select":
                value = op.Unsqueeze(value, [axis])
            return replace_slice(op, base, value, axis, start, stop, step, _rank(view.base.meta["val"]))
        if name == "expand":
            raise UnsupportedError(
                f"an in-place change through an expanded tensor ({source_line(node)}); copy it first"
            )
        return self._scattered(view, value)

    def _scattered(self, view: _View, value: ir.Value) -> ir.Value:
        """For any view: the view of the base's flat indices says where each element of `value` goes."""
        op = self._op
        base = view.base
        node = view.node
        cut = base if isinstance(base.meta["val"], list | tuple) else None
        if cut is not None:
            base = self._views[cut].base
        whole = self[base]
        places = op.Range(op.constant(0, ir.DataType.INT64), op.Size(whole), op.constant(1, ir.DataType.INT64))
        grid = op.Reshape(places, op.Shape(whole))
        grid.shape = whole.shape
        self._values[base] = grid
        seen = self._translate(node, False) if cut is None else self._translate(cut, False)[node.args[1]]
        self._values[base] = whole
        flat = op.ScatterElements(op.Reshape(whole, [-1]), op.Reshape(seen, [-1]), op.Reshape(value, [-1]), axis=0)
        return op.Reshape(flat, op.Shape(whole))


def base_of(node: torch.fx.Node) -> torch.fx.Node | None:
    """What `node` may be a view of, by its schema."""
    if not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    if node.target is operator.getitem:
        producer = node.args[0]
        return producer if base_of(producer) is not None else None
    schema = getattr(node.target, "_schema", None)
    if schema is None or not isinstance(node.args[0].meta.get("val"), torch.Tensor):
        return None
    alias = schema.arguments[0].alias_info
    if alias is not None and not alias.is_write:
        return node.args[0]
    return node.args[0] if node.target._opname in _IDENTITIES else None


def _returns_memory(node: torch.fx.Node) -> bool:
    """Whether torch, run on fake tensors, hands back the argument's own memory."""

    def fake(argument: Any) -> Any:
        return argument.meta["val"] if isinstance(argument, torch.fx.Node) else argument

    source = node.args[0].meta["val"]
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), fake)
    with source.fake_mode, torch.no_grad():
        result = node.target(*args, **kwargs)
    first = result[0] if isinstance(result, list | tuple) else result
    return first.untyped_storage()._cdata == source.untyped_storage()._cdata


def _inverse_permutation(node: torch.fx.Node) -> list[int]:
    rank = node.meta["val"].dim()
    stored = _rank(node.meta["val"])
    if node.target._opname == "permute":
        return [int(i) for i in np.argsort([*(axis % rank for axis in node.args[1]), *range(rank, stored)])]
    axes = (node.args[1] % rank, node.args[2] % rank) if len(node.args) > 2 else (0, rank - 1)
    perm = list(range(stored))
    perm[axes[0]], perm[axes[1]] = axes[1], axes[0]
    return perm


def _rank(tensor: torch.Tensor) -> int:
    """The axes of a tensor's value: a complex one has (real, imaginary) as its last."""
    return tensor.dim() + tensor.is_complex()


def _range(node: torch.fx.Node) -> tuple[int, int, int | None, int]:
    """Axis, start, stop and step of a `slice` or `select`."""
    rank = node.args[0].meta["val"].dim()
    if node.target._opname == "select":
        axis, index = node.args[1], node.args[2]
        return axis % rank, index, index + 1 or None, 1
    given: list[Any] = list(node.args[1:])
    axis, start, stop, step = given + [0, None, None, 1][len(given) :]
    return axis % rank, start or 0, stop, step


def replace_slice(
    op: Builder, base: ir.Value, part: ir.Value, axis: int, start: int, stop: int | None, step: int, rank: int
) -> ir.Value:
    """`base` with `base[start:stop:step]` along `axis` replaced: scattered row by row by a range of indices."""
    if start == 0 and step == 1 and (stop is None or stop >= 2**62):
        return part
    size = op.Squeeze(op.Shape(base, start=axis, end=axis + 1), [0])
    every = op.Range(op.constant(0, ir.DataType.INT64), size, op.constant(1, ir.DataType.INT64))
    stop = np.iinfo(np.int64).max if stop is None else stop
    rows = op.Unsqueeze(op.Slice(every, op.vector([start]), op.vector([stop]), [0], [step]), [1])
    if axis == 0:
        return op.ScatterND(base, rows, part)
    perm = [axis, *(i for i in range(rank) if i != axis)]
    moved = op.ScatterND(op.Transpose(base, perm=perm), rows, op.Transpose(part, perm=perm))
    return op.Transpose(moved, perm=[int(i) for i in np.argsort(perm)])
