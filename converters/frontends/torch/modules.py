"""What only the live module knows: classes, children, argument names, tied parameters, where the source stands."""

from __future__ import annotations

import inspect
from typing import Any

import torch


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
        file, line = _source(kind)
        facts[path] = {
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "children": [name for name, child in module.named_children() if child is not None],
            "parameters": [name for name in inspect.signature(module.forward).parameters],
            "file": file,
            "line": line,
            "calls": {key: call for key, call in calls.items() if key.partition("@")[0] == path},
        }
    return facts


def _source(kind: type) -> tuple[str, int]:
    try:
        return inspect.getsourcefile(kind) or "", inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return "", 0
