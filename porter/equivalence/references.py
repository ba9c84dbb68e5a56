"""The source's runs: exact, in its own precision, and perturbed. Everything a target is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from porter.equivalence.compare import OutputReference, as_real
from porter.equivalence.draws import Draw, is_float
from porter.equivalence.floor import make_floor
from porter.equivalence.raised import describe_error
from porter.errors import InconclusiveError
from porter.runners.base import UNIT_ROUNDOFF, Array, SourceRunner, random_signs


class Spread:
    """What is known of one array of the source: exact, own, and the sum of its perturbed runs' squared shifts."""

    def __init__(self, exact: Array, own: Array) -> None:
        exact, own = as_real(exact), as_real(own)
        self.exact, self.own = exact, own
        self.stable = exact.shape == own.shape
        """False when rounding alone changes the shape."""
        self.runs = 0
        self._squares = np.zeros(exact.shape)
        self._moved = np.zeros(exact.shape, dtype=bool)
        self._known = np.ones(exact.shape, dtype=bool)
        if self.stable and self._floating:
            self._known = np.isfinite(exact) & np.isfinite(own)
        elif self.stable:
            self._moved = exact != own

    @property
    def _floating(self) -> bool:
        return self.exact.dtype.kind == "f"

    def add(self, other: Array) -> None:
        """Take in one perturbed run."""
        other = as_real(other)
        if other.shape != self.exact.shape:
            self.stable = False
            return
        self.runs += 1
        if not self._floating:
            self._moved |= other != self.exact
            return
        self._known &= np.isfinite(other)
        with np.errstate(invalid="ignore", over="ignore"):
            self._squares += np.where(self._known, (other - self.exact) ** 2, 0.0)

    def reference(self, unit: float = UNIT_ROUNDOFF) -> OutputReference:
        if not self._floating:
            return OutputReference(self.exact, self.own, None, self._moved)
        floor = make_floor(self.exact, self.own, self._squares, self.runs, self._known, unit)
        return OutputReference(self.exact, self.own, floor)


@dataclass
class DrawReference:
    """The source at one draw."""

    draw: Draw
    names: list[str]
    outputs: list[OutputReference | None]
    """None where rounding alone changes an output's shape."""


@dataclass
class References:
    """The source at all draws that it can run, and why it cannot at the others."""

    draws: list[DrawReference]
    dropped: dict[str, str]


def perturbed_inputs(inputs: Sequence[Array], rng: np.random.Generator, unit: float = UNIT_ROUNDOFF) -> list[Array]:
    """Floating inputs in float64, each value moved by one unit roundoff."""
    return [x.astype(np.float64) * (1 + unit * random_signs(rng, x.shape)) if is_float(x) else x for x in inputs]


def measure(source: SourceRunner, draws: Sequence[Draw], perturbations: int = 8, seed: int = 0) -> References:
    """Run the source at every draw.

    Raises:
        InconclusiveError: the source runs at no draw, has no float64 form, or answers the same inputs differently.
    """
    if reason := source.why_not("float64"):
        raise InconclusiveError(f"There is no reference to judge by: {reason}")
    kept: list[tuple[Draw, list[Spread], list[str]]] = []
    dropped: dict[str, str] = {}
    for asked in draws:
        runs = run_source(source, asked)
        if isinstance(runs, str):
            dropped[asked.name] = runs
        elif runs.draw.optional and any(not np.isfinite(y).all() for y in runs.exact):
            dropped[asked.name] = "not legal for this model: the source answers with NaN or infinity"
        else:
            spreads = [Spread(y, e) for y, e in zip(runs.exact, runs.own, strict=True)]
            kept.append((runs.draw, spreads, runs.names))
    if not kept:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in dropped.items())
        raise InconclusiveError(f"{source.name} runs at none of the {len(draws)} draws ({reasons}).")
    _check_deterministic(source, kept[0][0], kept[0][1])
    rng = np.random.default_rng(seed)
    # Perturbed models outside, draws inside: only one copy of the weights is alive at a time.
    for _ in range(perturbations):
        variant = source.perturbed(rng)
        for draw, spreads, _names in kept:
            shifted = variant.run(perturbed_inputs(draw.inputs, rng), "float64")
            for spread, output in zip(spreads, shifted, strict=True):
                spread.add(output)
    return References([_reference(*item) for item in kept], dropped)


@dataclass(frozen=True)
class SourceRuns:
    """The source at one draw, in both precisions."""

    draw: Draw
    own: list[Array]
    exact: list[Array]
    names: list[str]


def run_source(source: SourceRunner, draw: Draw) -> SourceRuns | str:
    """Run at the draw, or at its variant; where the source runs at neither, what it raised."""
    reason: str | None = None
    for variant in draw.variants():
        try:
            own, exact = source.run(variant.inputs, "float32"), source.run(variant.inputs, "float64")
        except Exception as error:
            # Whatever a model raises at inputs made up for it, it is the source's own answer.
            reason = reason or f"the source raises {describe_error(error)}"
            continue
        return SourceRuns(variant, own, exact, list(source.output_names))
    return reason or "there is nothing to run"


def _reference(draw: Draw, spreads: Sequence[Spread], names: Sequence[str]) -> DrawReference:
    return DrawReference(draw, list(names), [spread.reference() if spread.stable else None for spread in spreads])


def _check_deterministic(source: SourceRunner, draw: Draw, spreads: Sequence[Spread]) -> None:
    """A source that draws random numbers would count its own noise as floor, and pass anything."""
    for spread, again in zip(spreads, source.run(draw.inputs, "float64"), strict=True):
        same = spread.exact.shape == again.shape and np.allclose(
            spread.exact, again, rtol=1e-9, atol=1e-12, equal_nan=True
        )
        if not same:
            raise InconclusiveError(
                f"{source.name} answers the same inputs differently from run to run, in eval mode: it draws random "
                "numbers. Pass them in as inputs, or switch them off, and verify again."
            )
