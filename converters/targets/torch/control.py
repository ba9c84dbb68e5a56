"""Branches and loops: Python's own, over functions inside the method. A branch is kept whole when it is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from porter.converters.codegen.functions import Function
from porter.converters.codegen.nodes import Expr, Items, Size, call, wrap
from porter.converters.graph.canonical import constant_of
from porter.converters.graph.sequences import is_sequence
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import new
from porter.converters.targets.types import Dims, Ints, Tensor


@torch_op("If", layout="fixed")
def branch(cond: Tensor, *, outs: list[Tensor], then_branch: Function, else_branch: Function) -> Expr:
    """Both branches see what stands around them."""
    if any(is_sequence(out.value) for out in outs):
        raise CannotBind("its branches give sequences of tensors of different lengths")
    return call("choose", cond if cond.rank == 0 else call(".squeeze", cond), then_branch, else_branch)


@torch_op("Loop", domain="porter", layout="fixed")
def counted_loop(
    turns: Dims, *carried: Tensor, outs: list[Tensor], body: Function, condition: Function | None = None
) -> Expr:
    return _loop(wrap(turns[0]), carried, outs, body, condition)


@torch_op("Loop", domain="porter", layout="fixed")
def loop(
    turns: Tensor | None = None,
    *carried: Tensor,
    outs: list[Tensor],
    body: Function,
    condition: Function | None = None,
) -> Expr:
    return _loop(turns, carried, outs, body, condition)


def _loop(
    turns: Expr | None,
    carried: Sequence[Tensor],
    outs: list[Tensor],
    body: Function,
    condition: Function | None,
) -> Expr:
    """A loop that runs while a condition of what it carries holds, and for a number of turns at most."""
    if turns is None and condition is None:
        raise CannotBind("the loop never ends")
    if any(is_sequence(value.value) for value in carried):
        raise CannotBind("it carries a sequence of tensors whose number or shapes are known at run time only")
    step = replace(
        _tupled(body),
        name=_named(body, "step"),
        names=body.names if any(body.names) else ("i",),
        like=(None, *map(_initial, carried)),
    )
    given = {
        "turns": turns,
        "condition": replace(condition, name=_named(condition, "condition")) if condition else None,
    }
    empty = _empty(outs[len(carried) :], carried)
    whole = call("run_loop", step, Items(tuple(map(_initial, carried))), **given, empty=empty)
    return whole[0] if len(outs) == 1 else whole


@torch_op("Scan", layout="fixed")
def scan(
    *xs: Tensor,
    outs: list[Tensor],
    body: Function,
    num_scan_inputs: int,
    scan_input_axes: Ints = (),
    scan_output_axes: Ints = (),
    scan_input_directions: Ints = (),
    scan_output_directions: Ints = (),
) -> Expr:
    """Over first axes: the layout has put all others there."""
    count = len(xs) - num_scan_inputs
    backwards = {*(scan_input_directions or [0] * num_scan_inputs)}
    backwards |= {*(scan_output_directions or [0] * (len(outs) - count))}
    if len(backwards) > 1:
        raise CannotBind("some of its sequences run forwards and some backwards")
    initial = tuple(map(_initial, xs[:count]))
    step = replace(_tupled(body), name=_named(body, "step"), like=(*initial, *[None] * num_scan_inputs))
    reverse = True if backwards == {1} else None
    whole = call("run_scan", step, Items(initial), Items(tuple(xs[count:])), reverse=reverse)
    return whole[0] if len(outs) == 1 else whole


def _tupled(body: Function) -> Function:
    """A body that always gives a tuple."""
    return body if isinstance(body.result, Items) else replace(body, result=Items((body.result,)))


def _named(step: Function, name: str) -> str:
    """The author's name of a function, else `name`."""
    return step.name if step.name not in ("body", "condition") else name


def _initial(value: Tensor) -> Expr:
    """An initial value as a tensor."""
    array = constant_of(value.value)
    if array is not None and array.ndim == 0:
        return call("torch.tensor", array.item(), **new(value.dtype))
    return value


def _empty(results: Sequence[Tensor], carried: Sequence[Tensor]) -> Expr | None:
    """What the turns give together when there are none."""
    if not results:
        return None
    known = {size for value in carried for size in value.shape}
    made: list[Expr] = []
    for result in results:
        sizes = result.shape[1:]
        if any(
            isinstance(size, str) and (size == "?" or size.startswith("unk__")) and size not in known for size in sizes
        ):
            raise CannotBind("the sizes of what a turn gives are known in the turn only")
        made.append(
            call(
                "torch.zeros",
                0,
                *(Size(size) if isinstance(size, str) else size for size in sizes),
                **new(result.dtype),
            )
        )
    return Items(tuple(made))
