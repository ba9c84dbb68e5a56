"""Whether a reshape can be done in another order of axes: it can when it merges and splits whole groups of them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

Dim = int | str | object


def _factors(size: Dim) -> tuple[int, Counter[str]]:
    """A size as a number times symbolic factors."""
    if isinstance(size, int):
        return size, Counter()
    text = size if isinstance(size, str) else str(getattr(size, "value", size))
    number, symbols = 1, Counter[str]()
    stack: list[ast.expr] = [ast.parse(text, mode="eval").body]
    while stack:
        tree = stack.pop()
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
            stack += [tree.left, tree.right]
        elif isinstance(tree, ast.Constant) and isinstance(tree.value, int):
            number *= tree.value
        else:
            symbols[ast.unparse(tree)] += 1
    return number, symbols


def _groups(before: Sequence[Dim], after: Sequence[Dim]) -> list[tuple[list[int], list[int]]] | None:
    """Smallest runs of axes with equal products on both sides; None when they cannot be told apart."""
    ins = [axis for axis, size in enumerate(before) if size != 1]
    outs = [axis for axis, size in enumerate(after) if size != 1]
    groups: list[tuple[list[int], list[int]]] = []
    i = o = 0
    while i < len(ins) and o < len(outs):
        left, right = [ins[i]], [outs[o]]
        i, o = i + 1, o + 1
        a, b = _factors(before[left[0]]), _factors(after[right[0]])
        while a != b:
            grow_left = a[0] < b[0] or (a[0] == b[0] and sum(a[1].values()) < sum(b[1].values()))
            if not grow_left and sum(a[1].values()) < sum(b[1].values()) and a[0] <= b[0]:
                grow_left = True
            if b[1] - a[1] and not a[1] - b[1]:
                grow_left = True
            elif a[1] - b[1] and not b[1] - a[1]:
                grow_left = False
            if grow_left and i < len(ins):
                left.append(ins[i])
                factor = _factors(before[ins[i]])
                a, i = (a[0] * factor[0], a[1] + factor[1]), i + 1
            elif not grow_left and o < len(outs):
                right.append(outs[o])
                factor = _factors(after[outs[o]])
                b, o = (b[0] * factor[0], b[1] + factor[1]), o + 1
            else:
                return None
        groups.append((left, right))
    return groups if i == len(ins) and o == len(outs) else None


def regrouped(before: Sequence[Dim], after: Sequence[Dim], order: tuple[int, ...]) -> tuple[int, ...] | None:
    """The order of the result when `order` can be kept through the reshape, else None.

    Kept when each group of axes lies together, in its own order, where the value is stored.
    """
    groups = _groups(before, after)
    if groups is None:
        return None
    stored = [axis for axis in order if before[axis] != 1]
    result: list[int] = []
    position = 0
    while position < len(stored):
        left, right = next(group for group in groups if stored[position] in group[0])
        if stored[position : position + len(left)] != left:
            return None
        result += right
        position += len(left)
    for axis in range(len(after)):
        if axis not in result:  # axes of size one stand before the axis that follows them
            follower = next((i for i, other in enumerate(result) if other == axis + 1), None)
            result.insert(len(result) if follower is None else follower, axis)
    return tuple(result)
