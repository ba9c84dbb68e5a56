"""Instances of one class become one class: what differs between their bodies becomes constructor arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from porter.converters.codegen.align import Differ, aligned_items, aligned_lines, shell
from porter.converters.codegen.arguments import Argument, Flags, flagged, implied_flags, slot_arguments
from porter.converters.codegen.body import Body, Path
from porter.converters.codegen.dialect import Dialect
from porter.converters.codegen.identifiers import snake_case
from porter.converters.codegen.nodes import Expr, Items, Literal
from porter.converters.codegen.normal import (
    MISSING,
    Choice,
    Construct,
    IfPresent,
    Invoke,
    Line,
    Local,
    Loop,
    Slot,
    Some,
)


@dataclass
class Template:
    """A class to be generated."""

    name: str
    body: Body
    arguments: list[Argument] = field(default_factory=list)
    optional: dict[Path, str] = field(default_factory=dict)  # attribute -> the flag that says whether it exists


def unify(name: str, bodies: Sequence[Body], dialect: Dialect) -> tuple[Template, list[Construct]]:
    """One template for all bodies, and how each instance is constructed.

    Raises:
        Differ: the bodies differ in more than literals, optional steps and kinds of layer.
    """
    flags = Flags(dialect, [body.facts for body in bodies])
    try:
        merged, optional = _Merger(bodies, flags, from_end=False).run()
    except Differ:
        flags = Flags(dialect, [body.facts for body in bodies])
        merged, optional = _Merger(bodies, flags, from_end=True).run()
    slots = slot_arguments(merged, flags, dialect)
    implied = implied_flags(flags.arguments, slots)
    merged.definitions = {path: flagged(definition, implied) for path, definition in merged.definitions.items()}
    merged.lines = [replace(line, expr=flagged(line.expr, implied)) for line in merged.lines]
    template = Template(name, merged, optional={path: implied.get(flag, flag) for path, flag in optional.items()})
    template.arguments = slots + [flag for flag in flags.arguments if flag.name not in implied]
    template.arguments.sort(key=lambda argument: argument.default is not MISSING)
    constructs = [
        Construct(name, tuple((a.name, Literal(a.value(i))) for a in template.arguments)) for i in range(len(bodies))
    ]
    return template, constructs


class _Merger:
    """Merges bodies into the largest of them."""

    def __init__(self, bodies: Sequence[Body], flags: Flags, *, from_end: bool) -> None:
        self.bodies = bodies
        self.flags = flags
        self.from_end = from_end
        self.lead = max(bodies, key=lambda body: (len(body.lines), len(body.definitions)))
        self._made = {number: index for index, line in enumerate(self.lead.lines) for number in line.outputs}
        self._skippable: dict[int, int] = {}  # value that some instances do not make -> its line
        self._instead: dict[int, int] = {}  # value -> the earlier value that stands in its place there

    def run(self) -> tuple[Body, dict[Path, str]]:
        extra = {path for body in self.bodies for path in body.definitions} - set(self.lead.definitions)
        if extra:
            raise Differ(f"some instances have {sorted(map(str, extra))}")
        optional = {
            path: self.flags.attribute(path, tuple(path in body.definitions for body in self.bodies))
            for path in self.lead.definitions
            if not all(path in body.definitions for body in self.bodies)
        }
        matched = [aligned_lines(self.lead, body, from_end=self.from_end) for body in self.bodies]
        for index, line in enumerate(self.lead.lines):
            if any(lines[index] is None for lines, _ in matched):
                if len(line.outputs) != 1 or isinstance(line.expr, Loop):
                    raise Differ("a statement with several results is missing in some instances")
                self._skippable[line.outputs[0]] = index
        merged = [self._line(index, line, matched) for index, line in enumerate(self.lead.lines)]
        for body, (_, numbers) in zip(self.bodies, matched, strict=True):
            for own, wanted in zip(body.outputs, self.lead.outputs, strict=True):
                if not self._same(wanted, numbers.get(own, -1)):
                    raise Differ("they return other values")
        lines = [self._optional(line, expr, present, optional) for line, expr, present in merged]
        definitions = {path: self._definition(path) for path in self.lead.definitions}
        return replace(self.lead, lines=lines, definitions=definitions), optional

    # ---- statements ----

    def _line(self, index: int, line: Line, matched: list) -> tuple[Line, Expr, tuple[bool, ...]]:
        others = [(lines[index].expr, numbers) for lines, numbers in matched if lines[index] is not None]
        present = tuple(lines[index] is not None for lines, _ in matched)
        return line, self._merge(line.expr, others, present), present

    def _same(self, lead: int, other: int) -> bool:
        """Whether the lead's value is the other's, or what the other has in its place."""
        if lead == other:
            return True
        if lead not in self._skippable or self._made.get(other, -1) >= self._skippable[lead]:
            return False
        return self._instead.setdefault(lead, other) == other

    def _optional(self, line: Line, expr: Expr, present: tuple[bool, ...], optional: dict[Path, str]) -> Line:
        if all(present):
            return replace(line, expr=expr)
        other = self._instead.get(line.outputs[0])
        if other is None:
            raise Differ("an optional statement has nothing in its place")
        if isinstance(line.expr, Invoke) and line.expr.path in optional:
            path = line.expr.path
        else:
            path = (self.flags.statement(line, present),)
        return replace(line, expr=IfPresent(path, expr, Local(other)))

    # ---- definitions ----

    def _definition(self, path: Path) -> Expr:
        present = tuple(path in body.definitions for body in self.bodies)
        having = [(body.definitions[path], dict[int, int]()) for body in self.bodies if path in body.definitions]
        return self._merge(self.lead.definitions[path], having, present)

    def _choice(self, others: list[tuple[Expr, dict[int, int]]], present: tuple[bool, ...], kinds: list[str]) -> Expr:
        """Two kinds of layer in one place: a flag says which."""
        rarer = max(
            kinds, key=lambda kind: (kind.startswith("Depthwise"), not kind.endswith(".Sequential"), kind == kinds[1])
        )
        spread = iter(others)
        each = [next(spread)[0] if here else None for here in present]
        chosen: dict[str, Expr] = {}
        for kind in kinds:
            here = tuple(isinstance(item, Construct) and item.cls == kind for item in each)
            items = [item for item in each if isinstance(item, Construct) and item.cls == kind]
            chosen[kind] = self._merge(items[0], [(item, {}) for item in items], here)
        chosen = self._agreed(chosen, [item for item in each if isinstance(item, Construct)], present)
        values = tuple(isinstance(item, Construct) and item.cls == rarer for item in each)
        words = snake_case(rarer.rpartition(".")[2]).split("_")
        flag = self.flags.kind("transposed" if "transpose" in words else words[0], values)
        return Choice(flag, chosen[rarer], chosen[next(kind for kind in kinds if kind != rarer)])

    def _agreed(self, chosen: dict[str, Expr], items: list[Construct], present: tuple[bool, ...]) -> dict[str, Expr]:
        """Two kinds of layer with one argument for what both of them take, as in `depthwise` or not, a kernel size."""
        given = [dict(item.kwargs) for item in items]
        for name in set.intersection(*map(set, given)):
            column = [own[name] for own in given]
            values = [value.value for value in column if isinstance(value, Literal)]
            if len(values) == len(column) and all(type(value) is type(values[0]) for value in values):
                merged = self._literal(values, [(value, {}) for value in column], present, name)
                chosen = {kind: _with_argument(construct, name, merged) for kind, construct in chosen.items()}
        return chosen

    # ---- expressions ----

    def _merge(
        self, lead: Expr, others: list[tuple[Expr, dict[int, int]]], present: tuple[bool, ...], hint: str = ""
    ) -> Expr:
        """`lead` with differing literals as slots; `others` holds the expression of every instance that has it."""
        exprs = [expr for expr, _ in others]
        if isinstance(lead, Literal) and all(isinstance(expr, Literal) for expr in exprs):
            return self._literal([expr.value for expr in exprs if isinstance(expr, Literal)], others, present, hint)
        if isinstance(lead, Local):
            for expr, numbers in others:
                if not isinstance(expr, Local) or not self._same(lead.number, numbers.get(expr.number, expr.number)):
                    raise Differ("they pass other values on")
            return lead
        if isinstance(lead, Items) and all(isinstance(expr, Items) for expr in exprs) and lead.brackets == "[]":
            return self._items(lead, [(expr, numbers) for expr, numbers in others if isinstance(expr, Items)], present)
        kinds = list(dict.fromkeys(expr.cls for expr in exprs if isinstance(expr, Construct)))
        if len(kinds) == 2 and all(isinstance(expr, Construct) for expr in exprs):
            return self._choice(others, present, kinds)
        if any(type(expr) is not type(lead) or len(expr.children()) != len(lead.children()) for expr in exprs):
            raise Differ(f"{type(lead).__name__} in one is something else in another")
        if any(shell(expr) != shell(lead) for expr in exprs):
            raise Differ(f"{shell(lead)} differs")
        hints = _hints(lead)
        children = tuple(
            self._merge(child, [(expr.children()[i], numbers) for expr, numbers in others], present, hints[i])
            for i, child in enumerate(lead.children())
        )
        return lead.rebuilt(children) if children else lead

    def _literal(self, values: list[Any], others: list, present: tuple[bool, ...], hint: str) -> Expr:
        first = values[0]
        if all(type(value) is type(first) and value == first for value in values):
            return Literal(first)
        nested = all(isinstance(value, tuple | list) and len(value) == len(first) for value in values)
        if nested and hint not in self.flags.dialect.collapsible:
            brackets = "()" if isinstance(first, tuple) else "[]"
            parts: list[list[tuple[Expr, dict[int, int]]]] = [
                [(Literal(value[i]), numbers) for value, (_, numbers) in zip(values, others, strict=True)]
                for i in range(len(first))
            ]
            return Items(tuple(self._merge(column[0][0], column, present, hint) for column in parts), brackets)
        if not all(isinstance(value, int | float | str | tuple | bool) for value in values):
            raise Differ(f"a constant differs: {values[:2]}")
        spread = iter(values)
        return Slot(tuple(next(spread) if here else MISSING for here in present), hint)

    def _items(self, lead: Items, others: list[tuple[Items, dict[int, int]]], present: tuple[bool, ...]) -> Expr:
        """Lists of layers, of which some instances lack some."""
        longest = max((expr for expr, _ in others), key=lambda expr: len(expr.items))
        columns = [aligned_items(longest, expr) for expr, _ in others]
        merged: list[Expr] = []
        for index, item in enumerate(longest.items):
            have = [column[index] is not None for column in columns]
            spread = iter(have)
            here = tuple(next(spread) if p else False for p in present)
            pairs = [
                (column[index], numbers)
                for column, (_, numbers) in zip(columns, others, strict=True)
                if column[index] is not None
            ]
            expr = self._merge(item, pairs, here)
            if all(have):
                merged.append(expr)
                continue
            flag = self.flags.item(item, here)
            previous = merged[-1] if merged else None
            if isinstance(previous, Some) and previous.flag == flag:
                merged[-1] = Some(flag, (*previous.items, expr))
            else:
                merged.append(Some(flag, (expr,)))
        return Items(tuple(merged), lead.brackets)


def _with_argument(construct: Expr, name: str, value: Expr) -> Expr:
    assert isinstance(construct, Construct)
    return replace(construct, kwargs=tuple((n, value if n == name else v) for n, v in construct.kwargs))


def _hints(expr: Expr) -> list[str]:
    """What each subexpression would be called as an argument."""
    if isinstance(expr, Construct):
        return [name for name, _ in expr.kwargs]
    names = [name for name, _ in getattr(expr, "kwargs", ())]
    return [""] * (len(expr.children()) - len(names)) + names


__all__ = ["Argument", "Differ", "Template", "unify"]
