"""Sequences of tensors that are left: those whose structure is known are tensors by now (`graph/sequences.py`)."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, Items
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.types import Tensor

_NOTE = "where the number of tensors and the places are known; else where they are slices of one tensor"


@torch_op("SequenceConstruct", layout="fixed")
def construct(*xs: Tensor) -> Expr:
    """A list."""
    return Items(tuple(xs), "[]")


@torch_op("SequenceEmpty", layout="fixed")
def empty(*, dtype: int = 1) -> Expr:
    """A list; `dtype` says nothing of what is in it, which is nothing."""
    return Items((), "[]")


@torch_op("SequenceInsert", layout="fixed", note=_NOTE)
def insert(xs: Tensor, x: Tensor, position: Tensor | None = None) -> Expr:
    raise CannotBind("the length of the sequence or the place in it is known at run time only")


@torch_op("SequenceErase", layout="fixed", note=_NOTE)
def erase(xs: Tensor, position: Tensor | None = None) -> Expr:
    raise CannotBind("the length of the sequence or the place in it is known at run time only")


@torch_op("SequenceAt", layout="fixed", note=_NOTE)
def at(xs: Tensor, position: Tensor) -> Expr:
    raise CannotBind("which tensor of the sequence it takes is known at run time only, and they may differ in shape")


@torch_op("SequenceLength", layout="fixed", note=_NOTE)
def length(xs: Tensor) -> Expr:
    raise CannotBind("the length of the sequence is known at run time only")


@torch_op("SplitToSequence", layout="fixed", note=_NOTE)
def split(x: Tensor, sizes: Tensor | None = None, *, axis: int, keepdims: int) -> Expr:
    raise CannotBind("the number of pieces is known at run time only")


@torch_op("ConcatFromSequence", layout="fixed", note=_NOTE)
def concat(xs: Tensor, *, axis: int, new_axis: int) -> Expr:
    raise CannotBind("the length of the sequence is known at run time only")
