"""A module that is ready to be written: its classes, and what a target needs to know to write the rest around them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from porter.converters.codegen.body import Variable
from porter.converters.codegen.tree import Statement
from porter.converters.initial import Draw


@dataclass(frozen=True)
class Input:
    """An input of the generated model in the target's own axis order; sizes that vary are None."""

    value: ir.Value
    name: str
    shape: tuple[int | None, ...]
    dtype: str
    readers: Sequence[Statement]


@dataclass(frozen=True)
class Module:
    """The texts of helpers and classes, the root's class last, with what it takes and holds.

    `draws` says what parameters of the source are drawn from, where that is known.
    `chain` are the statements that make `model` where it is a chain of layers and has no class; `added` are the classes
    of layers in chains that have no number there.
    """

    doc: str
    helpers: Sequence[str]
    classes: Sequence[str]
    root: str
    inputs: Sequence[Input]
    variables: Sequence[Variable]
    draws: Mapping[str, Draw]
    chain: Sequence[str] = ()
    added: Sequence[str] = ()


def key(variable: Variable) -> str:
    """The variable's attribute path from the root: its name in the weights file."""
    return ".".join([*(str(part) for part in variable.path), *([variable.slot] if variable.slot else [])])


def frozen_paths(variables: Sequence[Variable], statistics: Collection[str]) -> tuple[str, ...]:
    """The shortest attribute paths that hold every frozen variable of a layer and nothing that is trained.

    `statistics` are the variables of layers that no gradient reaches in any case.
    """
    trained = {path for v in variables if v.weight.trainable for path in _prefixes(v)}
    frozen = [v for v in variables if v.slot and not v.weight.trainable and v.slot not in statistics]
    return tuple(dict.fromkeys(next(path for path in _prefixes(v) if path not in trained) for v in frozen))


def _prefixes(variable: Variable) -> list[str]:
    steps = key(variable).split(".")
    return [".".join(steps[: count + 1]) for count in range(len(steps))]


def docstring(doc: str) -> str:
    """Text as a docstring may hold it: it has names that come from a model, and nothing in them may end the string."""
    line = "".join(c if c.isprintable() else " " for c in doc).replace("\\", "\\\\").replace('"', "'")
    return f'"""{" ".join(line.split())}"""'
