"""How variables are stored: as their source's tensor or a permutation of it."""

from __future__ import annotations

import itertools
import re

from porter.converters import weights as wx
from porter.converters.codegen.context import Context
from porter.converters.codegen.nodes import Layer, Weight

# Names of constants that no author gave: lifted from the code, or folded.
_NAMELESS = re.compile(r"constant_\d+|(c_)?_?lifted_.*|.*_folded")


def constant_path(context: Context, scope: str, name: str) -> str:
    """Where the class of module `scope` holds a constant: under its name, if it is a buffer of the author's."""
    module, _, last = name.rpartition(".")
    stem = "constant" if module not in context.modules or _NAMELESS.fullmatch(last) else last
    lead = f"{scope}." if scope else ""
    taken = {path for path, _, _ in context.held.values()}
    numbered = (f"{stem}_{number}" for number in itertools.count(2))
    return next(lead + each for each in itertools.chain([stem], numbered) if lead + each not in taken)


def permuted_source(expr: wx.WeightExpr) -> tuple[wx.WeightExpr | None, tuple[int, ...]]:
    """(the source, the order of its axes) of a weight that is one tensor with its axes permuted; else (None, ())."""
    if isinstance(expr, wx.Transpose) and isinstance(expr.inner, wx.Source):
        return expr.inner, expr.perm
    if isinstance(expr, wx.Source):
        return expr, tuple(range(len(expr.shape)))
    return None, ()


def same_layer(a: Layer, b: Layer) -> bool:
    """Whether two uses mean one layer object."""
    return a.cls == b.cls and a.weights == b.weights and repr(a.kwargs) == repr(b.kwargs)


def named_by_path(weight: Weight) -> bool:
    """Whether the source names its variables by paths of layer names (Keras), which are no modules' paths."""
    return any("/" in name for name in weight.expr.sources())
