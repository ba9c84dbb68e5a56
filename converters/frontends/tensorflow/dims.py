"""Arithmetic on sizes, each a number or a Python expression over names, in one canonical form.

A size is a polynomial over names and quotients: `2 * height + 1`, `batch * ((height + 1) // 2)`. Equal sizes have equal
texts in all that models do with them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from functools import cache

Dim = int | str
# {names of a product, sorted: its number}
_Polynomial = dict[tuple[str, ...], int]


def add(a: Dim, b: Dim) -> Dim:
    """The sum."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return _text(_sum(_polynomial(a), _polynomial(b)))


def multiply(a: Dim, b: Dim) -> Dim:
    """The product."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return _text(_product(_polynomial(a), _polynomial(b)))


def _sum(a: _Polynomial, b: _Polynomial, sign: int = 1) -> _Polynomial:
    total = Counter(a)
    for term, number in b.items():
        total[term] += sign * number
    return total


def _product(a: _Polynomial, b: _Polynomial) -> _Polynomial:
    total: Counter[tuple[str, ...]] = Counter()
    for left, p in a.items():
        for right, q in b.items():
            total[tuple(sorted(left + right))] += p * q
    return total


def subtract(a: Dim, b: Dim) -> Dim:
    """The difference."""
    return add(a, multiply(b, -1))


def divide(a: Dim, b: Dim) -> Dim:
    """The quotient, rounded down; sizes in a denominator are not zero."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    below = _polynomial(b)
    if len(below) == 1:
        ((factors, number),) = below.items()
        whole: _Polynomial = {}
        rest: _Polynomial = {}
        for term, count in _polynomial(a).items():
            left = _without(term, factors)
            if left is not None and count % number == 0:
                whole[left] = count // number
            else:
                rest[term] = count
        if not rest:
            return _text(whole)
        if not factors:
            return add(_text(whole), _quotient(_text(rest), number))
    return _quotient(a, b)


def _quotient(a: Dim, b: Dim) -> Dim:
    return a // b if isinstance(a, int) and isinstance(b, int) else _unparsed(f"({a}) // ({b})")


def round_up(a: Dim, b: int) -> Dim:
    """The quotient, rounded up."""
    return divide(add(a, b - 1), b)


def product(sizes: Iterable[Dim]) -> Dim:
    """The product of all."""
    result: Dim = 1
    for size in sizes:
        result = multiply(result, size)
    return result


def _without(term: tuple[str, ...], factors: tuple[str, ...]) -> tuple[str, ...] | None:
    left = list(term)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def canonical(size: Dim) -> Dim:
    """A size as this module writes it."""
    return size if isinstance(size, int) else _text(_polynomial(size))


def _polynomial(size: Dim) -> _Polynomial:
    return ({(): size} if size else {}) if isinstance(size, int) else _parsed(size)


@cache
def _parsed(text: str) -> _Polynomial:
    return _read(ast.parse(text, mode="eval").body)


def _read(tree: ast.expr) -> _Polynomial:
    match tree:
        case ast.Constant(value=int(number)):
            return {(): number} if number else {}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {term: -number for term, number in _read(operand).items()}
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(_read(left), _read(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _sum(_read(left), _read(right), -1)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(_read(left), _read(right))
    return {(ast.unparse(tree),): 1}


def _text(polynomial: _Polynomial) -> Dim:
    terms = {term: number for term, number in polynomial.items() if number}
    if all(not term for term in terms):
        return terms.get((), 0)
    parts = []
    for term, number in sorted(terms.items(), key=lambda item: (not item[0], item[0])):
        factors = [atom if atom.isidentifier() else f"({atom})" for atom in term]
        text = " * ".join([*([str(abs(number))] if abs(number) != 1 or not term else []), *factors])
        parts.append(("- " if number < 0 else "+ ") + text)
    joined = " ".join(parts)
    return _unparsed(joined.removeprefix("+ "))


def _unparsed(text: str) -> str:
    return ast.unparse(ast.parse(text, mode="eval"))
