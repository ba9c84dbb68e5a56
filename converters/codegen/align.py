"""Which statement of one body is which of another, where some may be missing."""

from __future__ import annotations

from typing import Any

from porter.converters.codegen.body import Body
from porter.converters.codegen.nodes import Expr, Items, Literal
from porter.converters.codegen.normal import Block, Construct, IfPresent, Line, Local, Loop, Repeat, SizeOf
from porter.converters.codegen.subgraphs import align_blocks, outline


class Differ(Exception):
    """Two bodies are not the same up to literals; the message says where."""


def shell(expr: Expr) -> Any:
    """Everything of an expression but its subexpressions, value numbers and literals."""
    if isinstance(expr, Literal):
        return "literal"
    if isinstance(expr, Local):
        return "local"
    if isinstance(expr, Loop):
        return ("loop", expr.heads, len(expr.lines), len(expr.carried))
    if isinstance(expr, SizeOf):
        return ("size", expr.axis)
    if isinstance(expr, Block):
        return outline(expr)
    if isinstance(expr, IfPresent):
        return ("if", expr.path)
    blank = tuple(Local(0) for _ in expr.children())
    return expr.rebuilt(blank) if blank else expr


def alike(a: Expr, b: Expr) -> bool:
    """Whether two expressions are the same up to literals and values."""
    if isinstance(a, Literal) and isinstance(b, Literal):
        return True
    if type(a) is not type(b) or shell(a) != shell(b) or len(a.children()) != len(b.children()):
        return False
    return all(alike(x, y) for x, y in zip(a.children(), b.children(), strict=True))


def aligned_lines(lead: Body, body: Body, *, from_end: bool) -> tuple[list[Line | None], dict[int, int]]:
    """`body`'s lines beside the lead's (None where it lacks one), and the lead's number of each of its values.

    Every line of `body` must be found in the lead, in order; `from_end` prefers the last place that fits.

    Raises:
        Differ: some line has no counterpart.
    """
    if len(body.inputs) != len(lead.inputs) or len(body.outputs) != len(lead.outputs):
        raise Differ("they take or give different numbers of values")
    if body.arguments != lead.arguments:
        raise Differ("their arguments have different names")
    numbers = dict(zip(body.inputs, lead.inputs, strict=True))
    places = _places(lead.lines, body.lines, from_end=from_end)
    result: list[Line | None] = [None] * len(lead.lines)
    for place, own in zip(places, body.lines, strict=True):
        line = lead.lines[place]
        numbers.update(zip(own.outputs, line.outputs, strict=True))
        if isinstance(line.expr, Loop) and isinstance(own.expr, Loop):
            _align_loop(line.expr, own.expr, numbers)
        align_blocks(line.expr, own.expr, numbers)
        result[place] = own
    return result, numbers


def _places(lead: list[Line], other: list[Line], *, from_end: bool) -> list[int]:
    def fits(a: Line, b: Line) -> bool:
        return len(a.outputs) == len(b.outputs) and alike(a.expr, b.expr)

    if len(lead) == len(other):
        if all(fits(a, b) for a, b in zip(lead, other, strict=True)):
            return list(range(len(lead)))
        raise Differ("they have different statements")
    places: list[int] = []
    candidates = range(len(lead) - 1, -1, -1) if from_end else range(len(lead))
    rest = iter(candidates)
    for line in reversed(other) if from_end else other:
        place = next((index for index in rest if fits(lead[index], line)), None)
        if place is None:
            raise Differ("they have different statements")
        places.append(place)
    return places[::-1] if from_end else places


def _align_loop(lead: Loop, other: Loop, numbers: dict[int, int]) -> None:
    for (before, _), (own, _) in zip(lead.carried, other.carried, strict=True):
        numbers[own] = before
    for line, own_line in zip(lead.lines, other.lines, strict=True):
        if len(line.outputs) != len(own_line.outputs):
            raise Differ("their loops differ")
        numbers.update(zip(own_line.outputs, line.outputs, strict=True))


def aligned_items(longest: Items, other: Items) -> list[Expr | None]:
    """`other`'s items beside those of the longest list, by kind of layer.

    Raises:
        Differ: some item has no counterpart.
    """

    def kind(expr: Expr) -> Any:
        return (
            expr.cls
            if isinstance(expr, Construct)
            else ("repeat", kind(expr.item))
            if isinstance(expr, Repeat)
            else shell(expr)
        )

    if len(longest.items) == len(other.items):
        return list(other.items)
    result: list[Expr | None] = [None] * len(longest.items)
    place = len(longest.items) - 1
    for item in reversed(other.items):
        while place >= 0 and kind(longest.items[place]) != kind(item):
            place -= 1
        if place < 0:
            raise Differ("their lists of layers differ")
        result[place] = item
        place -= 1
    return result
