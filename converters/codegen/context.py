"""What all bodies of one model share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from porter.converters import weights as wx
from porter.converters.codegen.dialect import Dialect
from porter.converters.codegen.nodes import Weight
from porter.converters.codegen.normal import Construct
from porter.converters.codegen.tree import Statement


@dataclass
class Context:
    """What all bodies of one model share."""

    dialect: Dialect
    weights: Mapping[ir.Value, Weight]
    modules: Mapping[str, dict[str, Any]]
    graph: ir.Graph
    readers: Mapping[ir.Value, list[Statement]]  # statements that read a value
    constructs: dict[str, Construct] = field(default_factory=dict)  # module path -> how its class is constructed
    trains: dict[str, bool] = field(default_factory=dict)
    inlined: set[str] = field(default_factory=set)  # module paths that get no class of their own
    held: dict[str, tuple[str, str, wx.WeightExpr]] = field(
        default_factory=dict
    )  # source -> (layer path, slot, stored form)


def owner_of(weight: Weight) -> str:
    """The module that a weight's sources belong to: their longest common path."""
    paths = [name.split(".")[:-1] for name in weight.expr.sources()]
    common = paths[0]
    for path in paths[1:]:
        count = next(
            (i for i, (a, b) in enumerate(zip(common, path, strict=False)) if a != b), min(len(common), len(path))
        )
        common = common[:count]
    return ".".join(common)


def within(path: str, scope: str) -> bool:
    """Whether a module path lies at or below another."""
    return not scope or path == scope or path.startswith(f"{scope}.")
