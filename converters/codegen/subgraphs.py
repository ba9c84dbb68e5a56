"""Functions inside a method: how they are built from subgraphs, what their values are called, how they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from porter.converters.codegen.functions import Function, reads
from porter.converters.codegen.identifiers import identifier
from porter.converters.codegen.nodes import Expr, Literal, Ref, transform, walk
from porter.converters.codegen.normal import Block, Line
from porter.converters.codegen.signatures import flattened
from porter.converters.codegen.tree import Statement

if TYPE_CHECKING:
    from porter.converters.codegen.body import BodyBuilder
    from porter.converters.codegen.locals import LocalNames
    from porter.converters.codegen.printer import Printer

# A function of one expression with more parts than this is no lambda any more.
_LAMBDA_PARTS = 10


# ***** building *****


def block(builder: BodyBuilder, function: Function, statement: Statement) -> Block:
    """A function of a statement of the builder's class; it sees the values and sizes around it."""
    with builder.inside() as lines:
        parameters: list[int | tuple[int, ...]] = []
        for one in function.parameters:
            values = one if isinstance(one, tuple) else (one,)
            numbers = tuple(builder.number(value) for value in values)
            parameters.append(numbers if isinstance(one, tuple) else numbers[0])
            for value, number in zip(values, numbers, strict=True):
                builder.learn(value, number)
        for item in flattened(builder.context, function.items):
            builder.item(item)
        result = transform(
            function.result,
            lambda part: builder.tensor(part.value) if isinstance(part, Ref) else builder.localized(part, statement),
        )
    builder.make_tensors(lines, list(reads(function.result)))
    like = tuple(builder.numbers.get(one.value) if isinstance(one, Ref) else None for one in function.like)
    return Block(function.name, tuple(parameters), tuple(lines), result, function.names, like)


# ***** naming *****


@dataclass(frozen=True)
class Head:
    """What a function inside a method is called, what it takes, and the statements that unpack that."""

    name: str
    arguments: list[str]
    unpacking: list[str]


def blocks_in(expr: Expr) -> Iterator[Block]:
    """The functions that an expression is made with, not those inside them."""
    if isinstance(expr, Block):
        yield expr
        return
    for child in expr.children():
        yield from blocks_in(child)


def name_blocks(names: LocalNames, line: Line) -> None:
    """Names for the functions of a statement and for the values in them.

    A function never gives a value of its own the name of a value that it reads from around it: Python would take that
    for its own everywhere in the function.
    """
    taken: set[str] = set()
    for each in blocks_in(line.expr):
        captured = names.read_by(each)
        name = names.free([identifier(each.name, names.reserved)], {*taken, *captured})
        taken |= set() if as_lambda(each) else {name}
        values = _parameters(names, each, captured)
        arguments, unpacking = [], []
        for one in each.parameters:
            if isinstance(one, int):
                arguments.append(values[one])
                continue
            packed = names.unused(["state" if one else "_"], {*captured, *values.values(), *arguments})
            arguments.append(packed)
            unpacking += [f"{', '.join(values[number] for number in one)} = {packed}"] if one else []
        names.functions[id(each)] = Head(name, arguments, unpacking)
        names.name_inside(each, values, captured)


def defined(each: Block) -> Iterator[int]:
    """The numbers of all values that a function or one inside it makes or takes."""
    for one in each.parameters:
        yield from _several(one)
    for line in each.lines:
        yield from line.outputs
    for part in walk(each):
        if part is not each and isinstance(part, Block):
            yield from defined(part)


def _parameters(names: LocalNames, each: Block, captured: frozenset[str]) -> dict[int, str]:
    """The values that a function takes, under the author's names or those of the values that they have at first."""
    numbers = [number for one in each.parameters for number in _several(one)]
    chosen: dict[int, str] = {}
    for index, number in enumerate(numbers):
        given = each.names[index] if index < len(each.names) else ""
        like = each.like[index] if index < len(each.like) else None
        wanted = [identifier(given, names.reserved)] if given else []
        wanted += [names.names[like]] if like in names.names else []
        chosen[number] = names.unused([*wanted, *names.vocabulary], {*captured, *chosen.values()})
    return chosen


# ***** writing *****


def as_lambda(each: Block) -> bool:
    """Whether a function is short enough to stand where it is used."""
    if each.lines or not all(isinstance(one, int) for one in each.parameters):
        return False
    short = sum(not isinstance(part, Literal) for part in walk(each.result)) <= _LAMBDA_PARTS
    return short and all(map(as_lambda, blocks_in(each.result)))


def lambda_text(printer: Printer, each: Block) -> str:
    """A function of one expression."""
    taken = ", ".join(printer.functions[id(each)].arguments)
    return f"lambda {taken}: {printer.text(each.result)}" if taken else f"lambda: {printer.text(each.result)}"


def definitions(printer: Printer, line: Line, written: Callable[[tuple[Line, ...]], list[str]]) -> list[str]:
    """The functions that stand before a statement; `written` writes the statements inside them."""
    texts: list[str] = []
    for each in blocks_in(line.expr):
        if as_lambda(each):
            continue
        head, known = printer.functions[id(each)], printer.sizes
        inner = [*head.unpacking, *written(each.lines)]
        inner += definitions(printer, Line((), each.result), written)
        inner.append(f"return {printer.result(each.result)}")
        texts += [
            f"def {head.name}({', '.join(head.arguments)}):",
            *(f"    {text}" if text else "" for text in inner),
            "",
        ]
        printer.sizes = known
    return texts


# ***** comparing *****


def align_blocks(lead: Expr, other: Expr, numbers: dict[int, int]) -> None:
    """Learn which value in the functions of the lead each value in those of another body is."""
    for a, b in zip(blocks_in(lead), blocks_in(other), strict=True):
        for one, own in zip(a.parameters, b.parameters, strict=True):
            numbers.update(zip(_several(own), _several(one), strict=True))
        for line, own_line in zip(a.lines, b.lines, strict=True):
            numbers.update(zip(own_line.outputs, line.outputs, strict=True))
        for part, own_part in zip(a.children(), b.children(), strict=True):
            align_blocks(part, own_part, numbers)


def outline(each: Block) -> tuple[Any, ...]:
    """What functions have in common that differ in value numbers and literals only."""
    return (
        "function",
        tuple(len(_several(one)) if isinstance(one, tuple) else None for one in each.parameters),
        tuple(len(line.outputs) for line in each.lines),
    )


def _several(parameter: int | tuple[int, ...]) -> tuple[int, ...]:
    return parameter if isinstance(parameter, tuple) else (parameter,)
