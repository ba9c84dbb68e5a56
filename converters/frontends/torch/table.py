"""The table from ATen operators to ONNX: one function per operator, found by the operator's own name.

A rule takes the builder and the operator's arguments as its schema names them: tensors as `ir.Value`, everything else
as Python values, sizes as ints or as scalar values. It returns the output value, or a tuple of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from porter.converters.frontends.torch.complexes import has_complex
from porter.converters.registry import register

Promotion = Literal["default", "int_to_float", "none"]


@dataclass(frozen=True)
class AtenRule:
    """How one operator is translated, and which arguments take part in torch's type promotion."""

    function: Callable[..., Any]
    promoted: tuple[int, ...]
    promotion: Promotion


# The first rule of an operator counts; there is a second one where a user's replaces porter's.
_rules: dict[str, list[AtenRule]] = {}
_complex_rules: dict[str, list[AtenRule]] = {}


def aten(
    *names: str, promoted: Sequence[int] = (), promotion: Promotion = "default", on_complex: bool = False
) -> Callable:
    """Register a rule for `aten` operators, named with their overload ("add.Tensor"; ".default" may be left out).

    Those of another namespace are named with it ("torchvision::nms").

    `promoted` are the positions of the arguments that torch brings to one dtype before it computes; Python numbers
    among them become constants of that dtype. `on_complex` is for the operator where it reads or makes complex tensors,
    which are real ones with a last axis (real, imaginary).
    """
    rules = _complex_rules if on_complex else _rules

    def decorate(function: Callable) -> Callable:
        for name in names:
            full = name if "." in name else f"{name}.default"
            register(rules.setdefault(full, []), AtenRule(function, tuple(promoted), promotion), function)
        return function

    return decorate


def find(node: Any) -> AtenRule | None:
    """The rule of an fx node's `OpOverload`, the in-place form sharing that of the functional one."""
    _load()
    target = node.target
    space = getattr(target, "namespace", "")
    if not space:
        return None
    rules = _complex_rules if has_complex(node) else _rules
    prefix = "" if space == "aten" else f"{space}::"
    names = (f"{prefix}{name}.{target._overloadname}" for name in (target._opname, target._opname.rstrip("_")))
    return next((rules[name][0] for name in names if rules.get(name)), None)


def named(name: str) -> AtenRule:
    """The rule of an operator for real tensors, the operator named as in `aten`."""
    return _rules[name if "." in name else f"{name}.default"][0]


def names() -> list[str]:
    """All operators with a rule."""
    _load()
    return sorted({name for rules in (_rules, _complex_rules) for name, found in rules.items() if found})


@cache
def _load() -> None:
    from porter.converters.frontends.torch import aten as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
