"""Sizes that vary, as whole numbers that remember how they were computed from the sizes of the inputs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any


class Size(int):
    """A size of this trace, and the expression that gives it for every other.

    Arithmetic on it is written into the expression; whatever turns it into a plain number (`math.ceil`, numpy, an
    index) loses it, which comparing two traces shows.
    """

    expression: str

    def __new__(cls, value: int, expression: str) -> Size:
        size = super().__new__(cls, value)
        size.expression = expression
        return size

    def __deepcopy__(self, memo: Any) -> Size:
        return self

    def __hash__(self) -> int:
        return int.__hash__(self)


def _binary(name: str, symbol: str) -> Callable[[Size, Any], Any]:
    plain = getattr(int, name)

    def compute(self: Size, other: Any) -> Any:
        value = plain(self, other)
        if value is NotImplemented or not isinstance(other, int) or isinstance(other, bool):
            return value
        left, right = text(self), text(other)
        if name.startswith("__r"):
            left, right = right, left
        return Size(value, simplified(f"({left}) {symbol} ({right})"))

    return compute


for _name, _symbol in {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}.items():
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(Size, _form, _binary(_form, _symbol))
Size.__neg__ = lambda self: Size(-int(self), simplified(f"-({text(self)})"))  # type: ignore[method-assign]


def text(size: int) -> str:
    """The expression of a size, or the number."""
    return size.expression if isinstance(size, Size) else str(int(size))


def simplified(expression: str) -> str:
    """The expression without what adds or multiplies nothing, and without needless brackets."""
    return ast.unparse(_Simplifier().visit(ast.parse(expression, mode="eval")))


class _Simplifier(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        left, right = _number(node.left), _number(node.right)
        if left is not None and right is not None:
            return ast.Constant(_COMPUTE[type(node.op)](left, right))
        if right == 0 and isinstance(node.op, ast.Add | ast.Sub):
            return node.left
        if left == 0 and isinstance(node.op, ast.Add):
            return node.right
        if isinstance(node.op, ast.Mult):
            return _product(*_factors(node))
        if isinstance(node.op, ast.FloorDiv):
            return _quotient(node)
        return node


def _factors(node: ast.expr) -> tuple[int, list[ast.expr]]:
    """A product as its number and everything else."""
    number = _number(node)
    if number is not None:
        return number, []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        (a, left), (b, right) = _factors(node.left), _factors(node.right)
        return a * b, left + right
    return 1, [node]


def _product(number: int, factors: list[ast.expr]) -> ast.expr:
    parts = [*([ast.Constant(number)] if number != 1 or not factors else []), *factors]
    result = parts[0]
    for part in parts[1:]:
        result = ast.BinOp(result, ast.Mult(), part)
    return result


def _quotient(node: ast.BinOp) -> ast.expr:
    """The quotient without factors that both sides have; sizes are not zero."""
    (above, numerators), (below, denominators) = _factors(node.left), _factors(node.right)
    left = list(numerators)
    for factor in denominators:
        same = next((part for part in left if ast.dump(part) == ast.dump(factor)), None)
        if same is None:
            return node
        left.remove(same)
    if below != 0 and above % below == 0:
        return _product(above // below, left)
    return (
        node if denominators and below == 1 else ast.BinOp(_product(above, left), ast.FloorDiv(), ast.Constant(below))
    )


_COMPUTE: dict[type, Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def _number(node: ast.AST) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def evaluate(expression: str, sizes: dict[str, int]) -> int:
    """The value of an expression of `Size`s for given sizes of the inputs."""
    return _value(ast.parse(expression, mode="eval").body, sizes)


def _value(node: ast.AST, sizes: dict[str, int]) -> int:
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, sizes)
    if isinstance(node, ast.BinOp):
        return _COMPUTE[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return node.value
