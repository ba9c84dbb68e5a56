"""Axis permutations between the source and a target: target axis i is source axis perm[i]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from porter.errors import InputError
from porter.runners.base import Array, Permutation


def to_target(arrays: Sequence[Array], permutations: Sequence[Permutation] | None, what: str) -> list[Array]:
    """Source order to target order."""
    return [
        x if perm is None else np.transpose(x, perm)
        for x, perm in zip(arrays, _matched(arrays, permutations, what), strict=True)
    ]


def to_source(arrays: Sequence[Array], permutations: Sequence[Permutation] | None, what: str) -> list[Array]:
    """Target order to source order."""
    return [
        x if perm is None or x.ndim != len(perm) else np.transpose(x, np.argsort(perm))
        for x, perm in zip(arrays, _matched(arrays, permutations, what), strict=True)
    ]


def _matched(arrays: Sequence[Array], permutations: Sequence[Permutation] | None, what: str) -> Sequence[Permutation]:
    if permutations is None:
        return [None] * len(arrays)
    if len(permutations) != len(arrays):
        raise InputError(
            f"{len(arrays)} {what}s but {len(permutations)} {what} permutations: give one for each (None: unchanged)."
        )
    return permutations
