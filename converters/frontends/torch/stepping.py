"""An exported program run one node at a time in float64, each tensor freed after its last use."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from porter.converters.frontends.torch.aliases import base_of
from porter.converters.frontends.torch.fxgraph import is_inplace

_NARROW = {torch.float32, torch.float16, torch.bfloat16}


def _double(value: Any) -> Any:
    """Floats in float64, and float types as float64; a tensor that a program writes into is not the caller's."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.is_complex():
            return value.to(torch.complex128)
        return value.double() if value.is_floating_point() else value
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value


class Stepper:
    """Iterates over a program's nodes in order; after each, `array` gives the tensors as they are then."""

    def __init__(self, program: ExportedProgram, args: tuple, kwargs: dict[str, Any]) -> None:
        self._program = program
        self._env: dict[torch.fx.Node, Any] = {}
        self._by_name = {node.name: node for node in program.graph.nodes}
        self._volatile = _volatile(program.graph)
        self.writes = bool(self._volatile)
        self._weights: dict[torch.fx.Node, torch.Tensor] = {}
        self._wide: dict[torch.fx.Node, torch.Tensor] = {}
        self._feeds = self._placeholders(args, kwargs)
        self._last: dict[torch.fx.Node, list[torch.fx.Node]] = {}
        seen: set[torch.fx.Node] = set()
        for node in reversed(program.graph.nodes):
            for source in node.all_input_nodes:
                if source not in seen:
                    seen.add(source)
                    self._last.setdefault(node, []).append(source)
        self._hook = program.graph_module

    def _placeholders(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        program = self._program
        users = iter(pytree.tree_leaves(self._ordered(args, kwargs)))
        feeds: dict[str, Any] = {}
        for spec in program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                value = next(users)
                feeds[spec.arg.name] = value.clone() if isinstance(value, torch.Tensor) and self.writes else value
                continue
            tensor = (
                program.state_dict[spec.target] if spec.target in program.state_dict else program.constants[spec.target]
            )
            node = self._by_name[spec.arg.name]
            if isinstance(tensor, torch.Tensor) and node not in self._volatile:
                self._weights[node] = tensor
            else:
                feeds[spec.arg.name] = tensor
        return feeds

    def is_weight(self, name: str) -> bool:
        """Whether a tensor is a parameter, buffer or constant that stays as it is: it is there at every step."""
        return self._by_name[name] in self._weights

    def _value(self, node: torch.fx.Node) -> Any:
        if node not in self._weights:
            return self._env[node]
        if node not in self._wide:  # until the step is over: all weights in float64 are twice the model
            self._wide[node] = _double(self._weights[node])
        return self._wide[node]

    def _ordered(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Keyword arguments in the program's order."""
        _, keywords = self._program.call_spec.in_spec.children()
        return args, {key: kwargs[key] for key in keywords.context} if kwargs else {}

    def names(self) -> list[str]:
        """The tensors that are alive and may have been written into."""
        return [node.name for node in self._env if node in self._volatile]

    def written(self, node: torch.fx.Node) -> bool:
        """Whether a tensor's memory is written into somewhere in the program."""
        return node in self._volatile

    def array(self, name: str, index: int | None) -> np.ndarray | None:
        """The current content of a tensor, or of one of several; None once it is freed, or for what is no tensor."""
        node = self._by_name[name]
        value = self._value(node) if node in self._weights else self._env.get(node)
        if index is not None:
            value = value[index] if isinstance(value, list | tuple) and index < len(value) else None
        if isinstance(value, bool | int | float):
            return np.asarray(value)
        if not isinstance(value, torch.Tensor):
            return None
        value = torch.view_as_real(value) if value.is_complex() else value
        array = value.detach().resolve_neg().contiguous().numpy()
        return array.copy() if node in self._volatile else array

    def __iter__(self) -> Iterator[torch.fx.Node]:
        with torch.no_grad():
            for node in self._program.graph.nodes:
                if node in self._weights:
                    self._env[node] = None
                elif node.op == "placeholder":
                    self._env[node] = _double(self._feeds.get(node.name))
                elif node.op == "get_attr":
                    self._env[node] = _widened(self._hook.get_submodule(node.target))
                elif node.op == "call_function":
                    self._env[node] = self._run(node)
                else:
                    return
                yield node
                self._wide.clear()
                for source in self._last.get(node, []):
                    del self._env[source]
                if not node.users:
                    del self._env[node]

    def _run(self, node: torch.fx.Node) -> Any:
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self._value)
        if node.target is operator.getitem:
            return args[0][args[1]]
        if not isinstance(node.target, torch._ops.OpOverload):
            return node.target(*args, **kwargs)
        if node.target._opname.startswith("_assert"):
            return None
        args, kwargs = pytree.tree_map(_double_type, (args, kwargs))
        return _double(node.target(*_explicit(node, list(args)), **kwargs))


def _double_type(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value


def _explicit(node: torch.fx.Node, args: list[Any]) -> list[Any]:
    """Defaults that depend on the type, written out as they are for the program's own."""
    if node.target is torch.ops.aten.rms_norm.default and (len(args) < 4 or args[3] is None):
        source = node.args[0].meta["val"].dtype
        return [*args[:2], args[2] if len(args) > 2 else None, torch.finfo(source).eps]
    if node.target is torch.ops.aten.nan_to_num.default and args[0].is_floating_point():
        limits = torch.finfo(node.args[0].meta["val"].dtype)
        nan, high, low = [*args[1:], None, None, None][:3]
        return [args[0], nan, limits.max if high is None else high, limits.min if low is None else low]
    return args


def _widened(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """An inner graph whose float types are float64."""
    import copy

    module = copy.deepcopy(module)
    for node in module.graph.nodes:
        node.args, node.kwargs = pytree.tree_map(_double_type, (node.args, node.kwargs))
    module.recompile()
    return module


def _volatile(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The tensors whose memory is written into after they are made, with everything that may share it."""
    roots: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.nodes:
        base = node.args[0] if is_inplace(node.target) else base_of(node)
        roots[node] = roots[base] if isinstance(base, torch.fx.Node) else node
    written = {roots[node] for node in graph.nodes if is_inplace(node.target)}
    return {node for node, root in roots.items() if root in written}
