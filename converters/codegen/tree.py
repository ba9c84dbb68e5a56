"""The tree of module calls: which statements each call of each module makes, only those that a result needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Ref, walk
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
        """All statements, those of inner calls included, in order."""
        for item in self.items:
            if isinstance(item, Statement):
                yield item
            else:
                yield from item.statements()


def needed_statements(graph: ir.Graph, bind: Callable[[ir.Node], Any]) -> list[Statement]:
    """Bind backwards from the outputs, so that what only computes sizes is never asked of a rule."""
    wanted = set(graph.outputs)
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
            wanted.update(part.value for part in walk(statement.expr) if isinstance(part, Ref))
        found += reversed(made)
    return list(reversed(found))


def call_tree(statements: list[Statement], root_class: str) -> Call:
    """Statements by the module calls that they belong to.

    Nodes of one call lie together. A call that is entered again after something else ran (a transpose moved there) is
    continued in the caller instead, which is always right: paths, not places, say which layer a statement uses.
    """
    root = Call("", 0, root_class)
    closed: set[tuple[str, int]] = set()
    stack = [root]
    for statement in statements:
        scope = [entry for entry in statement.scope if entry[0]]
        depth = 0
        while depth < len(scope) and depth + 1 < len(stack) and stack[depth + 1].key == tuple(scope[depth][:2]):
            depth += 1
        for left in stack[depth + 1 :]:
            closed.add(left.key)
        del stack[depth + 1 :]
        for path, number, cls in scope[depth:]:
            if (path, number) in closed:
                break
            call = Call(path, number, cls)
            stack[-1].items.append(call)
            stack.append(call)
        stack[-1].items.append(statement)
    return root
