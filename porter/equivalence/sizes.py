"""Inputs at sizes that nobody traced: a port that baked a size in is right at the example and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from porter.errors import InputError
from porter.runners.base import Array

_LARGE = 64
Shape = Sequence[int | str]
"""A size is an int, or the name of a symbol; the same symbol is the same size everywhere."""


@dataclass(frozen=True)
class SizeSet:
    """A set of sizes to try, the first of them that the source itself can run."""

    alternatives: list[dict[str, int]]


def example_sizes(examples: Sequence[Array], shapes: Sequence[Shape]) -> dict[str, int]:
    """Every symbol's size in the examples.

    Raises:
        InputError: shapes and examples do not agree.
    """
    if len(shapes) != len(examples):
        raise InputError(f"{len(examples)} inputs but {len(shapes)} symbolic shapes: give one for each.")
    sizes: dict[str, int] = {}
    for index, (x, shape) in enumerate(zip(examples, shapes, strict=True)):
        if x.ndim != len(shape):
            raise InputError(f"Input {index} has shape {x.shape}, its symbolic shape {tuple(shape)} has another rank.")
        for size, symbol in zip(x.shape, shape, strict=True):
            known = sizes.setdefault(symbol, size) if isinstance(symbol, str) else symbol
            if known != size:
                raise InputError(
                    f"Input {index} has shape {x.shape}, which is not {tuple(shape)} with {symbol}={known}."
                )
    return sizes


def other_sizes(examples: Sequence[Array], shapes: Sequence[Shape]) -> list[SizeSet]:
    """Two sets: every size changed in parity, and batch 1 with all else doubled (large sizes halved, which costs less).

    Empty when no size is symbolic.
    """
    sizes = example_sizes(examples, shapes)
    if not sizes:
        return []
    batch = next((shape[0] for shape in shapes if len(shape) and isinstance(shape[0], str)), None)

    def with_batch(count: int, others: Mapping[str, int]) -> dict[str, int]:
        return {symbol: count if symbol == batch else others[symbol] for symbol in sizes}

    more = sizes[batch] + 1 if batch else 0
    one = 1 if batch and sizes[batch] != 1 else 3
    plus, double, triple, other = (
        {s: f(n) for s, n in sizes.items()}
        for f in (lambda n: n + 1, lambda n: 2 * n, lambda n: 3 * n, lambda n: n // 2 if n > _LARGE else 2 * n)
    )
    # Strides and windows often need multiples of the traced size, so multiples stand in where the source refuses.
    return [
        SizeSet([with_batch(more, plus), with_batch(more, triple), with_batch(more, sizes)]),
        SizeSet([with_batch(one, other), with_batch(one, double), with_batch(one, sizes), double]),
    ]


def resized(examples: Sequence[Array], shapes: Sequence[Shape], sizes: Mapping[str, int]) -> list[Array]:
    """The examples' values repeated or cut to `sizes`."""
    return [
        np.resize(x, [sizes[s] if isinstance(s, str) else s for s in shape]).astype(x.dtype)
        for x, shape in zip(examples, shapes, strict=True)
    ]


def size_name(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
