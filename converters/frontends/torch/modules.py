"""What only the live module knows: classes, children, argument names, tied parameters, where the source stands."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Origin:
    """What is known of the source beside its program.

    `modules` holds per path: class, children, its forward's parameters, file and lines, and its simple attributes.
    """

    name: str
    ties: dict[str, str]
    trainable: frozenset[str]
    modules: dict[str, dict[str, Any]]

    def facts(self, calls: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The modules with the signatures of their calls."""
        return {
            path: {**facts, "calls": {key: call for key, call in calls.items() if key.partition("@")[0] == path}}
            for path, facts in self.modules.items()
        }


def origin_of_module(model: torch.nn.Module) -> Origin:
    """From the live module, which knows most."""
    trainable = frozenset(name for name, p in model.named_parameters(remove_duplicate=False) if p.requires_grad)
    modules = {path: _describe(module) for path, module in model.named_modules()}
    return Origin(type(model).__name__, tied_names(model), trainable, modules)


def origin_of_program(program: ExportedProgram) -> Origin:
    """From a program alone: classes and paths are in its nodes, ties show as shared memory."""
    first: dict[tuple, str] = {}
    ties = {}
    for name, tensor in program.state_dict.items():
        owner = first.setdefault((tensor.data_ptr(), tuple(tensor.shape), tensor.stride()), name)
        if owner != name and tensor.numel():
            ties[name] = owner
    trainable = frozenset(name for name, tensor in program.state_dict.items() if tensor.requires_grad)
    modules: dict[str, dict[str, Any]] = {}
    for node in program.graph.nodes:
        for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items():
            if not key.startswith("_empty") and path not in modules:
                name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
                modules[path] = {"class": name, "children": [], "parameters": [], "attributes": {}, **_place(name)}
    for path in [*modules]:
        parent, _, child = path.rpartition(".")
        while path and parent not in modules:  # a list of modules is never called itself
            modules[parent] = {"class": "torch.nn.modules.container.ModuleList", "children": [], "parameters": []}
            modules[parent] |= {"attributes": {}, **_place("")}
        if path and child not in modules[parent]["children"]:
            modules[parent]["children"].append(child)
    root = modules.get("", {}).get("class", "Model").rpartition(".")[2]
    return Origin(root, ties, trainable, modules)


def _describe(module: torch.nn.Module) -> dict[str, Any]:
    kind = type(module)
    file, line, end = _source(kind)
    simple = {
        key: value
        for key, value in vars(module).items()
        if not key.startswith("_") and key != "training" and isinstance(value, bool | int | float | str)
    }
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "children": [name for name, child in module.named_children() if child is not None],
        "parameters": list(inspect.signature(module.forward).parameters),
        "file": file,
        "line": line,
        "end": end,
        "attributes": simple,
    }


def _place(qualname: str) -> dict[str, Any]:
    """Where a class's forward stands, if its module happens to be imported; nothing is imported for it."""
    module, _, name = qualname.rpartition(".")
    kind = getattr(sys.modules.get(module), name, None) if module else None
    file, line, end = _source(kind) if isinstance(kind, type) else ("", 0, 0)
    return {"file": file, "line": line, "end": end}


def _source(kind: Any) -> tuple[str, int, int]:
    """File, first and last line of the class's `forward`, which a base class may define."""
    try:
        lines, first = inspect.getsourcelines(kind.forward)
        return inspect.getsourcefile(kind.forward) or "", first, first + len(lines) - 1
    except (AttributeError, OSError, TypeError):
        return "", 0, 0


def returned_keys(program: ExportedProgram, outputs: Sequence[Any]) -> list[str]:
    """The keys of the tensors of a model that returns a mapping (or what a library has for one); else nothing."""
    spec = program.call_spec.out_spec
    keys = spec.context if isinstance(spec.context, list | tuple) else []
    flat = len(keys) == len(outputs) == spec.num_children and all(child.is_leaf() for child in spec.children())
    if not flat or not all(isinstance(key, str) for key in keys):
        return []
    return [key for key, output in zip(keys, outputs, strict=True) if output is not None]


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
