"""Constructor arguments of generated classes: what they are called, which literals they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from porter.converters.codegen.body import Body, Path
from porter.converters.codegen.dialect import Dialect
from porter.converters.codegen.identifiers import identifier, snake_case
from porter.converters.codegen.nodes import Binary, Expr, transform, walk
from porter.converters.codegen.normal import MISSING, Choice, Construct, IfPresent, Invoke, Line, Parameter, Slot, Some

Values = tuple[Any, ...]


@dataclass
class Argument:
    """A constructor argument of a generated class, with its value in each instance."""

    name: str
    values: Values
    default: Any = MISSING
    stored: bool = True  # whether the object keeps it under its own name

    def value(self, index: int) -> Any:
        """What an instance gives; the default where the argument has no meaning for it."""
        value = self.values[index]
        return self.default if value is MISSING else value


class Flags:
    """Arguments that say whether a step or a kind of layer is there, named after the author's own attributes."""

    def __init__(self, dialect: Dialect, facts: Sequence[dict[str, Any]]) -> None:
        self.dialect = dialect
        self.facts = facts
        self.arguments: list[Argument] = []

    def known_name(self, values: Values) -> str | None:
        """The attribute of the author's modules that has these values."""
        if len(set(map(repr, values))) < 2:
            return None
        for name in self.facts[0] if self.facts else ():
            own = [fact.get(name, MISSING) for fact in self.facts]
            if all(v is MISSING or (type(v) is type(o) and v == o) for v, o in zip(values, own, strict=True)):
                return identifier(name, self.dialect.reserved | self.dialect.reserved_locals)
        return None

    def _flag(self, name: str, values: Values, *, stored: bool = True) -> str:
        same = next((a for a in self.arguments if a.values == values and a.stored == stored and stored), None)
        if same is not None:
            return same.name
        taken = {argument.name for argument in self.arguments}
        while name in taken:
            name += "_"
        self.arguments.append(Argument(name, values, False, stored))
        return name

    def attribute(self, path: Path, values: Values) -> str:
        """Whether an optional child exists: the child's own name."""
        return self._flag(identifier(str(path[0]), self.dialect.reserved_locals), values, stored=False)

    def statement(self, line: Line, values: Values) -> str:
        """Whether a statement is made."""
        known = self.known_name(values)
        if known is None and isinstance(line.expr, Binary) and line.expr.op == "+":
            known = "residual"
        if known is None and isinstance(line.expr, Invoke):
            known = f"use_{line.expr.path[0]}"
        return self._flag(identifier(known or "extra", self.dialect.reserved | self.dialect.reserved_locals), values)

    def kind(self, stem: str, values: Values) -> str:
        """Which of two kinds of layer it is."""
        return self._flag(
            identifier(self.known_name(values) or stem, self.dialect.reserved | self.dialect.reserved_locals), values
        )

    def item(self, item: Expr, values: Values) -> str:
        """Whether an item of a list is there."""
        stem = snake_case(item.cls.rpartition(".")[2]) if isinstance(item, Construct) else "item"
        return self._flag(
            identifier(self.known_name(values) or f"with_{stem}", self.dialect.reserved | self.dialect.reserved_locals),
            values,
        )


def slot_arguments(body: Body, flags: Flags, dialect: Dialect) -> list[Argument]:
    """Slots of equal values become one argument, integer multiples an expression of one; the body is rewritten."""
    arguments: list[Argument] = []
    taken = {argument.name for argument in flags.arguments}

    def place(slot: Slot, owner: str, default: Any) -> Parameter:
        if slot.hint in dialect.collapsible:
            slot = Slot(tuple(collapsed(value) for value in slot.values), slot.hint)
            default = collapsed(default)
        for argument in arguments:
            if slot.hint == "padding" and argument.name == "kernel_size" and _halves(argument.values, slot.values):
                return Parameter(argument.name, divisor=2)
            factor = _factor(argument.values, slot.values)
            if factor is None and argument.name == slot.hint and not _both(argument.values, slot.values):
                factor = 1  # never known together: two layers of which each instance has one
            if factor is not None and (factor == 1 or _scales(slot.hint, argument.name)):
                argument.values = tuple(
                    v if v is not MISSING else _divided(s, factor)
                    for v, s in zip(argument.values, slot.values, strict=True)
                )
                return Parameter(argument.name, factor)
        name = _free_name(slot, owner, flags, taken, dialect)
        taken.add(name)
        if not any(value == default for value in slot.values):
            default = _usual(slot) if slot.hint == "kernel_size" else MISSING
        arguments.append(Argument(name, slot.values, default))
        return Parameter(name)

    slots = [
        (path, part, owner)
        for path, item in body.definitions.items()
        for owner in walk(item)
        for part in owner.children()
        if isinstance(part, Slot)
    ]
    chosen: dict[int, Parameter] = {}
    for path, slot, owner in sorted(slots, key=lambda item: _magnitude(item[1])):
        own = dialect.defaults(owner.cls) if isinstance(owner, Construct) else {}
        chosen[id(slot)] = place(slot, str(path[0]) if path else "", own.get(slot.hint, MISSING))
    for path, definition in body.definitions.items():
        body.definitions[path] = transform(
            definition, lambda part: chosen.get(id(part)) if isinstance(part, Slot) else None
        )
    body.lines = [_placed(line, place) for line in body.lines]
    for argument in arguments:
        if argument.default is MISSING and MISSING in argument.values:
            argument.default = None
    positions = {argument.name: index for index, argument in enumerate(arguments)}
    return sorted(arguments, key=lambda argument: _rank(argument.name, positions))


def _free_name(slot: Slot, owner: str, flags: Flags, taken: set[str], dialect: Dialect) -> str:
    stem = slot.hint or flags.known_name(slot.values) or "size"
    name = identifier(stem, dialect.reserved | dialect.reserved_locals)
    if name in taken:
        name = flags.known_name(slot.values) or identifier(
            f"{owner}_{stem}" if owner else f"inner_{stem}", dialect.reserved | dialect.reserved_locals
        )
    while name in taken:
        name = f"{name}_"
    return name


def _usual(slot: Slot) -> Any:
    """What more than half of the instances have."""
    known = [value for value in slot.values if value is not MISSING]
    usual = max(known, key=known.count)
    return usual if 2 * known.count(usual) > len(known) else MISSING


def implied_flags(flags: Sequence[Argument], arguments: Sequence[Argument]) -> dict[str, str]:
    """{flag: the argument that is given exactly where the flag is set}: there is no need for both."""
    found: dict[str, str] = {}
    for flag in flags:
        for argument in arguments:
            given = tuple(value is not MISSING for value in argument.values)
            truthy = all(value for value in argument.values if value is not MISSING)
            if argument.default is None and given == flag.values and truthy:
                found.setdefault(flag.name, argument.name)
    return found


def flagged(expr: Expr, names: dict[str, str]) -> Expr:
    """The expression with flags under other names."""

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Some | Choice) and part.flag in names:
            return replace(part, flag=names[part.flag])
        if isinstance(part, IfPresent) and len(part.path) == 1 and part.path[0] in names:
            return replace(part, path=(names[str(part.path[0])],))
        return None

    return transform(expr, change)


def collapsed(value: Any) -> Any:
    """(3, 3) as 3; pairs of both ends of an axis stay pairs."""
    alike = isinstance(value, tuple) and len(set(value)) == 1 and isinstance(value[0], int)
    return value[0] if alike else value


def _placed(line: Line, place: Callable[[Slot, str, Any], Parameter]) -> Line:
    """In statements an argument is read from the object."""

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Slot):
            return None
        parameter = place(part, line.names[0] if line.names else "", MISSING)
        return replace(parameter, name=f"self.{parameter.name}")

    return replace(line, expr=transform(line.expr, change))


_WIDTHS = (
    "filters", "units", "output_dim", "key_dim", "channels", "features", "embed_dim", "embedding_dim", "hidden_size",
)  # fmt: skip
_ORDER = (
    "filters", "units", "input_dim", "output_dim", "rate", "in_channels", "in_features", "num_embeddings", "input_size",
    "out_channels", "out_features", "embedding_dim", "hidden_size", "kernel_size", "strides", "stride",
)  # fmt: skip


def _rank(name: str, positions: dict[str, int]) -> tuple[int, int]:
    known = next((i for i, stem in enumerate(_ORDER) if name.endswith(stem)), len(_ORDER))
    return known, positions[name]


def _scales(hint: str, name: str) -> bool:
    """Whether an argument may be written as a multiple of another: only widths are."""
    return hint in (*_WIDTHS, "shape", "") and is_width(name)


def is_width(name: str) -> bool:
    """Whether an argument says how wide a layer is: what it is mainly about."""
    return name.endswith(_WIDTHS)


def _factor(base: Values, values: Values) -> int | None:
    """k when `values` are k times `base` wherever both are known."""
    both = _both(base, values)
    if not both:
        return None
    if all(type(b) is type(v) and b == v for b, v in both):
        return 1
    if not all(type(b) is int and type(v) is int and b > 0 and v % b == 0 for b, v in both):
        return None
    factors = {v // b for b, v in both}
    return factors.pop() if len(factors) == 1 and len(set(both)) > 1 else None


def _halves(sizes: Values, paddings: Values) -> bool:
    """Whether every padding is half of the kernel's size, so that a convolution keeps the size of its input."""
    known = [(k, p) for k, p in zip(sizes, paddings, strict=True) if p is not MISSING]
    return all(type(k) is int and type(p) is int and p == k // 2 for k, p in known)


def _both(base: Values, values: Values) -> list[tuple[Any, Any]]:
    return [(b, v) for b, v in zip(base, values, strict=True) if b is not MISSING and v is not MISSING]


def _divided(value: Any, factor: int) -> Any:
    return value if value is MISSING or factor == 1 else value // factor


def _magnitude(slot: Slot) -> float:
    """Smaller widths first, so that larger ones are multiples of them; paddings last, as half of a kernel's size."""
    if slot.hint == "padding":
        return float("inf")
    known = [value for value in slot.values if isinstance(value, int) and not isinstance(value, bool)]
    return float(sum(known)) / len(known) if known else 0.0
