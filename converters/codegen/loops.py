"""Repeated statements over a list of layers become a loop, as the author had it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from porter.converters.codegen.nodes import Expr, transform, walk
from porter.converters.codegen.normal import Attribute, Invoke, Line, Local, Loop


@dataclass
class _Run:
    start: int
    length: int  # lines of one turn
    turns: int
    heads: tuple[str, ...]


def roll(lines: list[Line], outputs: list[int], lists: Mapping[str, int]) -> list[Line]:
    """`lines` with every run of like turns over the lists in `lists` ({name: length}) as one Loop."""
    for head in lists:
        run = _find(lines, head, lists)
        if run is None:
            continue
        loop = _as_loop(lines, outputs, run)
        if loop is not None:
            lines = [*lines[: run.start], loop, *lines[run.start + run.length * run.turns :]]
    return lines


def _indices(expr: Expr, head: str) -> set[int]:
    return {
        part.path[1]
        for part in walk(expr)
        if isinstance(part, Invoke | Attribute)
        and len(part.path) > 1
        and part.path[0] == head
        and isinstance(part.path[1], int)
    }


def _find(lines: list[Line], head: str, lists: Mapping[str, int]) -> _Run | None:
    """The segment of each turn: from the first line that uses item i to the first that uses item i + 1."""
    count = lists[head]
    firsts: list[int] = []
    for index in range(count):
        position = next((i for i, line in enumerate(lines) if index in _indices(line.expr, head)), None)
        if position is None:
            return None
        firsts.append(position)
    length = firsts[1] - firsts[0]
    if length < 1 or any(b - a != length for a, b in itertools.pairwise(firsts)) or firsts[-1] + length > len(lines):
        return None
    # A turn may begin before its first use of the list (a norm before the block): shift while it still matches.
    first = lines[firsts[0] : firsts[0] + length]
    heads = [head] + [
        other
        for other, n in lists.items()
        if other != head and n == count and any(_indices(line.expr, other) for line in first)
    ]
    return _Run(firsts[0], length, count, tuple(heads))


def _at_item(expr: Expr, heads: tuple[str, ...], index: int) -> Expr:
    """The expression with `head[index]` written as the loop's own item."""

    def change(part: Expr) -> Expr | None:
        if (
            isinstance(part, Invoke | Attribute)
            and len(part.path) > 1
            and part.path[0] in heads
            and part.path[1] == index
        ):
            path = (f"@{part.path[0]}", *part.path[2:])
            if isinstance(part, Invoke):
                return Invoke(path, part.args, part.kwargs)
            return Attribute(path, part.slot)
        return None

    return transform(expr, change)


def _as_loop(lines: list[Line], outputs: list[int], run: _Run) -> Line | None:
    turns = [
        [
            _rewritten(line, run.heads, turn)
            for line in lines[run.start + turn * run.length : run.start + (turn + 1) * run.length]
        ]
        for turn in range(run.turns)
    ]
    carried: dict[int, int] = {}  # value before the first turn -> value that the first turn hands on
    to_first = {number: number for line in turns[0] for number in line.outputs}
    for turn in range(1, run.turns):
        matched = _match(turns[0], turns[turn], to_first, carried, learn=turn == 1)
        if matched is None:
            return None
        to_first = matched
    made = [number for line in turns[0] for number in line.outputs]
    if not carried or not set(carried.values()) <= set(made):
        return None
    # What the rest of the body reads must be what the last turn hands on.
    last = {value: key for key, value in to_first.items()}  # first turn's number -> last turn's
    inner = {number for turn in turns for line in turn for number in line.outputs}
    after = lines[run.start + run.length * run.turns :]
    read = {part.number for line in after for part in walk(line.expr) if isinstance(part, Local)} | set(outputs)
    results = {last[after_value]: before for before, after_value in carried.items()}
    if not (read & inner) <= set(results):
        return None
    order = list(carried)
    fresh = {before: -(before + 1) for before in order}  # inside the loop the carried value has a number of its own
    body = tuple(renumbered(line, fresh) for line in turns[0])
    pairs = tuple((fresh[before], carried[before]) for before in order)
    loop = Loop(run.heads, tuple(Local(before) for before in order), pairs, body)
    finals = tuple(last[carried[before]] for before in order)
    return Line(finals, loop, turns[-1][-1].names, turns[0][0].where)


def _rewritten(line: Line, heads: tuple[str, ...], index: int) -> Line:
    return Line(line.outputs, _at_item(line.expr, heads, index), line.names, line.where)


def _match(
    first: list[Line], other: list[Line], previous: dict[int, int], carried: dict[int, int], *, learn: bool
) -> dict[int, int] | None:
    """{number in `other`: its counterpart in the first turn} when both turns do the same, else None.

    A value that `other` reads from the turn before it stands where the first turn reads a value from before the loop:
    that pair is carried. `previous` maps the turn before `other` to the first turn; `learn` may add pairs.
    """
    mapping: dict[int, int] = {}

    def same(a: Expr, b: Expr) -> bool:
        if isinstance(a, Local) and isinstance(b, Local):
            return same_local(a.number, b.number)
        if type(a) is not type(b) or len(a.children()) != len(b.children()):
            return False
        blank = tuple(Local(0) for _ in a.children())
        if (blank and a.rebuilt(blank) != b.rebuilt(blank)) or (not blank and a != b):
            return False
        return all(same(x, y) for x, y in zip(a.children(), b.children(), strict=True))

    def same_local(a: int, b: int) -> bool:
        if b in mapping:
            return mapping[b] == a
        if b in previous:
            if learn and a not in carried:
                carried[a] = previous[b]
            return carried.get(a) == previous[b]
        return a == b and a not in carried

    for x, y in zip(first, other, strict=True):
        if len(x.outputs) != len(y.outputs) or not same(x.expr, y.expr):
            return None
        mapping.update(zip(y.outputs, x.outputs, strict=True))
    return mapping


def renumbered(line: Line, numbers: Mapping[int, int]) -> Line:
    """The line with other value numbers."""
    expr = transform(
        line.expr,
        lambda part: Local(numbers[part.number]) if isinstance(part, Local) and part.number in numbers else None,
    )
    return replace(line, outputs=tuple(numbers.get(number, number) for number in line.outputs), expr=expr)
