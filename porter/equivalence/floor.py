"""How far two honest runs of the same model may be apart: the floor below which no difference can be seen.

For one output y* of the source in float64, with u the unit roundoff of the precision that is judged:

    e_s   the source's own error: its output in that precision, less y*
    d_r   the shift of y* when every input and weight is moved by one unit u, signs at random, r = 1..R

    F     = max(|e_s|, rms |d_r|, u |y*| / sqrt(3))                            over the whole output
    s_j^2 = (e_s,j^2 + sum d_r,j^2) / (R + 1) + (u y*_j)^2 / 3                 for one element

e_s alone is no floor, because it is sometimes zero by luck; d_r is what any backward-stable implementation may do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from porter.runners.base import UNIT_ROUNDOFF, Array

SMALLEST = 2.0**-126
"""Below the smallest normal float32 a framework may flush to zero."""

SEMANTICS_SHARE = 2.0**-20
PRECISION_SHARE = 1 / 10
"""The least floor of an element, as a share of the output's own floor per element."""


@dataclass(frozen=True)
class Floor:
    """The floor of one output at one draw; arrays in the output's shape.

    Elements outside `known` (NaN or infinite in some run) have no floor and are compared by pattern only.
    """

    norm: float
    elements: Array
    known: Array
    magnitude: float
    """The norm of y* over the known elements."""
    condition: float
    """rms |d_r| / (u |y*|): how much the model amplifies a rounding of its inputs and weights."""
    unexplained: float
    """Per element, the part of the source's own error that perturbing inputs and weights does not show."""

    @property
    def rms(self) -> float:
        """The floor per element."""
        return self.norm / np.sqrt(max(int(self.known.sum()), 1))

    @property
    def relative(self) -> float:
        return self.norm / self.magnitude if self.magnitude else 0.0

    def semantics_elements(self) -> Array:
        """What an element may differ by, over and over, when both sides run in float64.

        Where rounding moved nothing in any run s_j is zero, yet float64 has roundings of its own.
        """
        return np.sqrt(self.elements**2 + (SEMANTICS_SHARE * self.rms) ** 2)

    def precision_elements(self) -> Array:
        """What an element may differ by in the precision that is judged.

        s_j rests on few runs. A unit that ReLU held at zero in all of them may yet come alive; and roundings on the
        way that no perturbed input shows have been seen once only, in the source's own run, where they may have been
        zero by luck. Both are estimated over the whole output instead.
        """
        return np.sqrt(self.elements**2 + (PRECISION_SHARE * self.rms) ** 2 + self.unexplained**2)

    def widened(self, scale: float) -> Floor:
        """At least `scale` in every element."""
        norm = max(self.norm, scale * np.sqrt(int(self.known.sum())))
        return replace(self, norm=norm, elements=np.maximum(self.elements, scale))


def make_floor(
    reference: Array, own: Array, spread_squares: Array, runs: int, known: Array, unit: float = UNIT_ROUNDOFF
) -> Floor:
    """The floor of one output.

    Args:
        reference: y*, the source in float64.
        own: the source in the precision that is judged.
        spread_squares: the sum of d_r^2 over `runs` perturbed runs.
        runs: how many there were.
        known: where all of these are finite.
        unit: the unit roundoff of the precision that is judged.
    """
    y = np.where(known, reference, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        error_squares = np.where(known, (own.astype(np.float64) - reference) ** 2, 0.0)
    spread = np.where(known, spread_squares, 0.0)
    magnitude = float(np.linalg.norm(y))
    moved = float(np.sqrt(spread.sum() / runs)) if runs else 0.0
    count = max(int(known.sum()), 1)
    own_error = float(np.sqrt(error_squares.sum()))
    return Floor(
        norm=max(own_error, moved, unit * magnitude / np.sqrt(3), SMALLEST * np.sqrt(count)),
        elements=np.sqrt((error_squares + spread) / (runs + 1) + (unit * y) ** 2 / 3) + SMALLEST,
        known=known,
        magnitude=magnitude,
        condition=moved / (unit * magnitude) if magnitude else 0.0,
        unexplained=float(np.sqrt(max(own_error**2 - moved**2, 0.0) / count)),
    )
