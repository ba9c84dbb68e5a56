"""What the author wrote in one statement becomes one statement: single-use values of the same source line nest."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from porter.converters.codegen.nodes import Expr, Literal, Member, transform, walk
from porter.converters.codegen.normal import Attribute, Block, IfPresent, Invoke, Line, Local, Loop, SizeOf
from porter.converters.codegen.subgraphs import as_lambda, blocks_in

# Beyond this many parts a nested expression stops reading well.
_LIMIT = 16


def _weight(expr: Expr) -> int:
    return (not isinstance(expr, Literal)) + sum(_weight(child) for child in _children(expr))


def _children(expr: Expr) -> tuple[Expr, ...]:
    """What stands in the statement itself: a longer function stands before it."""
    return () if isinstance(expr, Block) and not as_lambda(expr) else expr.children()


def _depth(expr: Expr) -> int:
    children = _children(expr)
    nested = max((_depth(child) for child in children), default=0)
    return nested + (0 if isinstance(expr, Local | Literal) else 1)


def inline(lines: list[Line], outputs: list[int]) -> list[Line]:
    """Merge lines bottom-up; order is kept, so every value is still made before it is read."""
    uses = Counter(part.number for line in lines for part in walk(line.expr) if isinstance(part, Local))
    uses.update(outputs)
    result: list[Line] = []
    for line in lines:
        if isinstance(line.expr, Loop):
            kept = [after for _, after in line.expr.carried]
            line = replace(line, expr=replace(line.expr, lines=tuple(inline(list(line.expr.lines), kept))))
        line = replace(line, expr=transform(line.expr, lambda part: _short(part) if isinstance(part, Block) else None))
        while result and (_nests(result[-1], line, uses) or _in_each_branch(result[-1], line, uses)):
            inner = result.pop()
            line = replace(line, expr=_nested(inner, line.expr))
        result.append(line)
    return result


def _short(block: Block) -> Block:
    """A function with its own statements merged, the last ones into what it returns."""
    where = block.lines[-1].where if block.lines else None
    *lines, last = inline([*block.lines, Line((), block.result, (), where)], [])
    return replace(block, lines=tuple(lines), result=last.expr)


def _nests(inner: Line, outer: Line, uses: Counter[int]) -> bool:
    if (
        len(inner.outputs) != 1
        or uses[inner.outputs[0]] != 1
        or isinstance(inner.expr, Loop | IfPresent)
        or isinstance(outer.expr, Loop)
    ):
        return False
    read = [part for part in walk(outer.expr) if isinstance(part, Local) and part.number == inner.outputs[0]]
    if not read or any(isinstance(part, SizeOf | Member) and part.base in read for part in walk(outer.expr)):
        return False
    if _items(inner.expr, outer.expr) or any(part in read for block in blocks_in(outer.expr) for part in walk(block)):
        return False  # in a function it would be computed in one branch only, or in every turn
    if inner.where != outer.where or inner.where is None:
        return inner.where is None and _weight(inner.expr) <= 3 and _weight(outer.expr) <= 6
    return _weight(inner.expr) + _weight(outer.expr) <= _LIMIT and _depth(inner.expr) + _depth(outer.expr) <= 6


def _in_each_branch(inner: Line, outer: Line, uses: Counter[int]) -> bool:
    """Whether a call that the author gave no name is all that one branch does, and read once in the other."""
    if not isinstance(outer.expr, IfPresent) or not isinstance(inner.expr, Invoke) or inner.names:
        return False
    made = Local(inner.outputs[0])
    read = sum(part == made for part in walk(outer.expr.then))
    plain = all(isinstance(argument, Local) for argument in inner.expr.args)
    return plain and read == 1 and outer.expr.otherwise == made and uses[made.number] == 2


def _items(inner: Expr, outer: Expr) -> bool:
    """Whether both use items of one list: then they are different turns of a loop, not one statement."""
    heads = [
        {
            (part.path[0], part.path[1])
            for part in walk(expr)
            if isinstance(part, Invoke | Attribute) and len(part.path) > 1
        }
        for expr in (inner, outer)
    ]
    return any(a[0] == b[0] and a[1] != b[1] for a in heads[0] for b in heads[1])


def _nested(inner: Line, outer: Expr) -> Expr:
    """`outer` with the value that `inner` makes replaced by how it is made."""
    number = inner.outputs[0]
    return transform(outer, lambda part: inner.expr if isinstance(part, Local) and part.number == number else None)
