"""Where a class reads what it computes in: the type and the device of a value at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx_ir as ir

from porter.converters.codegen.nodes import Apply, Expr, Literal, Member, Ref, Size, Verbatim, Weight, walk
from porter.converters.codegen.normal import Attribute, Local, SizeOf
from porter.converters.codegen.tree import Statement

if TYPE_CHECKING:
    from porter.converters.codegen.body import BodyBuilder


def ambient(builder: BodyBuilder, kind: str, statement: Statement) -> Expr:
    """The "dtype" or "device" of a value that the statement reads, of one that is in scope, or of a parameter."""
    by_number = {number: value for value, number in builder.numbers.items()}

    def fits(value: ir.Value | None) -> bool:
        return value is not None and (kind == "device" or value.dtype == ir.DataType.FLOAT)

    for local in (*_read(builder, statement), *_in_scope(builder)):
        if fits(by_number.get(local.number)):
            return Member(local, kind)
    for variable in builder.body.variables:
        if kind == "device" or variable.weight.dtype == ir.DataType.FLOAT:
            return Member(Attribute(variable.path, variable.slot), kind)
    if any(_holds_parameters(part) for inner in builder.call.statements() for part in walk(inner.expr)):
        return Member(Verbatim("next(self.parameters())"), kind)
    return Literal(None)


def _holds_parameters(part: Expr) -> bool:
    """Whether the expression reads a parameter that is made later, or is held by a module inside."""
    weights = [weight for _, weight in part.layer.weights] if isinstance(part, Apply) else [part]
    return any(
        isinstance(weight, Weight) and weight.kind == "parameter" and weight.dtype == ir.DataType.FLOAT
        for weight in weights
    )


def _read(builder: BodyBuilder, statement: Statement) -> Iterator[Local]:
    """The values that the statement reads itself or asks for their sizes."""
    for part in walk(statement.expr):
        if isinstance(part, Ref) and part.value not in builder.context.weights:
            yield Local(builder.number(part.value))
        elif isinstance(part, Size):
            for inner in walk(builder.sizes.find(part.expression)):
                if isinstance(inner, SizeOf) and isinstance(inner.base, Local):
                    yield inner.base


def _in_scope(builder: BodyBuilder) -> Iterator[Local]:
    """The values that were made last, then what the module takes."""
    for line in reversed(builder.body.lines):
        for number in line.outputs:
            yield Local(number)
    for number in builder.body.inputs:
        yield Local(number)
