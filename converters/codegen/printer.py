"""Expressions as text. The only place where text is made, so the only place that must quote."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from porter.converters.codegen.arguments import Argument, collapsed, is_width
from porter.converters.codegen.dialect import Dialect, Steps
from porter.converters.codegen.identifiers import singular
from porter.converters.codegen.nodes import (
    Binary,
    Call,
    Expr,
    Index,
    Items,
    Literal,
    Member,
    Nested,
    Slice,
    Unary,
    Verbatim,
)
from porter.converters.codegen.normal import (
    MISSING,
    Attribute,
    Block,
    Choice,
    Construct,
    IfPresent,
    Invoke,
    Local,
    Parameter,
    Repeat,
    SizeOf,
    Some,
)
from porter.converters.codegen.subgraphs import Head, as_lambda, lambda_text

_PRECEDENCE = {"**": 10, "*": 8, "/": 8, "//": 8, "%": 8, "@": 8, "+": 7, "-": 7, "<<": 6, ">>": 6}
_PRECEDENCE |= {"&": 5, "^": 4, "|": 3}
_COMPARISON, _PRODUCT, _SIGN, _POSTFIX = 2, 8, 10, 12
_COMPARING = {"<", ">", "<=", ">=", "==", "!="}


def literal(value: Any) -> str:
    """A Python value as source: inf and nan as expressions, everything else by repr."""
    if isinstance(value, float):
        if math.isnan(value):
            return 'float("nan")'
        if math.isinf(value):
            return 'float("inf")' if value > 0 else 'float("-inf")'
        return repr(value)
    if isinstance(value, slice):
        parts = ["" if part is None else literal(part) for part in (value.start, value.stop)]
        return ":".join(parts) + (f":{literal(value.step)}" if value.step not in (None, 1) else "")
    if isinstance(value, tuple):
        return f"({', '.join(literal(item) for item in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(literal(item) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if value is Ellipsis:
        return "..."
    return repr(value)


class Printer:
    """Prints expressions of one body; `local` names its values."""

    def __init__(
        self,
        dialect: Dialect,
        local: Callable[[int], str],
        *,
        classes: Mapping[str, Sequence[Argument]] | None = None,
    ) -> None:
        self.dialect = dialect
        self.local = local
        self.classes = classes or {}
        self.sizes: dict[tuple[Expr, int], str] = {}
        self.functions: Mapping[int, Head] = {}  # by id of a function inside the method

    def result(self, expr: Expr) -> str:
        """What stands behind `return`: several values without brackets."""
        if isinstance(expr, Items) and expr.brackets == "()" and len(expr.items) > 1:
            return ", ".join(self.text(item) for item in expr.items)
        return self.text(expr)

    def text(self, expr: Expr, parent: int = 0) -> str:
        """The expression; `parent` is the precedence of what stands around it."""
        match expr:
            case Literal(value=value):
                return literal(value)
            case Verbatim(text=text):
                return text
            case Local(number=number):
                return self.local(number)
            case SizeOf():
                return self._size(expr)
            case Parameter(name=name, factor=factor, divisor=divisor):
                if divisor != 1:
                    return self._wrapped(f"{name} // {divisor}", _PRODUCT, parent)
                return name if factor == 1 else self._wrapped(f"{factor} * {name}", _PRODUCT, parent)
            case Attribute(path=path, slot=slot):
                return self.path(path) + (f".{slot}" if slot else "")
            case Block():
                return lambda_text(self, expr) if as_lambda(expr) else self.functions[id(expr)].name
            case Invoke():
                return self._invoke(expr)
            case Construct():
                return self.construct(expr)
            case Call(func=func, args=args, kwargs=kwargs):
                return self._call(func, args, kwargs)
            case Items(items=(Repeat() as only,), brackets="[]"):
                return f"[{self._repeated(only)}]"
            case Items(items=items, brackets=brackets):
                inner = ", ".join(self.text(item) for item in items)
                comma = "," if len(items) == 1 and brackets == "()" else ""
                return f"{brackets[0]}{inner}{comma}{brackets[1]}"
            case Index(base=base, items=items):
                return f"{self.text(base, _POSTFIX)}[{', '.join(self.text(item) for item in items)}]"
            case Slice(bounds=bounds):
                start, stop, step = ("" if part == Literal(None) else self.text(part) for part in bounds)
                return f"{start}:{stop}" + (f":{step}" if step not in ("", "1") else "")
            case Nested(operand=operand):
                return self.text(operand)
            case Member(base=base, name=name):
                return f"{self.text(base, _POSTFIX)}.{name}"
            case Unary(op=op, operand=operand):
                return self._wrapped(f"{op}{self.text(operand, _SIGN + 1)}", _SIGN, parent)
            case Binary(op=op, left=left, right=right):
                return self._binary(op, left, right, parent)
            case IfPresent(path=path, then=then, otherwise=otherwise):
                return self._wrapped(f"{self.text(then)} if {self.path(path)} else {self.text(otherwise)}", 1, parent)
            case Choice(flag=flag, then=then, otherwise=otherwise):
                return self._wrapped(f"{self.text(then)} if {flag} else {self.text(otherwise)}", 1, parent)
            case Some(flag=flag, items=items):
                return f"*([{', '.join(self.text(item) for item in items)}] if {flag} else [])"
            case Repeat():
                return f"*({self._repeated(expr)})"
        raise AssertionError(f"{type(expr).__name__} has no text")

    def _repeated(self, expr: Repeat) -> str:
        return f"{self.text(expr.item)} for _ in range({self.text(expr.count)})"

    def steps(self, layers: Expr) -> Steps:
        """The layers of a chain."""
        assert isinstance(layers, Items)
        return Steps([self.text(item) for item in layers.items], self.text(layers) if layers.items else "")

    @staticmethod
    def _wrapped(text: str, own: int, parent: int) -> str:
        return f"({text})" if own < parent else text

    def _binary(self, op: str, left: Expr, right: Expr, parent: int) -> str:
        own = _PRECEDENCE.get(op, _COMPARISON)
        if op == "**":
            text = f"{self.text(left, own + 1)} {op} {self.text(right, own)}"
        else:
            text = f"{self.text(left, own + (op in _COMPARING))} {op} {self.text(right, own + 1)}"
        return self._wrapped(text, own, parent)

    def _size(self, expr: SizeOf) -> str:
        known = self.sizes.get((expr.base, expr.axis))
        if known is not None:
            return known
        return self.dialect.size(self.text(expr.base, _POSTFIX), expr.axis)

    def path(self, path: tuple[str | int, ...]) -> str:
        """`self.blocks[0].conv`, or a loop's own item."""
        first = path[0]
        assert isinstance(first, str)
        text = singular(first[1:]) if first.startswith("@") else f"self.{first}"
        for part in path[1:]:
            if isinstance(part, int):
                text += f"[{part}]"
            else:
                text += self.dialect.chain_item(part) if part.isdigit() else f".{part}"
        return text

    def _invoke(self, expr: Invoke) -> str:
        parts = [self.text(arg) for arg in expr.args]
        parts += [f"{name}={self.text(value)}" for name, value in expr.kwargs]
        return f"{self.path(expr.path)}({', '.join(parts)})"

    def _call(self, func: str, args: tuple[Expr, ...], kwargs: tuple[tuple[str, Expr], ...]) -> str:
        defaults = self.dialect.defaults(func)
        kept = [(name, value) for name, value in kwargs if not _is(value, defaults.get(name, self))]
        if func.startswith("."):  # a method of the first argument
            func, args = f"{self.text(args[0], _POSTFIX)}{func}", args[1:]
        parts = [self.text(arg) for arg in args] + [f"{name}={self.text(value)}" for name, value in kept]
        return f"{func}({', '.join(parts)})"

    def construct(self, expr: Construct) -> str:
        """A constructor call: leading arguments by position, defaults left out, (3, 3) as 3."""
        if expr.cls == self.dialect.sequential:
            return self.dialect.chain(self.steps(dict(expr.kwargs)["layers"]))
        own = self.classes.get(expr.cls)
        if own is not None:
            order = [argument.name for argument in own]
            defaults = {argument.name: argument.default for argument in own}
            count = min(2, sum(argument.default is MISSING for argument in own))
            if not count and order and is_width(order[0]):
                count = 1
        else:
            order, count = self.dialect.order(expr.cls), self.dialect.positional(expr.cls)
            defaults = {
                name: _one(value, name in self.dialect.collapsible)
                for name, value in self.dialect.defaults(expr.cls).items()
            }
        values = {name: self._collapsed(name, value) for name, value in expr.kwargs}
        kept = sorted(values.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))
        parts: list[str] = []
        for index, (name, value) in enumerate(kept):
            leading = index < count and (not order or order.index(name) == index) and len(parts) == index
            if leading and not _is(value, None):
                parts.append(self.text(value))
            elif not _is(value, defaults.get(name, self)):
                parts.append(f"{name}={self.text(value)}")
        name = expr.cls if own is not None else self.dialect.qualified(expr.cls)
        return f"{name}({', '.join(parts)})"

    def _collapsed(self, name: str, value: Expr) -> Expr:
        if isinstance(value, Literal) and name in self.dialect.collapsible and collapsed(value.value) != value.value:
            return Literal(collapsed(value.value))
        return value


def _one(value: Any, collapsible: bool) -> Any:
    """(1, 1) as 1, where the printer writes it so."""
    return collapsed(value) if collapsible else value


def _is(value: Expr, default: Any) -> bool:
    return isinstance(value, Literal) and type(value.value) is type(default) and value.value == default
