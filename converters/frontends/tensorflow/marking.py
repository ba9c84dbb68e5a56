"""Who makes which operation: layers and modules write their scope on what is made while they are traced.

Layers that the Keras front end knows are kept whole: their call becomes one call of a function, which runs as before
and bears the layer's mark. Masks travel on tensors and would be lost there, so a layer that sees one is traced through.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api as autograph

from porter.converters.frontends.tensorflow.functions import LAYER, SCOPE_MARK


@dataclass
class LayerCall:
    """A layer that is called as a whole: `args` and `kwargs` hold, for every tensor, its number among the operands."""

    layer: Any
    args: tuple
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Operand:
    """The place of a tensor in a call."""

    number: int


@dataclass
class Marks:
    """The layers and modules below a model by path, and what was kept whole."""

    root: Any
    owners: dict[int, tuple[str, str]] = field(default_factory=dict)  # id -> path, class
    layers: dict[str, LayerCall] = field(default_factory=dict)
    stack: list[list[Any]] = field(default_factory=list)
    numbers: Counter[str] = field(default_factory=Counter)
    whole: bool = False  # inside of a layer that is kept whole

    @contextmanager
    def recording(self) -> Iterator[None]:
        """While this holds, calls of layers and modules are marked."""
        with ExitStack() as stack:
            for kind in self._kinds():
                self._wrap(kind, stack)
            yield

    def _kinds(self) -> list[type]:
        """Classes whose `__call__` is wrapped: Keras' layer once, and that of each module."""
        kinds: dict[type, None] = {}
        if is_keras(self.root) or "keras" in sys.modules:
            import keras

            kinds[keras.Layer] = None
        for module in _modules(self.root).values():
            owner = next((cls for cls in type(module).__mro__ if "__call__" in vars(cls)), None)
            if owner is not None and not is_keras(module):
                kinds[owner] = None
        return list(kinds)

    def _wrap(self, kind: type, stack: ExitStack) -> None:
        original = vars(kind)["__call__"]
        marks = self

        @tf.autograph.experimental.do_not_convert
        def called(this: Any, *args: Any, **kwargs: Any) -> Any:
            bound = original.__get__(this, type(this))
            if not is_keras(this) and not hasattr(original, "get_concrete_function"):
                bound = _converted(bound)
            return marks.call(this, bound, args, kwargs)

        kind.__call__ = called  # type: ignore[method-assign]
        stack.callback(setattr, kind, "__call__", original)

    # ---- calls ----

    def call(self, owner: Any, bound: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a layer or module, marked."""
        known = self.owners.get(id(owner))
        if known is None or self.whole or not isinstance(_graph(), tf.Graph) or tf.executing_eagerly():
            return bound(*args, **kwargs)
        path, cls = known
        self.stack.append([path, self.numbers[path], cls])
        self.numbers[path] += 1
        try:
            scope = {SCOPE_MARK: _text(json.dumps(self.stack))}
            if self._keeps(owner, args, kwargs):
                return self._kept(owner, bound, args, kwargs, scope)
            with _graph()._attr_scope(scope):
                return bound(*args, **kwargs)
        finally:
            self.stack.pop()

    def _keeps(self, owner: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
        if not is_keras(owner):
            return False
        from keras import tree

        from porter.converters.frontends.keras import internals, table

        rule = table.find(owner)
        if rule is None or (rule.when is not None and not rule.when(owner, *args, **kwargs)):
            return False
        leaves = tree.flatten((args, kwargs))
        masked = any(internals.mask_of(leaf) is not None for leaf in leaves if tf.is_tensor(leaf))
        masks = getattr(owner, "mask_zero", False) or type(owner).__name__ == "Masking"
        plain = all(not isinstance(leaf, tf.Variable | internals.Variable) for leaf in leaves)
        return plain and not masked and not masks

    def _kept(
        self, owner: Any, bound: Callable[..., Any], args: tuple, kwargs: dict[str, Any], scope: dict[str, Any]
    ) -> Any:
        from keras import tree

        from porter.converters.frontends.keras import running, table

        tensors: list[Any] = []

        def place(leaf: Any) -> Any:
            if not tf.is_tensor(leaf):
                return leaf
            tensors.append(leaf)
            return Operand(len(tensors) - 1)

        args, kwargs = tree.map_structure(place, args), tree.map_structure(place, kwargs)
        key = f"layer_{len(self.layers)}"
        self.layers[key] = LayerCall(owner, args, kwargs)

        def run(*given: Any) -> Any:
            def back(leaf: Any) -> Any:
                return given[leaf.number] if isinstance(leaf, Operand) else leaf

            return bound(*tree.map_structure(back, args), **tree.map_structure(back, kwargs))

        activation = owner.activation if table.find(owner).activates else None
        self.whole = True
        try:
            bare = running.without_activation(owner) if activation is not None else nullcontext()
            with bare, _graph()._attr_scope({**scope, LAYER: _text(key)}):
                result = tf.function(run, autograph=False)(*tensors)
        finally:
            self.whole = False
        if activation is None:
            return result
        with _graph()._attr_scope(scope):  # which the layer's rule leaves out
            return activation(result)


def marks_of(root: Any) -> Marks:
    """Marks for what a model holds."""
    if is_keras(root):
        from porter.converters.frontends.keras.paths import class_name, layer_paths

        found = {"": root, **layer_paths(root)}
        return Marks(root, {id(layer): (path, class_name(layer)) for path, layer in found.items()})
    found = _modules(root)
    kinds = {id(module): (path, _class(module)) for path, module in found.items()}
    return Marks(root, kinds)


def _class(module: Any) -> str:
    if is_keras(module):
        from porter.converters.frontends.keras.paths import class_name

        return class_name(module)
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _modules(root: Any) -> dict[str, Any]:
    """Modules and layers by attribute path."""
    if not isinstance(root, tf.Module):
        return {}
    found: dict[str, Any] = {"": root}

    def visit(path: str, item: Any) -> None:
        if isinstance(item, tf.Module) or is_keras(item):
            if all(item is not other for other in found.values()):
                found[path] = item
                walk(path, item)
        elif isinstance(item, dict):
            for key in item:
                visit(f"{path}.{key}", item[key])
        elif isinstance(item, list | tuple):
            for index, each in enumerate(item):
                visit(f"{path}.{index}", each)

    def walk(path: str, owner: Any) -> None:
        if is_keras(owner):
            from porter.converters.frontends.keras.paths import layer_paths

            for step, layer in layer_paths(owner).items():
                found.setdefault(f"{path}.{step}", layer)
            return
        for name, value in vars(owner).items():
            if not name.startswith("_"):
                visit(f"{path}.{name}" if path else name, value)

    walk("", root)
    return found


def is_keras(value: Any) -> bool:
    """Whether a value is a layer or model of Keras; Keras is not loaded to find out."""
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(value, keras.Layer)


def described(root: Any) -> dict[str, dict[str, Any]]:
    """Facts of the modules for the graph's metadata: class, children, where the source stands."""
    if is_keras(root):
        from porter.converters.frontends.keras.modules import describe

        return describe(root, {}, lambda leaf: None)
    found = _modules(root) if isinstance(root, tf.Module) else {}
    facts: dict[str, dict[str, Any]] = {}
    for path, module in found.items():
        simple = {
            key: value
            for key, value in vars(module).items()
            if not key.startswith("_") and isinstance(value, bool | int | float | str)
        }
        facts[path] = {
            "class": _class(module),
            "children": [],
            "parameters": [],
            "attributes": simple,
            "calls": {},
            **_place(type(module)),
        }
    for path in found:
        parent = path.rpartition(".")[0]
        while parent and parent not in facts:
            parent = parent.rpartition(".")[0]
        if path:
            facts[parent]["children"].append(path.removeprefix(f"{parent}.") if parent else path)
    return facts


def _place(kind: type) -> dict[str, Any]:
    import inspect

    call = getattr(kind, "__call__", None)  # noqa: B004
    call = getattr(call, "python_function", call)
    try:
        lines, first = inspect.getsourcelines(call)
        return {"file": inspect.getsourcefile(call) or "", "line": first, "end": first + len(lines) - 1}
    except (OSError, TypeError):
        return {"file": "", "line": 0, "end": 0}


def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Python's control flow on tensors as operations, which tf.function does for what it calls directly."""
    return autograph.tf_convert(function, ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED))


def _graph() -> Any:
    return tf.compat.v1.get_default_graph()


def _text(value: str) -> Any:
    return attr_value_pb2.AttrValue(s=value.encode())
