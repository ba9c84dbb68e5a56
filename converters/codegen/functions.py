"""A subgraph of the model as a function: what `ops.cond` and its like are given, before it belongs to a class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Items, Ref, walk
from porter.converters.graph.nesting import function_facts, passed_on

if TYPE_CHECKING:
    from porter.converters.codegen.tree import Call, Statement

# One argument: a value, or several that come as one tuple.
Parameter = ir.Value | tuple[ir.Value, ...]


@dataclass(frozen=True, eq=False)
class Function(Expr):
    """Statements over values of its own and of what stands around it.

    `names` are what the author calls the values of the parameters ("" where that is not known), `like` what these have
    at first, which lends them its name.
    """

    name: str
    parameters: tuple[Parameter, ...]
    statements: list[Statement]
    result: Expr
    names: tuple[str, ...] = ()
    like: tuple[Expr | None, ...] = ()
    items: list[Statement | Call] = field(default_factory=list)  # the statements by module calls

    def values(self) -> list[ir.Value]:
        """The values of the parameters, one after the other."""
        return [value for one in self.parameters for value in (one if isinstance(one, tuple) else (one,))]


def functions_in(expr: Expr) -> list[Function]:
    """The functions that an expression is made with, not those inside them."""
    return [part for part in walk(expr) if isinstance(part, Function)]


def reads(expr: Expr) -> Iterator[ir.Value]:
    """Every value that an expression reads, those read inside functions too."""
    for part in walk(expr):
        if isinstance(part, Ref):
            yield part.value
        elif isinstance(part, Function):
            for statement in part.statements:
                yield from reads(statement.expr)
            yield from reads(part.result)


def own_reads(expr: Expr) -> Iterator[ir.Value]:
    """The values that an expression reads itself: what its functions return, not what is read on the way there."""
    for part in walk(expr):
        if isinstance(part, Ref):
            yield part.value
        elif isinstance(part, Function):
            yield from own_reads(part.result)


def function_of(
    graph: ir.Graph, default: str, statements: Callable[[ir.Graph, list[ir.Value]], list[Statement]]
) -> Function:
    """A subgraph as a function of its inputs, under the name that the author gave it or else `default`.

    `statements(graph, outputs)` binds what these outputs need.
    """
    facts = function_facts(graph)
    outputs = [passed_on(value) for value in graph.outputs]
    results = tuple(Ref(value) for value in outputs)
    return Function(
        facts.get("name") or default,
        tuple(graph.inputs),
        statements(graph, outputs),
        results[0] if len(results) == 1 else Items(results),
        tuple(facts.get("parameters", ())),
    )
