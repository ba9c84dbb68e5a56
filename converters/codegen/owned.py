"""Layers whose parameters the author's class holds itself, as the function that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from porter.converters import weights as wx
from porter.converters.codegen.nodes import Apply, Expr
from porter.converters.codegen.stored import named_by_path
from porter.converters.library import is_library

if TYPE_CHECKING:
    from porter.converters.codegen.body import BodyBuilder


def called_on_own(builder: BodyBuilder, part: Apply) -> Expr | None:
    """The function on the parameters of this very module; None where a layer has them, or must have them."""
    held, path = {}, builder.call.path
    if is_library(builder.context.modules.get(path, {}).get("class", "")):
        return None
    for slot, weight in part.layer.weights:
        expr = weight.expr
        name = expr.name if isinstance(expr, wx.Source) and expr.whole else ""
        if weight.kind != "parameter" or named_by_path(weight) or not name or slot != name.rpartition(".")[2]:
            return None
        if name.rpartition(".")[0] != path:
            return None
        held[slot] = weight
    if not held or len(part.args) != 1 or part.kwargs:
        return None
    return builder.context.dialect.as_function(
        part.layer, part.args[0], {slot: builder.access(weight.expr, weight) for slot, weight in held.items()}
    )
