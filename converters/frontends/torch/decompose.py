"""ATen operators without a rule, taken apart by torch's own decompositions, one operator at a time.

Only what has no rule is taken apart: the rest of the program keeps its BatchNorm, Dropout and Linear nodes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.fx.experimental.proxy_tensor import make_fx

from porter.converters.frontends.torch import table

_DEPTH = 4


class Decompositions:
    """The graphs that stand for operators without a rule."""

    def __init__(self) -> None:
        self._graphs: dict[torch.fx.Node, torch.fx.Graph | None] = {}

    def find(self, node: torch.fx.Node, depth: int = 0) -> torch.fx.Graph | None:
        """A graph of operators with rules that computes `node`, its placeholders being `tensor_arguments(node)`."""
        if node not in self._graphs:
            self._graphs[node] = self._trace(node, depth) if depth < _DEPTH else None
        return self._graphs[node]

    def _trace(self, node: torch.fx.Node, depth: int) -> torch.fx.Graph | None:
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):
            return None
        for decompose, early in _ways(target):
            try:
                graph = _traced(node, decompose, early)
            except Exception:
                continue  # a decomposition that torch cannot trace on these arguments is none
            if all(self._known(inner, target, depth) for inner in graph.nodes):
                return graph
        return None

    def _known(self, inner: torch.fx.Node, outer: Any, depth: int) -> bool:
        if inner.op in ("placeholder", "output") or not isinstance(inner.target, torch._ops.OpOverload):
            return inner.op != "get_attr"
        if table.find(inner) is not None or not any("Tensor" in str(out.type) for out in inner.target._schema.returns):
            return True
        return "val" in inner.meta and inner.target is not outer and self.find(inner, depth + 1) is not None


def tensor_arguments(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The fx arguments of a node, in the order of a decomposition's placeholders."""
    return list(node.all_input_nodes)


def _ways(target: torch._ops.OpOverload) -> list[tuple[Any, bool]]:
    """(decomposition, whether to keep composite operators such as `linear` whole), in order of preference."""
    ways: list[tuple[Any, bool]] = []
    if target in decomposition_table:
        ways += [(decomposition_table[target], True), (decomposition_table[target], False)]
    if target._can_decompose():
        ways += [(target.decompose, True), (target.decompose, False)]
    return ways


def _traced(node: torch.fx.Node, decompose: Any, early: bool) -> torch.fx.Graph:
    sources = tensor_arguments(node)

    def call(*values: Any) -> Any:
        found = dict(zip(sources, values, strict=True))
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda argument: found[argument])
        return decompose(*args, **kwargs)

    fakes = [source.meta["val"] for source in sources]
    mode = next(fake.fake_mode for fake in fakes if isinstance(fake, torch.Tensor))
    with mode:
        fresh = [torch.empty_like(fake) if isinstance(fake, torch.Tensor) else fake for fake in fakes]
    return make_fx(call, tracing_mode="real", pre_dispatch=early)(*fresh).graph
