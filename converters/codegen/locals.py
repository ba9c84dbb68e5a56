"""Names of the values in a body: the author's where they are known, handed on at a value's last reading."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from porter.converters.codegen.identifiers import identifier, is_builtin
from porter.converters.codegen.nodes import Expr, walk
from porter.converters.codegen.normal import Block, Invoke, Line, Local, Loop, SizeOf
from porter.converters.codegen.subgraphs import Head, name_blocks

# For a branch that the author did not name.
_VOCABULARY = ("x", "y", "z", "u", "v", "w")
_SHORTCUTS = ("downsample", "shortcut", "skip", "residual", "identity")


class LocalNames:
    """Assigns a name to every value of a body, statement by statement."""

    vocabulary = _VOCABULARY

    def __init__(
        self,
        arguments: Iterable[tuple[int, str]],
        lines: list[Line],
        outputs: list[int],
        reserved: frozenset[str],
        outer: LocalNames | None = None,
        taken: frozenset[str] = frozenset(),
    ) -> None:
        self.names: dict[int, str] = dict(outer.names) if outer is not None else {}
        self.functions: dict[int, Head] = outer.functions if outer is not None else {}  # by id of the function
        self._sizes: dict[tuple[Expr, int], int] = {}  # (value, axis) -> the number of its size, where that has a line
        self.reserved = reserved
        self.taken = taken  # names that mean something around this function, which reads them
        self._last_read: dict[int, int] = {}
        self._live: dict[str, int] = {}
        for number, name in arguments:
            self.names[number] = name
            self._live[name] = number
        lines = _each_named(lines)
        flat = len(lines)
        for index, line in enumerate(lines):
            for part in walk(line.expr):
                if isinstance(part, Local):
                    self._last_read[part.number] = index
                elif isinstance(part, SizeOf) and (part.base, part.axis) in self._sizes:
                    self._last_read[self._sizes[part.base, part.axis]] = index
            if isinstance(line.expr, SizeOf):
                self._sizes[line.expr.base, line.expr.axis] = line.outputs[0]
        for number in outputs:
            self._last_read[number] = flat
        for index, line in enumerate(lines):
            self._assign(line, index)

    def __call__(self, number: int) -> str:
        return self.names[number]

    def read_by(self, inner: Block) -> frozenset[str]:
        """The names around a function that it reads, those of sizes too."""
        found = set()
        for part in walk(inner):
            number = self._sizes.get((part.base, part.axis)) if isinstance(part, SizeOf) else None
            for read in (number, part.number if isinstance(part, Local) else None):
                if read in self.names:
                    found.add(self.names[read])
        return frozenset(found)

    def name_inside(self, inner: Block, arguments: Mapping[int, str], taken: frozenset[str]) -> None:
        """Name the values of a function, which are never called like one of `taken`."""
        results = [part.number for part in walk(inner.result) if isinstance(part, Local)]
        names = LocalNames(arguments.items(), list(inner.lines), results, self.reserved, self, taken)
        name_blocks(names, Line((), inner.result))
        self.names.update(names.names)

    def free(self, wanted: list[str], others: Iterable[str] = ()) -> str:
        """The first of `wanted` that is free, where `others` are in use too; else the last one with a number."""
        return self.unused(wanted, {*self._live, *self.taken, *others})

    def unused(self, wanted: list[str], others: Iterable[str]) -> str:
        """The same where only `others` are in use: in a function, which may have names that mean something outside."""
        used = {*self.reserved, *others}
        for name in wanted:
            if name not in used and not is_builtin(name):
                return name
        return next(name for name in (f"{wanted[-1]}{count}" for count in itertools.count(2)) if name not in used)

    def _dying(self, line: Line, index: int) -> list[str]:
        """Names whose values are read here for the last time, in the order of reading."""
        read = [part.number for part in walk(line.expr) if isinstance(part, Local) and part.number in self.names]
        return list(
            dict.fromkeys(
                self.names[n] for n in read if self._last_read.get(n) == index and self._live.get(self.names[n]) == n
            )
        )

    def _assign(self, line: Line, index: int) -> None:
        dying = self._dying(line, index)
        name_blocks(self, line)
        if isinstance(line.expr, Loop):
            self._assign_loop(line, line.expr, index)
            return
        for name in dying:
            del self._live[name]
        for position, number in enumerate(line.outputs):
            unread = number not in self._last_read and len(line.outputs) > 1 and len(line.names) != len(line.outputs)
            name = "_" if unread else self._choose(line, position, dying)
            self.names[number] = name
            if self._last_read.get(number, -1) > index:
                self._live[name] = number

    def _choose(self, line: Line, position: int, dying: list[str]) -> str:
        wanted: list[str] = []
        if len(line.names) == len(line.outputs):
            wanted.append(identifier(line.names[position], self.reserved))
        if isinstance(line.expr, Invoke) and str(line.expr.path[-1]) in _SHORTCUTS:
            wanted.append("shortcut")
        if len(line.outputs) == 1 and dying and dying[0] == self._first_read(line):
            wanted.append(dying[0])
        wanted += _VOCABULARY
        stem = identifier(str(line.expr.path[-1]) if isinstance(line.expr, Invoke) else "value", self.reserved)
        return self.free([*wanted, stem])

    def _first_read(self, line: Line) -> str | None:
        """The name of the value that the statement reads first: what it works on."""
        return next((self.names.get(part.number) for part in walk(line.expr) if isinstance(part, Local)), None)

    def _assign_loop(self, line: Line, loop: Loop, index: int) -> None:
        """A carried value keeps one name before, in and after the loop."""
        for (inside, _), initial, final in zip(loop.carried, loop.initial, line.outputs, strict=True):
            before = initial.number if isinstance(initial, Local) else None
            name = self.names.get(before, "") if before is not None else ""
            if not name or self._last_read.get(before, -1) > index or self._live.get(name) != before:
                name = self._choose(Line((final,), Local(inside), line.names if len(line.names) == 1 else ()), 0, [])
            else:
                del self._live[name]
            self.names[inside] = self.names[final] = name
            self._live[name] = inside
        after = {after: inside for inside, after in loop.carried}
        inner_last: dict[int, int] = {}
        for position, inner in enumerate(loop.lines):
            for part in walk(inner.expr):
                if isinstance(part, Local):
                    inner_last[part.number] = position
        saved = self._last_read
        self._last_read = {
            **{n: len(loop.lines) for n in saved if saved[n] >= index},
            **{n: p for n, p in inner_last.items() if saved.get(n, -1) <= index},
        }
        for number in after:
            self._last_read[number] = len(loop.lines)
        for number in list(self._live.values()):
            if saved.get(number, -1) > index:
                self._last_read[number] = len(loop.lines)
        for position, inner in enumerate(loop.lines):
            for number in inner.outputs:
                if number in after:  # the carried name is free again: its old value has been read or is kept aside
                    carried = self.names[after[number]]
                    if inner_last.get(after[number], -1) <= position:
                        self._live.pop(carried, None)
                        self.names[number] = carried
                        self._live[carried] = number
            if all(number in self.names for number in inner.outputs):
                continue
            self._assign(inner, position)
        self._last_read = saved
        for (inside, after_number), final in zip(loop.carried, line.outputs, strict=True):
            name = self.names[inside]
            if self.names[after_number] != name:
                self._live.pop(self.names[after_number], None)
            self._live[name] = final


def reads(expr: Expr) -> set[int]:
    """Numbers of the values that an expression reads."""
    return {part.number for part in walk(expr) if isinstance(part, Local)}


def _each_named(lines: list[Line]) -> list[Line]:
    """`q, k, v = x.unbind(0)` is three statements here: each takes its own of the author's names."""
    counts = Counter(line.where for line in lines if len(line.outputs) == 1 and len(line.names) > 1)
    seen: Counter[tuple[str, int] | None] = Counter()
    result = []
    for line in lines:
        if len(line.outputs) == 1 and len(line.names) > 1 and counts[line.where] == len(line.names):
            line, index = replace(line, names=(line.names[seen[line.where]],)), seen[line.where]
            seen[line.where] = index + 1
        result.append(line)
    return result
