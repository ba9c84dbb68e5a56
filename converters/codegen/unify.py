"""Instances of one class become one class: what differs between their bodies becomes constructor arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from porter.converters.codegen.body import Body, Path
from porter.converters.codegen.dialect import Dialect
from porter.converters.codegen.identifiers import identifier
from porter.converters.codegen.nodes import (
    MISSING,
    Construct,
    Expr,
    IfPresent,
    Invoke,
    Line,
    Literal,
    Local,
    Loop,
    Parameter,
    SizeOf,
    Slot,
    transform,
    walk,
)


@dataclass
class Argument:
    """A constructor argument of a generated class, with its value in each instance."""

    name: str
    values: tuple[Any, ...]
    default: Any = MISSING


@dataclass
class Template:
    """A class to be generated."""

    name: str
    body: Body
    arguments: list[Argument] = field(default_factory=list)
    optional: dict[Path, str] = field(default_factory=dict)  # attribute -> the flag that says whether it exists


class Differ(Exception):
    """Two bodies are not the same up to literals; the message says where."""


def unify(name: str, bodies: Sequence[Body], dialect: Dialect) -> tuple[Template, list[Construct]]:
    """One template for all bodies, and how each instance is constructed.

    Raises:
        Differ: the bodies differ in more than literals and optional children.
    """
    merged, optional = _merge(bodies)
    template = Template(name, merged)
    taken: set[str] = set()
    template.arguments += _slot_arguments(merged, taken, dialect)
    for path in optional:
        flag = identifier(str(path[0]), dialect.reserved_locals)
        values = tuple(path in body.definitions for body in bodies)
        template.arguments.append(Argument(flag, values, False))
        template.optional[path] = flag
    template.arguments.sort(key=lambda argument: argument.default is not MISSING)
    constructs = [
        Construct(name, tuple((a.name, Literal(a.values[i])) for a in template.arguments if not _is_default(a, i))) for i in range(len(bodies))
    ]
    return template, constructs


def _is_default(argument: Argument, index: int) -> bool:
    value = argument.values[index]
    return value is MISSING or (argument.default is not MISSING and value == argument.default)


# ---- merging ----


def _merge(bodies: Sequence[Body]) -> tuple[Body, list[Path]]:
    """The largest body, its differing literals as slots, and the children that only some instances have."""
    order = sorted(range(len(bodies)), key=lambda i: -len(bodies[i].lines))
    lead = bodies[order[0]]
    optional = [path for path in lead.definitions if not all(path in body.definitions for body in bodies)]
    skipped = {line.outputs[0]: index for index, line in enumerate(lead.lines) if _is_optional(line, optional)}
    aligned = [_aligned(lead, body, optional) for body in bodies]
    instead = _Instead(lead, skipped)
    merged: list[tuple[Line, Expr, bool]] = []
    for index, line in enumerate(lead.lines):
        present = [(body_lines[index], numbers) for body_lines, numbers in aligned if body_lines[index] is not None]
        exprs = [(other.expr, numbers) for other, numbers in present if other is not None]
        values = [body_lines[index] is not None for body_lines, _ in aligned]
        merged.append((line, _merge_exprs(line.expr, exprs, values, instead), all(values)))
    for number, index in skipped.items():
        for body, (body_lines, numbers) in zip(bodies, aligned, strict=True):
            if body_lines[index] is None and number in lead.outputs:
                instead.same(number, numbers.get(body.outputs[lead.outputs.index(number)], -1))
    for body, (_, numbers) in zip(bodies, aligned, strict=True):
        for own, wanted in zip(body.outputs, lead.outputs, strict=True):
            if not instead.same(wanted, numbers.get(own, -1)):
                raise Differ("they return other values")
    lines = []
    for line, expr, everywhere in merged:
        if not everywhere:
            assert isinstance(line.expr, Invoke)
            other = instead.of.get(line.outputs[0])
            if other is None:
                raise Differ(f"{line.expr.path} is optional, and nothing takes its place")
            expr = IfPresent(line.expr.path, expr, Local(other))
        lines.append(replace(line, expr=expr))
    definitions = {}
    for path, definition in lead.definitions.items():
        having = [body.definitions.get(path) for body in bodies]
        present_definitions = [(item, {}) for item in having if item is not None]
        definitions[path] = _merge_exprs(definition, present_definitions, [item is not None for item in having], instead)
    extra = {path for body in bodies for path in body.definitions} - set(lead.definitions)
    if extra:
        raise Differ(f"some instances have {sorted(map(str, extra))}")
    return replace(lead, lines=lines, definitions=definitions), optional


def _is_optional(line: Line, optional: list[Path]) -> bool:
    return isinstance(line.expr, Invoke) and line.expr.path in optional and len(line.outputs) == 1


class _Instead:
    """Which earlier value stands where an optional child's result would be, in instances without the child."""

    def __init__(self, lead: Body, skipped: dict[int, int]) -> None:
        self.of: dict[int, int] = {}
        self._skipped = skipped
        self._made = {number: index for index, line in enumerate(lead.lines) for number in line.outputs}

    def same(self, lead: int, other: int) -> bool:
        """Whether the lead's value is the other's, or what the other has in its place."""
        if lead == other:
            return True
        if lead not in self._skipped or self._made.get(other, -1) >= self._skipped[lead]:
            return False
        return self.of.setdefault(lead, other) == other


def _aligned(lead: Body, body: Body, optional: list[Path]) -> tuple[list[Line | None], dict[int, int]]:
    """`body`'s lines beside the lead's (None where it lacks an optional child), and the lead's number of each value."""
    numbers = dict(zip(body.inputs, lead.inputs, strict=False))
    if len(body.inputs) != len(lead.inputs) or len(body.outputs) != len(lead.outputs):
        raise Differ("they take or give different numbers of values")
    result: list[Line | None] = []
    rest = iter(body.lines)
    for line in lead.lines:
        if _is_optional(line, optional) and isinstance(line.expr, Invoke) and line.expr.path not in body.definitions:
            result.append(None)
            continue
        other = next(rest, None)
        if other is None or len(other.outputs) != len(line.outputs):
            raise Differ("they have different statements")
        numbers.update(zip(other.outputs, line.outputs, strict=True))
        if isinstance(line.expr, Loop) and isinstance(other.expr, Loop):
            _align_loop(line.expr, other.expr, numbers)
        result.append(other)
    if next(rest, None) is not None:
        raise Differ("they have different statements")
    return result, numbers


def _align_loop(lead: Loop, other: Loop, numbers: dict[int, int]) -> None:
    if len(lead.lines) != len(other.lines) or len(lead.carried) != len(other.carried):
        raise Differ("their loops differ")
    for (before, _), (own, _) in zip(lead.carried, other.carried, strict=True):
        numbers[own] = before
    for line, own_line in zip(lead.lines, other.lines, strict=True):
        numbers.update(zip(own_line.outputs, line.outputs, strict=True))


def _merge_exprs(lead: Expr, others: list[tuple[Expr, dict[int, int]]], present: list[bool], instead: _Instead, hint: str = "") -> Expr:
    """`lead` with differing literals as slots; `others` holds the expression of every instance that has it."""
    exprs = [expr for expr, _ in others]
    if all(isinstance(expr, Literal) for expr in exprs) and isinstance(lead, Literal):
        values = [expr.value for expr in exprs if isinstance(expr, Literal)]
        if all(type(value) is type(values[0]) and value == values[0] for value in values):
            return lead
        if not all(isinstance(value, int | float | str | tuple | bool) for value in values):
            raise Differ(f"a constant differs: {values[:2]}")
        spread = iter(values)
        return Slot(tuple(next(spread) if here else MISSING for here in present), hint)
    if isinstance(lead, Local):
        for expr, numbers in others:
            if not isinstance(expr, Local) or not instead.same(lead.number, numbers.get(expr.number, expr.number)):
                raise Differ("they pass other values on")
        return lead
    if any(type(expr) is not type(lead) or len(expr.children()) != len(lead.children()) for expr in exprs):
        raise Differ(f"{type(lead).__name__} in one is something else in another")
    count = len(lead.children())
    blank = tuple(Local(0) for _ in range(count))
    if any(_shell(expr, blank) != _shell(lead, blank) for expr in exprs):
        raise Differ(f"{_shell(lead, blank)} differs")
    hints = _hints(lead)
    children = tuple(
        _merge_exprs(lead.children()[i], [(expr.children()[i], numbers) for expr, numbers in others], present, instead, hints[i]) for i in range(count)
    )
    return lead.rebuilt(children) if count else lead


def _shell(expr: Expr, blank: tuple[Expr, ...]) -> Any:
    """Everything of an expression but its subexpressions and value numbers."""
    if isinstance(expr, Loop):
        return (expr.heads, len(expr.lines), len(expr.carried))
    if isinstance(expr, SizeOf):
        return ("size", expr.axis)
    return expr.rebuilt(blank) if blank else expr


def _hints(expr: Expr) -> list[str]:
    """What each subexpression would be called as an argument."""
    if isinstance(expr, Construct):
        return [name for name, _ in expr.kwargs]
    kwargs = getattr(expr, "kwargs", ())
    names = [name for name, _ in kwargs]
    return [""] * (len(expr.children()) - len(names)) + names


# ---- arguments ----


def _slot_arguments(body: Body, taken: set[str], dialect: Dialect) -> list[Argument]:
    """Slots of equal values become one argument, integer multiples an expression of one; the body is rewritten."""
    arguments: list[Argument] = []

    def place(slot: Slot, owner: str, default: Any) -> Parameter:
        if slot.hint in dialect.collapsible:
            slot = Slot(tuple(collapsed(value) for value in slot.values), slot.hint)
            default = collapsed(default)
        for argument in arguments:
            factor = _factor(argument.values, slot.values)
            if factor is not None and (factor == 1 or _scales(slot.hint, argument.name)):
                argument.values = tuple(v if v is not MISSING else _divided(s, factor) for v, s in zip(argument.values, slot.values, strict=True))
                return Parameter(argument.name, factor)
        stem = slot.hint or "value"
        name = identifier(stem, dialect.reserved)
        if name in taken:
            name = identifier(f"{owner}_{stem}" if owner else f"{stem}_", dialect.reserved)
        while name in taken:
            name = f"{name}_"
        taken.add(name)
        common = default if any(value == default for value in slot.values) else MISSING
        arguments.append(Argument(name, slot.values, common))
        return Parameter(name)

    slots = [(path, part, construct) for path, definition in body.definitions.items() for construct in walk(definition) for part in construct.children() if isinstance(part, Slot)]
    order = sorted(slots, key=lambda item: _magnitude(item[1]))
    chosen: dict[int, Parameter] = {}
    for path, slot, construct in order:
        own = dialect.defaults(construct.cls) if isinstance(construct, Construct) else {}
        chosen[id(slot)] = place(slot, str(path[0]), own.get(slot.hint, MISSING))
    for path, definition in body.definitions.items():
        body.definitions[path] = transform(definition, lambda part: chosen.get(id(part)) if isinstance(part, Slot) else None)
    body.lines = [_placed(line, place) for line in body.lines]
    first_use = {argument.name: index for index, argument in enumerate(arguments)}
    return sorted(arguments, key=lambda argument: _rank(argument.name, first_use))


def collapsed(value: Any) -> Any:
    """(3, 3) as 3."""
    return value[0] if isinstance(value, tuple) and value and len(set(value)) == 1 else value


def _placed(line: Line, place: Callable[[Slot, str, Any], Parameter]) -> Line:
    """In statements an argument is read from the object."""

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Slot):
            return None
        parameter = place(part, line.names[0] if line.names else "", MISSING)
        return Parameter(f"self.{parameter.name}", parameter.factor)

    return replace(line, expr=transform(line.expr, change))


_ORDER = ("filters", "units", "input_dim", "output_dim", "rate", "kernel_size", "strides")


def _rank(name: str, first_use: dict[str, int]) -> tuple[int, int]:
    known = next((i for i, stem in enumerate(_ORDER) if name.endswith(stem)), len(_ORDER))
    return known, first_use[name]


def _scales(hint: str, name: str) -> bool:
    """Whether an argument may be written as a multiple of another: only widths are."""
    widths = ("filters", "units", "groups", "output_dim", "key_dim", "")
    return hint in widths and any(name.endswith(stem) for stem in widths if stem)


def _factor(base: tuple[Any, ...], values: tuple[Any, ...]) -> int | None:
    """k when `values` are k times `base` wherever both are known."""
    both = [(b, v) for b, v in zip(base, values, strict=True) if b is not MISSING and v is not MISSING]
    if not both:
        return None
    if all(type(b) is type(v) and b == v for b, v in both):
        return 1
    if not all(type(b) is int and type(v) is int and b > 0 and v % b == 0 for b, v in both):
        return None
    factors = {v // b for b, v in both}
    return factors.pop() if len(factors) == 1 and len(set(both)) > 1 else None


def _divided(value: Any, factor: int) -> Any:
    return value if value is MISSING or factor == 1 else value // factor


def _magnitude(slot: Slot) -> float:
    """Smaller widths first, so that larger ones are multiples of them; everything else keeps its place."""
    known = [value for value in slot.values if isinstance(value, int) and not isinstance(value, bool)]
    return float(sum(known)) / len(known) if known else 0.0


__all__ = ["Argument", "Differ", "Template", "unify"]
