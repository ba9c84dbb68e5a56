"""The table from ATen operators to ONNX: one function per operator, found by the operator's own name.

A rule takes the builder and the operator's arguments as its schema names them: tensors as `ir.Value`, everything else
as Python values, sizes as ints or as scalar values. It returns the output value, or a tuple of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Promotion = Literal["default", "int_to_float", "none"]


@dataclass(frozen=True)
class AtenRule:
    """How one operator is translated, and which arguments take part in torch's type promotion."""

    function: Callable[..., Any]
    promoted: tuple[int, ...]
    promotion: Promotion


_rules: dict[str, AtenRule] = {}


def aten(*names: str, promoted: Sequence[int] = (), promotion: Promotion = "default") -> Callable:
    """Register a rule for `aten` operators, named with their overload ("add.Tensor"; ".default" may be left out).

    `promoted` are the positions of the arguments that torch brings to one dtype before it computes; Python numbers
    among them become constants of that dtype.
    """

    def register(function: Callable) -> Callable:
        for name in names:
            full = name if "." in name else f"{name}.default"
            if full in _rules:
                raise ValueError(f"two ATen rules for {full}")
            _rules[full] = AtenRule(function, tuple(promoted), promotion)
        return function

    return register


def find(target: Any) -> AtenRule | None:
    """The rule of an `OpOverload`, the in-place form sharing that of the functional one."""
    _load()
    if getattr(target, "namespace", "") != "aten":
        return None
    name = f"{target._opname}.{target._overloadname}"
    return _rules.get(name) or _rules.get(f"{target._opname.rstrip('_')}.{target._overloadname}")


def names() -> list[str]:
    """All operators with a rule."""
    _load()
    return sorted(_rules)


def _load() -> None:
    if not _rules:
        from porter.converters.frontends.torch import aten as package

        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
