"""Keras layers by the attribute path under which their owner keeps them, as torch names its modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def layer_paths(model: Any) -> dict[str, Any]:
    """Every layer below `model` by path, such as `blocks.0.conv`.

    Digits index lists and the `layers` of a Sequential or of a layer that is a chain of others; a functional model's
    layers go by name. A layer reachable by two paths is listed under the first.
    """
    found: dict[str, Any] = {}
    _walk(model, "", found, {id(model)})
    return found


def numbered(parts: Sequence[Any]) -> list[Any]:
    """The items of a list or chain that have a number: PyTorch pads within its layers, Keras by a layer of its own."""
    import keras

    paddings = tuple(
        getattr(keras.layers, f"{kind}{rank}D") for kind in ("ZeroPadding", "Cropping") for rank in (1, 2, 3)
    )
    return [part for part in parts if not isinstance(part, paddings)]


def _walk(layer: Any, path: str, found: dict[str, Any], seen: set[int]) -> None:
    for step, child in _children(layer):
        if id(child) not in seen:
            seen.add(id(child))
            child_path = f"{path}.{step}" if path else step
            found[child_path] = child
            _walk(child, child_path, found, seen)


def _children(layer: Any) -> Iterator[tuple[str, Any]]:
    import keras

    from porter.converters.frontends.keras.paths import has_names

    if isinstance(layer, keras.Sequential) and has_names(layer):
        yield from ((child.name.replace(".", "_"), child) for child in layer.layers)
        return
    if isinstance(layer, keras.Sequential) or isinstance(vars(layer).get("layers"), list):
        for index, child in enumerate(numbered(layer.layers)):
            yield str(index), child
        return
    for name, value in list(vars(layer).items()):
        if not name.startswith("_"):
            yield from _layers_in(name, value)
    # A functional model's own layers have no attribute: they go by the name they were given.
    if isinstance(layer, keras.Model) and hasattr(layer, "_inputs_struct"):
        for child in layer.layers:
            yield child.name.replace(".", "_"), child


def _layers_in(step: str, value: Any) -> Iterator[tuple[str, Any]]:
    import keras

    if isinstance(value, keras.layers.Layer):
        yield step, value
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _layers_in(f"{step}.{index}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _layers_in(f"{step}.{key}", item)
