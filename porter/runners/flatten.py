"""The tensors of a nested output, in order, each with a name a person can follow back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from porter.errors import InputError


def flatten_outputs(value: Any, is_tensor: Callable[[Any], bool], name: str = "output") -> dict[str, Any]:
    """Tensors of tuples, lists, mappings and dataclasses by name; None is left out.

    Raises:
        InputError: something that holds no tensors that can be found, such as a cache object.
    """
    found: dict[str, Any] = {}
    _collect(value, is_tensor, "", name, found)
    return found


def _collect(value: Any, is_tensor: Callable[[Any], bool], path: str, name: str, found: dict[str, Any]) -> None:
    if value is None:
        return
    if is_tensor(value) or isinstance(value, bool | int | float):
        found[path or name] = value
        return
    for step, child in _children(value, path or name):
        _collect(child, is_tensor, _joined(path, step, name), name, found)


def _joined(path: str, step: str | int, name: str) -> str:
    if isinstance(step, int):
        return f"{path or name}[{step}]"
    return f"{path}.{step}" if path else step


def _children(value: Any, path: str) -> list[tuple[str | int, Any]]:
    # Model outputs of some libraries are mappings and dataclasses at once, and hide unset fields only as mappings.
    if isinstance(value, Mapping):
        return [(str(key), child) for key, child in value.items()]
    if isinstance(value, tuple | list):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    raise InputError(
        f"{path} is a {type(value).__name__}, in which no tensors can be found: give the runner a `call` that returns "
        "the tensors to compare."
    )
