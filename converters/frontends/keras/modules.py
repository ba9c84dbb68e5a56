"""What only the live model knows: classes, children, argument names, where the source stands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras

from porter.converters.frontends.keras import internals
from porter.converters.frontends.keras.paths import class_name, has_names, layer_paths, own_name
from porter.converters.frontends.keras.trace import Signature


def describe(
    model: Any, signatures: dict[str, Signature], name_of: Callable[[Any], str | None]
) -> dict[str, dict[str, Any]]:
    """Facts per layer path: class, children, its call's parameters, file and lines, simple attributes, its calls.

    `name_of` gives the value name of a tensor of the trace.
    """
    layers = {"": model, **layer_paths(model)}
    modules = {path: _facts(layer) for path, layer in layers.items()}
    if modules[""]["chain"]:
        modules[""]["class"] = own_name(model)
    for path in layers:
        parent, step = _parent(path, modules)
        if path:
            modules[parent]["children"].append(step)
    for key, signature in signatures.items():
        path = key.partition("@")[0]
        if path in modules and path:
            modules[path]["calls"][key] = {
                "args": [name_of(leaf) for leaf in internals.flat(signature.args)],
                "kwargs": {name: name_of(value) for name, value in signature.kwargs.items()},
                "outputs": [name_of(leaf) for leaf in internals.flat(signature.outputs)],
            }
    return modules


def _parent(path: str, modules: dict[str, Any]) -> tuple[str, str]:
    """The nearest layer above a path, and the step from it."""
    parent = path.rpartition(".")[0]
    while parent and parent not in modules:
        parent = parent.rpartition(".")[0]
    return parent, path.removeprefix(f"{parent}.") if parent else path


def _facts(layer: Any) -> dict[str, Any]:
    file, line, end = _source(type(layer))
    attributes = {
        key: value
        for key, value in vars(layer).items()
        if not key.startswith("_") and key not in _KERAS_OWN and isinstance(value, bool | int | float | str)
    }
    return {
        "class": class_name(layer),
        "name": layer.name,
        "chain": isinstance(layer, keras.Sequential) and not has_names(layer),
        "children": [],
        "parameters": [name for name in inspect.signature(layer.call).parameters if name != "training"],
        "file": file,
        "line": line,
        "end": end,
        "attributes": attributes,
        "calls": {},
    }


_KERAS_OWN = {"built", "supports_jit", "autocast", "name", "stop_training"}


def _source(kind: Any) -> tuple[str, int, int]:
    """File, first and last line of the class's `call`, unless it is Keras' own."""
    if kind.call.__module__.startswith("keras."):
        return "", 0, 0
    try:
        lines, first = inspect.getsourcelines(kind.call)
        return inspect.getsourcefile(kind.call) or "", first, first + len(lines) - 1
    except (OSError, TypeError):
        return "", 0, 0
