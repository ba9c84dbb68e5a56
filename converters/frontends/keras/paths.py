"""Keras layers by the attribute path under which their owner keeps them, as torch names its modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# Names that Keras gives to models.
_AUTOMATIC = re.compile(r"(functional|sequential|model)(_\d+)?")


def layer_paths(model: Any) -> dict[str, Any]:
    """Every layer below `model` by path, such as `blocks.0.conv`.

    Digits index lists and the layers of a Sequential whose author named none; others go by name, as those of a
    functional model do. A layer reachable by two paths is listed under the first.
    """
    from porter.converters.frontends.keras.internals import inner_names

    found: dict[str, Any] = {}
    _walk(model, "", found, {id(model)}, inner_names())
    return found


def _walk(layer: Any, path: str, found: dict[str, Any], seen: set[int], inner: frozenset[str]) -> None:
    for step, child in children(layer, inner):
        if id(child) not in seen:
            seen.add(id(child))
            child_path = f"{path}.{step}" if path else step
            found[child_path] = child
            _walk(child, child_path, found, seen, inner)


def children(layer: Any, inner: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """(step, layer) of the layers that a layer holds; `inner` are the attributes that are Keras' own."""
    import keras

    if isinstance(layer, keras.Sequential):
        named = has_names(layer)
        for index, child in enumerate(layer.layers):
            yield child.name.replace(".", "_") if named else str(index), child
        return
    attributes = {
        name: value for name, value in vars(layer).items() if name not in inner and not name.startswith("_self_")
    }
    for private in (False, True):
        for name, value in attributes.items():
            if name.startswith("_") == private:
                yield from _layers_in(name, value)
    # A functional model's own layers have no attribute: they go by the name they were given.
    if isinstance(layer, keras.Model) and hasattr(layer, "_inputs_struct"):
        for child in layer.layers:
            yield child.name.replace(".", "_"), child


def has_names(model: Any) -> bool:
    """Whether the author named every layer of a Sequential that has weights; Keras names the others by their class."""
    from porter.converters.frontends.keras.internals import is_named_by_keras

    weighted = [layer for layer in model.layers if layer.weights]
    return bool(weighted) and not any(is_named_by_keras(layer) for layer in weighted)


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


def class_name(layer: Any) -> str:
    """The class as its author imports it: `keras.layers.Dense`, `package.module.Block`.

    Functional models have no class of their own: their name says what they are. A subclass of a Keras layer that
    computes what that does is that layer.
    """
    import keras

    kind = type(layer)
    if kind.__module__.startswith("keras."):
        if isinstance(layer, keras.Model) and not (isinstance(layer, keras.Sequential) and not has_names(layer)):
            return own_name(layer)
        for package, prefix in ((keras.layers, "keras.layers"), (keras, "keras")):
            if getattr(package, kind.__name__, None) is kind:
                return f"{prefix}.{kind.__name__}"
    for base in kind.__mro__[1:]:
        public = getattr(keras.layers, base.__name__, None) is base and base is not keras.layers.Layer
        if public and vars(base).get("call") is getattr(kind, "call", None) and not issubclass(base, keras.Model):
            return f"keras.layers.{base.__name__}"
    return f"{kind.__module__}.{kind.__qualname__}"


def own_name(model: Any) -> str:
    """A class for a model that has none of its own, after the name that the author gave it."""
    return f"keras.models.{'Model' if _AUTOMATIC.fullmatch(model.name) else camel(model.name)}"


def camel(name: str) -> str:
    """`resnet_block` as the name of a class: `ResnetBlock`."""
    words = [word for word in "".join(c if c.isalnum() else " " for c in name).split() if word]
    text = "".join(word[0].upper() + word[1:] for word in words)
    return text if text and not text[0].isdigit() else f"Model{text}"


def variable_names(model: Any) -> dict[int, str]:
    """{id of a variable: its name}: Keras' own path, made unique where two layers share theirs."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for variable in model.variables:
        if id(variable) in names:
            continue
        name, count = variable.path, 1
        while name in taken:
            count += 1
            name = f"{variable.path}_{count}"
        taken.add(name)
        names[id(variable)] = name
    return names
