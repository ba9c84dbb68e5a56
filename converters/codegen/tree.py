"""The tree of module calls: which statements each call of each module makes, only those that a result needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from porter.converters.codegen.functions import functions_in, reads
from porter.converters.codegen.nodes import Expr
from porter.converters.opset import SCOPE, SOURCE


@dataclass
class Statement:
    """What one node became: `outputs = expr` (one output for a plain expression, several for a tuple)."""

    outputs: list[ir.Value]
    expr: Expr
    scope: list[list[Any]] = field(default_factory=list)  # [path, call number, class] of the enclosing modules
    frames: list[list[Any]] = field(default_factory=list)  # [file, line, code] of the statement in the source

    @property
    def path(self) -> str:
        """The module that the statement belongs to."""
        return self.scope[-1][0] if self.scope else ""

    def inner(self) -> Iterator[Statement]:
        """The statements of the functions in it, at any depth."""
        for function in functions_in(self.expr):
            for statement in function.statements:
                yield statement
                yield from statement.inner()

    def defines(self) -> Iterator[ir.Value]:
        """The values that it makes, and what the functions in it take."""
        yield from self.outputs
        for function in functions_in(self.expr):
            yield from function.values()


@dataclass
class Call:
    """One call of one module instance."""

    path: str
    number: int
    cls: str
    items: list[Statement | Call] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int]:
        return (self.path, self.number)

    def statements(self) -> Iterator[Statement]:
        """All statements in order, those of inner calls and of functions included."""
        for item in self.items:
            if isinstance(item, Statement):
                yield item
                yield from item.inner()
            else:
                yield from item.statements()

    def calls(self) -> Iterator[Call]:
        """The calls made in it directly, those in functions included."""
        yield from _calls(self.items)


def _calls(items: list[Statement | Call]) -> Iterator[Call]:
    for item in items:
        if isinstance(item, Call):
            yield item
        else:
            for function in functions_in(item.expr):
                yield from _calls(function.items)


def needed_statements(
    graph: ir.Graph, bind: Callable[[ir.Node], Any], outputs: Iterable[ir.Value] | None = None
) -> list[Statement]:
    """Bind backwards from the outputs, so that what only computes sizes is never asked of a rule."""
    wanted = set(graph.outputs if outputs is None else outputs)
    found: list[Statement] = []
    for node in reversed(list(graph)):
        if not any(output in wanted for output in node.outputs):
            continue
        result = bind(node)
        if result is None:
            continue
        frames = json.loads(node.metadata_props.get(SOURCE, "[]"))
        scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
        if isinstance(result, tuple):
            pairs = zip(node.outputs, result, strict=False)
            made = [Statement([out], expr, scope, frames) for out, expr in pairs if out in wanted and expr is not None]
        else:
            made = [Statement(list(node.outputs), result, scope, frames)]
        for statement in made:
            wanted.update(reads(statement.expr))
        found += reversed(made)
    return list(reversed(found))


def call_tree(statements: list[Statement], root_class: str) -> Call:
    """Statements by the module calls that they belong to.

    Nodes of one call lie together. A call that is entered again after something else ran (a transpose moved there) is
    continued in the caller instead, which is always right: paths, not places, say which layer a statement uses.
    """
    root = Call("", 0, root_class)
    _grow(statements, [root], root.items, set())
    return root


def _grow(
    statements: list[Statement],
    outer: list[Call],
    base: list[Statement | Call],
    closed: set[tuple[str, int]],
) -> None:
    """Put statements that stand inside the calls `outer` into `base`, by the further calls that they belong to."""
    stack = list(outer)
    for statement in statements:
        scope = [entry for entry in statement.scope if entry[0]]
        depth = 0
        while depth < len(scope) and depth + 1 < len(stack) and stack[depth + 1].key == tuple(scope[depth][:2]):
            depth += 1
        within = depth + 1 >= len(outer)  # else it is made elsewhere: it stays where it is read
        depth = max(depth, len(outer) - 1)
        for left in stack[depth + 1 :]:
            closed.add(left.key)
        del stack[depth + 1 :]
        for path, number, cls in scope[depth:] if within else []:
            if (path, number) in closed:
                break
            call = Call(path, number, cls)
            (stack[-1].items if len(stack) > len(outer) else base).append(call)
            stack.append(call)
        (stack[-1].items if len(stack) > len(outer) else base).append(statement)
        for function in functions_in(statement.expr):
            _grow(function.statements, stack, function.items, closed)
