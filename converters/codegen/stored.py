"""How variables are stored: as their source's tensor or a permutation of it."""

from __future__ import annotations

from porter.converters import weights as wx
from porter.converters.codegen.nodes import Layer


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
