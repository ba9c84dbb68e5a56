"""Layers of a chain that repeat in groups: written once, in a loop over what differs between the groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from porter.converters.codegen.align import alike
from porter.converters.codegen.nodes import Expr, Literal
from porter.converters.codegen.normal import Construct, Parameter, Repeat

# Fewer groups than this are written out, and groups that differ in more things than that.
_GROUPS, _COLUMNS = 3, 2


@dataclass(frozen=True)
class Series(Expr):
    """`for names in rows: …` over `items`, one after the other; without names `for _ in range(rows)`."""

    items: tuple[Expr, ...]
    names: tuple[str, ...]
    rows: Expr

    def children(self) -> tuple[Expr, ...]:
        return (*self.items, self.rows)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return replace(self, items=children[:-1], rows=children[-1])


def in_series(items: Sequence[Expr], taken: Iterable[str]) -> list[Expr] | None:
    """A list of layers with its groups as Series; None when there are none that are worth a loop.

    `taken` are names that a loop must not use for what differs between its rows.
    """
    flat = [part for item in items for part in _unrolled(item)]
    found = _rows(_wrapped_alone(_repeated(flat)), set(taken))
    if not any(_pays(item) for item in found):
        return None
    return [part for item in found for part in ([item] if _pays(item) else _plain(item))]


def _pays(item: Expr) -> bool:
    """Whether a loop is shorter than what it makes: names, or a group of several often enough."""
    if not isinstance(item, Series) or not isinstance(item.rows, Literal):
        return False
    return bool(item.names) or (len(item.items) > 1 and item.rows.value >= _GROUPS)


def _plain(item: Expr) -> list[Expr]:
    if not isinstance(item, Series) or not isinstance(item.rows, Literal):
        return [item]
    if len(item.items) == 1 and item.rows.value > 1:
        return [Repeat(item.items[0], item.rows)]
    return list(item.items) * item.rows.value


def _unrolled(item: Expr) -> list[Expr]:
    if isinstance(item, Repeat) and isinstance(item.count, Literal):
        return [item.item] * item.count.value
    return [item]


def _repeated(items: list[Expr]) -> list[Expr]:
    """Equal groups that follow each other as `for _ in range(n)`, the smallest groups first."""
    for length in range(1, len(items) // 2 + 1):
        result: list[Expr] = []
        index = 0
        while index < len(items):
            group, count = items[index : index + length], 1
            while items[index + count * length : index + (count + 1) * length] == group:
                count += 1
            if count > 1 and not any(isinstance(item, Series) for item in group):
                result.append(Series(tuple(group), (), Literal(count)))
                index += length * count
            else:
                result.append(items[index])
                index += 1
        items = result
    return items


def _wrapped_alone(items: list[Expr]) -> list[Expr]:
    """A group that occurs once as a series of one, where others like it repeat."""
    shapes = [item for item in items if isinstance(item, Series) and len(item.items) > 1]
    result: list[Expr] = []
    index = 0
    while index < len(items):
        shape = next((s for s in shapes if _like(s.items, items[index : index + len(s.items)])), None)
        if shape is None:
            result.append(items[index])
            index += 1
        else:
            result.append(Series(tuple(items[index : index + len(shape.items)]), (), Literal(1)))
            index += len(shape.items)
    return result


def _like(group: Sequence[Expr], other: Sequence[Expr]) -> bool:
    return len(group) == len(other) and all(alike(a, b) for a, b in zip(group, other, strict=True))


def _rows(items: list[Expr], taken: set[str]) -> list[Expr]:
    """Groups of several layers that differ in literals alone as a loop over those."""
    result: list[Expr] = []
    index = 0
    while index < len(items):
        best: tuple[int, Series] | None = None
        for length in range(1, (len(items) - index) // _GROUPS + 1):
            groups = [items[index : index + length]]
            while _like(groups[0], following := items[index + len(groups) * length :][:length]):
                groups.append(following)
            if len(groups) < _GROUPS or sum(_size(item) for item in groups[0]) < 2:
                continue
            series = _merged(groups, taken)
            if series is not None and (best is None or len(groups) * length > best[0]):
                best = len(groups) * length, series
        if best is None:
            result.append(items[index])
            index += 1
        else:
            result.append(best[1])
            index += best[0]
    return result


def _size(item: Expr) -> int:
    return len(item.items) if isinstance(item, Series) else 1


def _merged(groups: list[list[Expr]], taken: set[str]) -> Series | None:
    """The groups as one loop; None when two things that differ would have one name."""
    columns: dict[str, tuple[object, ...]] = {}

    def merge(parts: Sequence[Expr], name: str) -> Expr | None:
        first = parts[0]
        if isinstance(first, Literal):
            values = tuple(part.value for part in parts if isinstance(part, Literal))
            if all(type(value) is type(values[0]) and value == values[0] for value in values):
                return first
            known = next((key for key, column in columns.items() if column == values), None)
            if known is None and (not name or name in columns or name in taken):
                return None
            columns.setdefault(known or name, values)
            return Parameter(known or name)
        names = _names(first)
        children = []
        for index, name_of_child in enumerate(names):
            child = merge([part.children()[index] for part in parts], name_of_child)
            if child is None:
                return None
            children.append(child)
        return first.rebuilt(tuple(children)) if children else first

    items = []
    for column in zip(*groups, strict=True):
        item = merge(column, "")
        if item is None:
            return None
        items.append(item)
    if not 0 < len(columns) <= _COLUMNS:
        return None
    rows = tuple(zip(*columns.values(), strict=True))
    flat = tuple(row[0] for row in rows) if len(columns) == 1 else rows
    return Series(tuple(items), tuple(columns), Literal(flat))


def _names(expr: Expr) -> list[str]:
    """What each child would be called as a variable of a loop."""
    if isinstance(expr, Construct):
        return [name for name, _ in expr.kwargs]
    if isinstance(expr, Series):
        return [*("" for _ in expr.items), "count"]
    return ["" for _ in expr.children()]
