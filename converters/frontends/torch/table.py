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

from porter.converters.frontends.torch.complexes import has_complex

Promotion = Literal["default", "int_to_float", "none"]


@dataclass(frozen=True)
class AtenRule:
    """How one operator is translated, and which arguments take part in torch's type promotion."""

    function: Callable[..., Any]
    promoted: tuple[int, ...]
    promotion: Promotion


_rules: dict[str, AtenRule] = {}
_complex_rules: dict[str, AtenRule] = {}


def aten(
    *names: str, promoted: Sequence[int] = (), promotion: Promotion = "default", on_complex: bool = False
) -> Callable:
    """Register a rule for `aten` operators, named with their overload ("add.Tensor"; ".default" may be left out).

    `promoted` are the positions of the arguments that torch brings to one dtype before it computes; Python numbers
    among them become constants of that dtype. `on_complex` is for the operator where it reads or makes complex tensors,
    which are real ones with a last axis (real, imaginary).
    """
    rules = _complex_rules if on_complex else _rules

    def register(function: Callable) -> Callable:
        for name in names:
            full = name if "." in name else f"{name}.default"
            if full in rules:
                raise ValueError(f"two ATen rules for {full}")
            rules[full] = AtenRule(function, tuple(promoted), promotion)
        return function

    return register


def find(node: Any) -> AtenRule | None:
    """The rule of an fx node's `OpOverload`, the in-place form sharing that of the functional one."""
    _load()
    target = node.target
    if getattr(target, "namespace", "") != "aten":
        return None
    rules = _complex_rules if has_complex(node) else _rules
    name = f"{target._opname}.{target._overloadname}"
    return rules.get(name) or rules.get(f"{target._opname.rstrip('_')}.{target._overloadname}")


def named(name: str) -> AtenRule:
    """The rule of an operator for real tensors, the operator named as in `aten`."""
    return _rules[name if "." in name else f"{name}.default"]


def names() -> list[str]:
    """All operators with a rule."""
    _load()
    return sorted(_rules.keys() | _complex_rules.keys())


def _load() -> None:
    if not _rules:
        from porter.converters.frontends.torch import aten as package

        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
