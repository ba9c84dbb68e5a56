"""The table from Keras layers and operations to ONNX: one function each, found by the class's own name.

A layer's rule takes the builder, the layer and the arguments of its `call`; an operation's rule takes the builder, the
arguments of its `call` and, as keywords, the settings of its constructor. Tensors come as `ir.Value`, sizes as numbers
or as scalar values, everything else as it is.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from porter.converters.registry import register


@dataclass(frozen=True)
class Rule:
    """How one layer or operation is translated.

    `settings` are the constructor's that an operation's rule takes. A layer that `activates` ends with its activation
    function, which its rule leaves to the function's own. `when` says which calls of a layer the rule is for.
    """

    function: Callable[..., Any]
    settings: tuple[str, ...] = ()
    activates: bool = False
    when: Callable[..., bool] | None = None

    @property
    def theirs(self) -> bool:
        """Whether it is a user's."""
        return not self.function.__module__.startswith("porter.")


_layers: dict[str, list[Rule]] = {}
_operations: dict[str, list[Rule]] = {}
_refused: dict[str, str] = {}


def keras_layer(*names: str, activates: bool = False, when: Callable[..., bool] | None = None) -> Callable:
    """Register a rule for layers of `keras.layers`.

    `activates` is for those that end with `layer.activation`. `when(layer, *args, **kwargs)` says whether the rule is
    for a call; other calls are what the layer's `call`, or its rewrite, does.
    """

    def registered(function: Callable) -> Callable:
        for name in names:
            _add(_layers, name, Rule(function, activates=activates, when=when))
        return function

    return registered


def keras_operation(*names: str) -> Callable:
    """Register a rule for operations, named by their classes: `Matmul` for `keras.ops.matmul`.

    Keyword-only parameters are settings of the operation; `operation` asks for the operation itself, `owner` for the
    layer in whose call it stands.
    """

    def registered(function: Callable) -> Callable:
        keywords = tuple(
            p.name for p in inspect.signature(function).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY
        )
        for name in names:
            _add(_operations, name, Rule(function, keywords))
        return function

    return registered


def refuse(reason: str, *names: str) -> None:
    """Layers that have no translation, and why."""
    _refused.update(dict.fromkeys(names, reason))


def _add(rules: dict[str, list[Rule]], name: str, rule: Rule) -> None:
    if rules.get(name) and not rule.theirs:
        raise ValueError(f"two rules for {name}")
    register(rules.setdefault(name, []), rule, rule.function)


def find(subject: Any) -> Rule | None:
    """The rule of a layer or operation; a subclass with a `call` of its own has none but a user's."""
    _load()
    import keras

    rules = _layers if isinstance(subject, keras.Layer) else _operations
    line: Any = type(subject).__mro__
    for kind in line:
        library = kind.__module__.startswith(("keras.", "porter."))
        known = [rule for rule in rules.get(kind.__name__, []) if rule.theirs or library]
        if known or library:
            return known[0] if known and type(subject).call is kind.call else None
    return None


def reason(subject: Any) -> str:
    """Why a layer or operation has no translation."""
    reasons = (_refused.get(kind.__name__) for kind in type(subject).__mro__)
    return next((why for why in reasons if why), "there is no translation to ONNX")


def is_composite(layer: Any) -> bool:
    """Whether the layer is what its `call` does in layers and operations."""
    _load()
    theirs = not type(layer).call.__module__.startswith("keras.")
    return theirs or find(layer) is not None or not any(kind.__name__ in _refused for kind in type(layer).__mro__)


def names() -> tuple[list[str], list[str]]:
    """All layers and all operations with a rule."""
    _load()
    return sorted(_layers), sorted(_operations)


def _load() -> None:
    if not _layers:
        from porter.converters.frontends.keras import rules as package

        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


_creations: dict[str, Callable[..., Any]] = {}


def keras_creation(*names: str) -> Callable:
    """Register a rule for a function of `keras.ops` that makes a tensor of sizes and numbers alone."""

    def registered(function: Callable) -> Callable:
        _creations.update(dict.fromkeys(names, function))
        return function

    return registered


def creation(name: str) -> Callable[..., Any]:
    """The rule of a function that makes a tensor of sizes alone."""
    _load()
    return _creations[name]
