"""Layers of Keras that are no operation of their own: what their `call` comes to, in layers and `keras.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_rewrites: dict[str, Callable[..., Any]] = {}


def rewrite(*names: str) -> Callable:
    """Register what stands for the `call` of the Keras layers of these names."""

    def register(function: Callable) -> Callable:
        for name in names:
            _rewrites[name] = function
        return function

    return register


def find(layer: Any) -> Callable[..., Any] | None:
    """What stands for the layer's `call`, if its own cannot run on symbolic tensors."""
    for kind in type(layer).__mro__:
        if kind.__module__.startswith("keras."):
            return _rewrites.get(kind.__name__) if type(layer).call is kind.call else None
    return None
