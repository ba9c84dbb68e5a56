"""The normal form of a class body: what expressions become once they belong to one class."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from porter.converters.codegen.nodes import Expr


@dataclass(frozen=True)
class Local(Expr):
    """A value inside a class body, by number."""

    number: int


@dataclass(frozen=True)
class Attribute(Expr):
    """`self.<path>`; numbers index lists. `slot` is the variable of a layer, or "" for the object itself."""

    path: tuple[str | int, ...]
    slot: str = ""


@dataclass(frozen=True)
class Invoke(Expr):
    """`self.<path>(*args, **kwargs)`."""

    path: tuple[str | int, ...]
    args: tuple[Expr, ...]
    kwargs: tuple[tuple[str, Expr], ...] = ()

    def children(self) -> tuple[Expr, ...]:
        return (*self.args, *(value for _, value in self.kwargs))

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        count = len(self.args)
        names = [name for name, _ in self.kwargs]
        return replace(self, args=children[:count], kwargs=tuple(zip(names, children[count:], strict=True)))


@dataclass(frozen=True)
class SizeOf(Expr):
    """`shape(base)[axis]`; `hint` is the symbol's name, for naming only."""

    base: Expr
    axis: int
    hint: str = field(default="", compare=False)

    def children(self) -> tuple[Expr, ...]:
        return (self.base,)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return replace(self, base=children[0])


@dataclass(frozen=True)
class Construct(Expr):
    """`cls(**kwargs)` in a constructor."""

    cls: str
    kwargs: tuple[tuple[str, Expr], ...] = ()

    def children(self) -> tuple[Expr, ...]:
        return tuple(value for _, value in self.kwargs)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        names = [name for name, _ in self.kwargs]
        return replace(self, kwargs=tuple(zip(names, children, strict=True)))


@dataclass(frozen=True)
class Repeat(Expr):
    """`[item for _ in range(count)]`."""

    item: Expr
    count: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.item, self.count)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Repeat(*children)


@dataclass(frozen=True)
class Slot(Expr):
    """A literal that differs between the instances of a class: its value in each, `MISSING` where there is none."""

    values: tuple[Any, ...]
    hint: str = field(default="", compare=False)


@dataclass(frozen=True)
class Parameter(Expr):
    """A constructor argument, possibly times a number or divided by one (`kernel_size // 2`)."""

    name: str
    factor: int = 1
    divisor: int = 1


@dataclass(frozen=True)
class IfPresent(Expr):
    """`then` when the optional child exists, else `otherwise`."""

    path: tuple[str | int, ...]
    then: Expr
    otherwise: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.then, self.otherwise)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return IfPresent(self.path, *children)


@dataclass(frozen=True)
class Choice(Expr):
    """`then if flag else otherwise` between two kinds of layer, by a constructor argument."""

    flag: str
    then: Expr
    otherwise: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.then, self.otherwise)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Choice(self.flag, *children)


@dataclass(frozen=True)
class Some(Expr):
    """Items of a list that are there only when `flag` is set."""

    flag: str
    items: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        return self.items

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Some(self.flag, children)


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(frozen=True)
class Line:
    """One statement of a body: `outputs = expr`, values by number.

    `names` are what the author assigned it to, `where` the author's line (equal for one statement of the source).
    """

    outputs: tuple[int, ...]
    expr: Expr
    names: tuple[str, ...] = field(default=(), compare=False)
    where: tuple[str, int] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Block(Expr):
    """A function inside a method.

    `parameters` are the numbers of what it takes, a tuple of them where several come as one argument. `names` are the
    author's for these, `like` the numbers of the values that they have at first.
    """

    name: str = field(compare=False)
    parameters: tuple[int | tuple[int, ...], ...]
    lines: tuple[Line, ...]
    result: Expr
    names: tuple[str, ...] = field(default=(), compare=False)
    like: tuple[int | None, ...] = field(default=(), compare=False)

    def children(self) -> tuple[Expr, ...]:
        return (*(line.expr for line in self.lines), self.result)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        lines = tuple(replace(line, expr=expr) for line, expr in zip(self.lines, children[:-1], strict=True))
        return replace(self, lines=lines, result=children[-1])


@dataclass(frozen=True)
class Loop(Expr):
    """`for item, … in zip(self.<head>, …):` over lists of layers.

    `carried` numbers the values that each turn hands to the next: (inside before, inside after); `initial` are their
    values before the first turn. The loop's outputs are the carried values after the last one.
    """

    heads: tuple[str, ...]
    initial: tuple[Expr, ...]
    carried: tuple[tuple[int, int], ...]
    lines: tuple[Line, ...]

    def children(self) -> tuple[Expr, ...]:
        return (*self.initial, *(line.expr for line in self.lines))

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        count = len(self.initial)
        lines = tuple(replace(line, expr=expr) for line, expr in zip(self.lines, children[count:], strict=True))
        return replace(self, initial=children[:count], lines=lines)
