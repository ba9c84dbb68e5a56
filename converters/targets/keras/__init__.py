"""The Keras 3 target: one rule per operator, by family."""

from __future__ import annotations

from porter.converters.codegen.dialect import Dialect
from porter.converters.graph.orders import CHANNELS_LAST
from porter.converters.targets.table import Target

keras_op = Target("keras", CHANNELS_LAST)


def dialect_for(package: str) -> Dialect:
    """How Keras code is written; `package` is what the classes are registered under."""
    from porter.converters.targets.keras.dialect import KerasDialect

    return KerasDialect(package)


def load() -> Target:
    """The target with every rule module of this package imported."""
    import importlib
    import pkgutil

    for module in pkgutil.iter_modules(__path__):
        if module.name != "helpers":
            importlib.import_module(f"{__name__}.{module.name}")
    return keras_op
