"""What a row of the operator tables is, and the inputs that rows are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One use of one TensorFlow operator: `function(*inputs)` must be traced to `op`, and translated right.

    With `also`, the sizes that differ vary, and these inputs, which the tracer never saw, are compared too. `double` is
    false where TensorFlow has the operator in float32 alone.
    """

    op: str
    function: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    also: tuple[np.ndarray, ...] | None = field(default=None)
    double: bool = True


def row(
    op: str, function: Callable[..., Any], *inputs: Any, also: tuple[Any, ...] | None = None, double: bool = True
) -> Row:
    """A row."""
    return Row(
        op, function, tuple(map(np.asarray, inputs)), None if also is None else tuple(map(np.asarray, also)), double
    )


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal float64 numbers, both signs."""
    return np.random.default_rng(seed + 7).standard_normal(shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Float64 numbers from 0.1 to 0.9."""
    return 0.1 + 0.8 * np.random.default_rng(seed + 7).random(shape)


def ints(*shape: int, low: int = -5, high: int = 6, seed: int = 0, dtype: str = "int32") -> np.ndarray:
    """Whole numbers from low up to high, that excluded."""
    return np.random.default_rng(seed + 7).integers(low, high, shape).astype(dtype)


def flags(*shape: int, seed: int = 0) -> np.ndarray:
    """Booleans."""
    return ints(*shape, low=0, high=2, seed=seed) == 1
