"""The tables of rules, one for each target framework."""

from __future__ import annotations

import typing
from typing import Any

from porter.errors import UnsupportedError


def with_rules() -> tuple[str, ...]:
    """The targets that have a table: the sub-packages of this one."""
    import pkgutil

    return tuple(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def target(name: str) -> Any:
    """The package of a target, with `load()` (its table), `dialect_for(package)` and its folder of helpers.

    Raises:
        UnsupportedError: there is no table for the target.
    """
    import importlib

    if name not in with_rules():
        raise UnsupportedError(f"there are no rules for {name!r}; there are for {', '.join(with_rules())}")
    return importlib.import_module(f"{__name__}.{name}")


def coverage(name: str) -> list[dict[str, Any]]:
    """One row for each operator that a target's rules write, read from the rules themselves.

    Rows hold `operator`, `since` (the operator's version), `layout` (how it stands to a permutation of axes), `inputs`,
    `attributes` (those of any of its rules) and `notes`.

    Raises:
        UnsupportedError: there is no table for the target.
    """
    import onnx

    from porter.converters.opset import OPSET

    table = target(name).load()
    rows = []
    for (domain, op), rules in sorted(table.rules.items()):
        stance = rules[0].stance
        named = ", ".join((*stance.axes, *stance.vectors))
        rows.append(
            {
                "operator": f"{domain}::{op}" if domain else op,
                "since": None if domain else onnx.defs.get_schema(op, OPSET, "").since_version,
                "layout": f"axes ({named})" if named else stance.kind,
                "inputs": _merged(
                    [name + ("" if required else "?") for name, _, required in r.positional] for r in rules
                ),
                "attributes": _merged([name for name, _, _ in r.keywords if name not in _FACTS] for r in rules),
                "notes": "; ".join(dict.fromkeys(note for note in map(_note, rules) if note)),
            }
        )
    return rows


# What a rule may ask of a node besides its attributes.
_FACTS = ("op", "out", "outs", "training_facts", "channel_axis", "batch_first")


def _merged(lists: typing.Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))


def _note(rule: Any) -> str:
    """The rule's own note, else the first line of its docstring."""
    return rule.note or (rule.function.__doc__ or "").strip().partition("\n")[0]
