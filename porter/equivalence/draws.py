"""Inputs to compare at: ordinary ones, extreme ones, and the values that an example never holds.

Floating inputs are drawn whole; integers stay in the range that the example shows (or that the caller gives), because
an index outside it is no test of the model; booleans keep the example's pattern, since a random mask is seldom legal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from porter.errors import InputError
from porter.runners.base import Array

Range = tuple[int, int] | None
"""Lowest and highest legal value of an integer input, both included."""


@dataclass(frozen=True)
class Draw:
    """One set of inputs."""

    name: str
    inputs: list[Array]
    seed: int | None = None
    optional: bool = False
    """Legal for some models only: dropped when the source answers with NaN or infinity, or raises."""
    integers: list[Array | None] | None = None
    """The example's integers, for a source that refuses the drawn ones (a range may differ from column to column)."""

    def variants(self) -> list[Draw]:
        """The draw, and then the same with the example's integers."""
        if self.integers is None:
            return [self]
        inputs = [x if known is None else known for x, known in zip(self.inputs, self.integers, strict=True)]
        return [self, Draw(f"{self.name}, integers as in the example", inputs, self.seed, self.optional)]

    @property
    def degenerate(self) -> bool:
        """Some floating input holds one value only.

        Sums then cancel exactly or not at all by the order of addition, so a float32 error says little: a variance
        of zero turns the last bit of a mean into 1/sqrt(epsilon) of it.
        """
        return any(x.size > 1 and np.all(x == x.flat[0]) for x in self.inputs if is_float(x))


def make_draws(
    examples: Sequence[Array], ranges: Sequence[Range] | None = None, seeds: Sequence[int] = (0, 1, 2)
) -> list[Draw]:
    """The example itself, one normal draw per seed, and the extremes that fit the inputs' types."""
    examples = [np.asarray(x) for x in examples]
    check_types(examples)
    limits = integer_ranges(examples, ranges)
    draws = [Draw("example", [x.astype(np.float32) if is_float(x) else x for x in examples])]
    draws += [_draw(f"normal {seed}", examples, limits, seed) for seed in seeds]
    first = seeds[0] if seeds else 0
    if any(is_float(x) for x in examples):
        draws += [
            _draw("large", examples, limits, first + 100, scale=1e3),
            _draw("small", examples, limits, first + 101, scale=1e-3),
            _draw("constant", examples, limits, first, constant=0.7),
            _draw("zeros", examples, limits, first, constant=0.0),
        ]
    if any(low < high for low, high in filter(None, limits)):
        draws.append(Draw("ends", _ends(_drawn(examples, limits, first), limits, first), first))
    return draws + _masks(examples, limits, first)


def normal_draw(examples: Sequence[Array], ranges: Sequence[Range] | None, seed: int, name: str) -> Draw:
    """An ordinary draw of the examples' shapes and types."""
    return _draw(name, examples, integer_ranges(examples, ranges), seed)


def check_types(examples: Sequence[Array]) -> None:
    """Raise InputError for an input that cannot be drawn."""
    for index, x in enumerate(examples):
        if not (is_float(x) or np.issubdtype(x.dtype, np.integer) or x.dtype == np.bool_):
            raise InputError(
                f"Input {index} is {x.dtype}: only floating, integer and boolean inputs can be drawn. Wrap the model "
                "so that it takes those."
            )


def integer_ranges(examples: Sequence[Array], ranges: Sequence[Range] | None) -> list[Range]:
    """Per input the range of its integers: the given one, else from 0 (or the least seen) to the largest seen."""
    given = ranges if ranges is not None else [None] * len(examples)
    if len(given) != len(examples):
        raise InputError(
            f"{len(examples)} inputs but {len(given)} ranges: give one for each (None: as in the example)."
        )
    return [
        (limit or (min(0, int(x.min(initial=0))), int(x.max(initial=0))))
        if np.issubdtype(x.dtype, np.integer)
        else None
        for x, limit in zip(examples, given, strict=True)
    ]


def is_float(x: Array) -> bool:
    return bool(np.issubdtype(x.dtype, np.floating))


def _draw(
    name: str,
    examples: Sequence[Array],
    limits: Sequence[Range],
    seed: int,
    scale: float = 1.0,
    constant: float | None = None,
) -> Draw:
    integers = [x if limit is not None else None for x, limit in zip(examples, limits, strict=True)]
    known = integers if any(x is not None for x in integers) else None
    return Draw(name, _drawn(examples, limits, seed, scale, constant), seed, integers=known)


def _drawn(
    examples: Sequence[Array], limits: Sequence[Range], seed: int, scale: float = 1.0, constant: float | None = None
) -> list[Array]:
    rng = np.random.default_rng(seed)
    drawn: list[Array] = []
    for x, limit in zip(examples, limits, strict=True):
        if is_float(x):
            values = rng.standard_normal(x.shape) * scale if constant is None else np.full(x.shape, constant)
            drawn.append(np.asarray(values, dtype=np.float32))
        elif limit is not None:
            drawn.append(np.asarray(rng.integers(limit[0], limit[1] + 1, size=x.shape)).astype(x.dtype))
        else:
            drawn.append(x)
    return drawn


def _ends(inputs: list[Array], limits: Sequence[Range], seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [
        x if limit is None else np.where(rng.integers(0, 2, size=x.shape) == 0, *limit).astype(x.dtype)
        for x, limit in zip(inputs, limits, strict=True)
    ]


def _masks(examples: Sequence[Array], limits: Sequence[Range], seed: int) -> list[Draw]:
    if not any(x.dtype == np.bool_ for x in examples):
        return []
    inputs = _drawn(examples, limits, seed)
    full = [np.ones_like(x) if x.dtype == np.bool_ else x for x in inputs]
    holed = [_first_row_false(x) if x.dtype == np.bool_ else x for x in inputs]
    return [Draw("mask all true", full, seed, optional=True), Draw("mask row false", holed, seed, optional=True)]


def _first_row_false(mask: Array) -> Array:
    mask = mask.copy()
    mask[(0,) * max(mask.ndim - 1, 0)] = False
    return mask
