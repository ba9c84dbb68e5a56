"""Permutations of axes as PyTorch people write them."""

from __future__ import annotations

from collections.abc import Sequence

from porter.converters.codegen.nodes import Call, Expr, Literal, call


def permuted(x: Expr, perm: Sequence[int]) -> Expr:
    """`x.transpose(a, b)` where only two axes change places, `x.t()` where these are all, else `x.permute(…)`."""
    moved = [axis for axis, other in enumerate(perm) if axis != other]
    if len(perm) == 2 and moved:
        return call(".t", x)
    if len(moved) == 2:
        rank = len(perm)
        # The last two axes are counted from behind, as in products of matrices.
        return call(".transpose", x, *(axis - rank if moved[0] >= rank - 2 and rank > 3 else axis for axis in moved))
    return call(".permute", x, *perm)


def permutation(expr: Expr) -> tuple[Expr, tuple[int, ...]] | None:
    """What a `permute` is of, and its axes; None for anything else."""
    if not isinstance(expr, Call) or expr.kwargs:
        return None
    axes = tuple(item.value for item in expr.args[1:] if isinstance(item, Literal))
    if expr.func == ".t":
        return expr.args[0], (1, 0)
    return (expr.args[0], axes) if expr.func == ".permute" and len(axes) == len(expr.args) - 1 else None
