"""Branches and loops."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.types import Function, Tensor


@keras_op("If", layout="fixed")
def branch(cond: Tensor, *, then_branch: Function, else_branch: Function) -> Expr:
    """Both branches see what stands around them."""
    single = cond if cond.rank == 0 else call("ops.reshape", cond, ())
    return call("ops.cond", single, then_branch, else_branch)
