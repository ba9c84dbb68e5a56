"""How variables are stored: as their source's tensor, a permutation of it, or several of them joined."""

from __future__ import annotations

import itertools
import re

from porter.converters import weights as wx
from porter.converters.codegen.context import Context
from porter.converters.codegen.dialect import Dialect
from porter.converters.codegen.nodes import Expr, Index, Items, Layer, Literal, Weight
from porter.errors import UnsupportedError

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


def source_read(dialect: Dialect, name: str, stored: wx.WeightExpr, variable: Expr) -> Expr | None:
    """The source tensor `name` as it is read from a variable that is `stored` so; None if not all of it is there."""
    match stored:
        case wx.Source():
            return variable if stored.name == name and stored.whole else None
        case wx.Transpose(inner=inner, perm=perm):
            back = tuple(perm.index(axis) for axis in range(len(perm)))
            return source_read(dialect, name, inner, dialect.structural("transpose", variable, perm=back))
        case wx.Reshape(inner=inner):
            return source_read(dialect, name, inner, dialect.structural("reshape", variable, shape=inner.shape))
        case wx.Flip(inner=inner, axes=axes):
            return source_read(dialect, name, inner, dialect.structural("flip", variable, axes=axes))
        case wx.Concat(parts=parts, axis=axis):
            stops = list(itertools.accumulate(part.shape[axis] for part in parts))
            pieces = [
                (part, Index(variable, (*[Literal(slice(None))] * axis, Literal(slice(stop - part.shape[axis], stop)))))
                for part, stop in zip(parts, stops, strict=True)
                if name in part.sources()
            ]
            return _joined(dialect, name, pieces, axis)
    return None


def _joined(dialect: Dialect, name: str, pieces: list[tuple[wx.WeightExpr, Index]], axis: int) -> Expr | None:
    """The source tensor of pieces of a variable: one that holds all of it, or boxes that follow each other."""
    if len(pieces) == 1:
        return source_read(dialect, name, *pieces[0])
    boxes = [(part.box, part.full, piece) for part, piece in pieces if isinstance(part, wx.Source)]
    boxes.sort(key=lambda each: each[0][axis])
    tiled = [bound for box, _, _ in boxes for bound in box[axis]]
    others = all(
        bounds == (0, size)
        for box, full, _ in boxes
        for at, (bounds, size) in enumerate(zip(box, full, strict=True))
        if at != axis
    )
    if len(boxes) < len(pieces) or not others or tiled[::2] != [0, *tiled[1:-1:2]] or tiled[-1] != boxes[0][1][axis]:
        return None
    return dialect.structural("concat", Items(tuple(piece for _, _, piece in boxes), "[]"), axis=axis)


def converted(dialect: Dialect, variable: Expr, stored: wx.WeightExpr, wanted: wx.WeightExpr) -> Expr:
    """A variable in another form than the one that it is stored in.

    Raises:
        UnsupportedError: it does not hold all that is wanted.
    """
    source, perm = permuted_source(stored)
    target, other = permuted_source(wanted)
    if source is None and target is not None:
        (name,) = wanted.sources()
        whole = source_read(dialect, name, stored, variable)
        if whole is not None:
            variable, source, perm = whole, target, tuple(range(len(other)))
    if source is None or source != target:
        raise UnsupportedError(f"{wanted.to_json()} from a variable stored as {stored.to_json()}")
    relative = tuple(perm.index(axis) for axis in other)
    if relative == tuple(range(len(relative))):
        return variable
    return dialect.structural("transpose", variable, perm=relative)


def same_layer(a: Layer, b: Layer) -> bool:
    """Whether two uses mean one layer object."""
    return a.cls == b.cls and a.weights == b.weights and repr(a.kwargs) == repr(b.kwargs)


def named_by_path(weight: Weight) -> bool:
    """Whether the source names its variables by paths of layer names (Keras), which are no modules' paths."""
    return any("/" in name for name in weight.expr.sources())
