"""Symbolic sizes inside one body: which value in scope has a size, and arithmetic on those."""

from __future__ import annotations

import ast

from porter.converters.codegen.nodes import Binary, Expr, Literal, call
from porter.converters.codegen.normal import Local, SizeOf
from porter.converters.symbols import quotient
from porter.errors import UnsupportedError


class SizeFinder:
    """Remembers where each symbolic size can be read."""

    def __init__(self, known: dict[str, Expr] | None = None) -> None:
        self._known: dict[str, Expr] = known or {}

    def copy(self) -> SizeFinder:
        """One that knows the same and learns for itself."""
        return SizeFinder(dict(self._known))

    def learn(self, value: Local, shape: tuple[int | str, ...], itself: str = "") -> None:
        """A value with `shape`, which is the size `itself` if that is given, is in scope from now on.

        The first value with a size is the one that is asked.
        """
        if itself.isidentifier():
            self._known.setdefault(itself, value)
        for axis, size in enumerate(shape):
            if isinstance(size, str) and size != "?":
                self._known.setdefault(size, SizeOf(value, axis, size if size.isidentifier() else ""))

    def find(self, expression: str) -> Expr:
        """The size as an expression.

        Raises:
            UnsupportedError: no value in scope tells it.
        """
        return self._evaluate(ast.parse(expression, mode="eval").body)

    def _evaluate(self, tree: ast.expr) -> Expr:
        text = ast.unparse(tree)
        if text in self._known:
            return self._known[text]
        match tree:
            case ast.Constant(value=int(number)):
                return Literal(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._evaluate(operand)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SYMBOLS:
                return Binary(_SYMBOLS[type(operator)], self._evaluate(left), self._evaluate(right))
            case ast.Call(func=ast.Name(id="FloorDiv" | "CleanDiv"), args=[left, right]):
                return self._evaluate(left) // self._evaluate(right)
            case ast.Call(func=ast.Name(id="Mod" | "PythonMod"), args=[left, right]):
                return Binary("%", self._evaluate(left), self._evaluate(right))
            case ast.Call(func=ast.Name(id="FloorToInt" | "TruncToInt"), args=[tree]) if parts := quotient(tree):
                return self._evaluate(parts[0]) // self._evaluate(parts[1])
            case ast.Call(func=ast.Name(id="CeilToInt"), args=[tree]) if parts := quotient(tree):
                return -(-self._evaluate(parts[0]) // self._evaluate(parts[1]))
            case ast.Call(func=ast.Name(id=name), args=args) if name.lower() in ("max", "min"):
                return call(name.lower(), *(self._evaluate(argument) for argument in args))
        raise UnsupportedError(f"the size {text} cannot be told from the values in scope")


_SYMBOLS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
