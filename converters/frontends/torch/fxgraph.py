"""Questions about fx graphs and nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from porter.converters.frontends.torch import control


def everywhere(graph: torch.fx.Graph) -> Iterator[torch.fx.Node]:
    """The nodes of a graph and of the graphs inside it."""
    for node in graph.nodes:
        yield node
        if control.is_control(node):
            for body in control.body_of(node):
                yield from everywhere(body.graph)


def operator_name(target: Any) -> str:
    """What an operator is called in messages; torch takes `vmap` and `associative_scan` apart into internals of it."""
    return "torch.vmap" if is_vmap(target) else str(target)


def is_vmap(target: Any) -> bool:
    return getattr(target, "__module__", None) == "torch._functorch.predispatch"


def is_inplace(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return bool(
        schema and schema.arguments and schema.arguments[0].alias_info and schema.arguments[0].alias_info.is_write
    )


def live(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The statements that an output or a write depends on; assertions are none."""
    found: set[torch.fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or is_inplace(node.target) or any(user in found for user in node.users):
            found.add(node)
    return found


def by_schema(node: torch.fx.Node) -> tuple[list[Any], dict[str, Any]]:
    """A node's arguments with every positional one in its place, and without what has no meaning in ONNX."""
    args, kwargs = list(node.args), dict(node.kwargs)
    for key in ("pin_memory", "layout", "device", "memory_format", "generator"):
        kwargs.pop(key, None)
    schema = getattr(node.target, "_schema", None)
    for argument in schema.arguments[len(args) :] if schema and kwargs else []:
        if argument.kwarg_only or not any(a.name in kwargs for a in schema.arguments if not a.kwarg_only):
            break
        args.append(kwargs.pop(argument.name, argument.default_value))
    return args, kwargs


def meta(argument: Any) -> Any:
    """A tensor, or a number of the kind that a symbolic size is."""
    value = argument.meta["val"] if isinstance(argument, torch.fx.Node) else argument
    kinds = {torch.SymInt: 1, torch.SymFloat: 1.0, torch.SymBool: True}
    return kinds.get(type(value), value)
