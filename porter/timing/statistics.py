"""Statistics of paired times. Numpy only; nothing here reads a clock.

Two callables timed one after the other differ by whatever the machine did in between: in a control, where both were
the same callable, comparing all of A with all of B found a "difference" of over 3 % in most trials. Timed in turns, and
compared pair by pair, the same callables agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Order = tuple[str, str, str, str]


@dataclass(frozen=True)
class Ratio:
    """How many times longer b takes than a, with a 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The interval's ends as a ratio, less one: 0.1 says that they are 10 % apart."""
        return self.high / self.low - 1

    def contains(self, ratio: float) -> bool:
        return self.low <= ratio <= self.high

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def orders(rounds: int, rng: np.random.Generator) -> list[Order]:
    """ABBA or BAAB at random, one per round: a drift inside a round falls on both sides alike."""
    return [("a", "b", "b", "a") if flip else ("b", "a", "a", "b") for flip in rng.integers(0, 2, size=rounds)]


def bootstrap_ratio(a: Sequence[float], b: Sequence[float], rng: np.random.Generator, resamples: int = 4000) -> Ratio:
    """The median of the pairs' b/a, and the interval in which it lies when the pairs are drawn again.

    Args:
        a: one positive time per round.
        b: the same rounds.
        rng: draws the pairs.
        resamples: how often.
    """
    logs = np.log(np.asarray(b, dtype=np.float64)) - np.log(np.asarray(a, dtype=np.float64))
    picks = rng.integers(0, len(logs), size=(resamples, len(logs)))
    low, high = np.quantile(np.median(logs[picks], axis=1), [0.025, 0.975])
    return Ratio(float(np.exp(np.median(logs))), float(np.exp(low)), float(np.exp(high)))


def is_steady(times: Sequence[float], window: int = 5, tolerance: float = 0.05) -> bool:
    """The last `window` times are no faster than the `window` before them, to within `tolerance` of the median."""
    if len(times) < 2 * window:
        return False
    before, now = np.median(times[-2 * window : -window]), np.median(times[-window:])
    return bool(abs(before - now) <= tolerance * now)


def verdict(ratio: Ratio, control: Ratio | None, margin: float) -> str:
    """SAME, FASTER or SLOWER (b against a), or AMBIGUOUS.

    SAME needs the whole interval inside the margin: "no difference was found" is not "there is none". A control that
    finds a difference between a callable and itself, or an interval wider than the effect, takes the verdict away.
    """
    if control is not None and not control.contains(1.0):
        return "AMBIGUOUS"
    if ratio.low >= 1 / (1 + margin) and ratio.high <= 1 + margin:
        return "SAME"
    effect = abs(np.log(ratio.value))
    if control is not None and np.log1p(control.width) > 2 * effect:
        return "AMBIGUOUS"
    if ratio.high < 1:
        return "FASTER"
    return "SLOWER" if ratio.low > 1 else "AMBIGUOUS"
