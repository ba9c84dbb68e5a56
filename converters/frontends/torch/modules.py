"""What only the live module knows: classes, children, argument names, tied parameters, where the source stands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import TensorArgument


def tied_names(model: torch.nn.Module) -> dict[str, str]:
    """{name of a parameter or buffer: the first name of the same tensor}, for those with several names."""
    first: dict[int, str] = {}
    ties = {}
    for name, tensor in [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]:
        owner = first.setdefault(id(tensor), name)
        if owner != name:
            ties[name] = owner
    return ties


def describe(model: torch.nn.Module, calls: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """{path: facts} of every module: class, children, its forward's parameters, source, and its calls' arguments."""
    facts = {}
    for path, module in model.named_modules():
        kind = type(module)
        file, line, end = _source(kind)
        facts[path] = {
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "children": [name for name, child in module.named_children() if child is not None],
            "parameters": list(inspect.signature(module.forward).parameters),
            "file": file,
            "line": line,
            "end": end,
            "attributes": {
                key: value
                for key, value in vars(module).items()
                if not key.startswith("_") and key != "training" and isinstance(value, bool | int | float | str)
            },
            "calls": {key: call for key, call in calls.items() if key.partition("@")[0] == path},
        }
    return facts


def _source(kind: type) -> tuple[str, int, int]:
    """File, first and last line of the class's `forward`, which a base class may define."""
    try:
        lines, first = inspect.getsourcelines(kind.forward)
        return inspect.getsourcefile(kind.forward) or "", first, first + len(lines) - 1
    except (OSError, TypeError):
        return "", 0, 0


def call_signatures(program: ExportedProgram, value_of: Callable[[torch.fx.Node], Any]) -> dict[str, dict[str, Any]]:
    """{module call: its arguments and results as value names}, where torch could tell."""
    nodes = {node.name: node for node in program.graph.nodes}

    def name(argument: Any) -> str | None:
        node = nodes.get(argument.name) if isinstance(argument, TensorArgument) else None
        value = value_of(node) if node is not None else None
        return value.name if isinstance(value, ir.Value) else None

    calls = {}
    for entry in program.module_call_graph:
        signature = entry.signature
        if not entry.fqn or signature is None:
            continue
        positional, keywords = signature.in_spec.children()
        count = positional.num_leaves
        names = [name(argument) for argument in signature.inputs]
        flat = positional.num_children == count and keywords.num_children == keywords.num_leaves
        calls[entry.fqn] = {
            "args": names[:count] if flat else [],
            "kwargs": dict(zip(keywords.context, names[count:], strict=False)) if flat else {},
            "outputs": [name(argument) for argument in signature.outputs],
        }
    return calls
