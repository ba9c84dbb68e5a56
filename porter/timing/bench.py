"""What a benchmark found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from porter.timing.statistics import Ratio


@dataclass
class SideTimes:
    """One side's times, in seconds per call."""

    name: str
    first_call: float
    """The first call, which traces and compiles; part of no other number here."""
    calls_per_block: int
    warmup_blocks: int
    steady: bool
    """False when the times had not settled within the time allowed."""
    settings: dict[str, Any] = field(default_factory=dict)
    wall: list[float] = field(default_factory=list)
    """One per block."""
    cpu: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return float(np.median(self.wall))

    @property
    def median_cpu(self) -> float:
        return float(np.median(self.cpu))

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.wall, share))

    def line(self) -> str:
        text = (
            f"{self.name}: median {seconds(self.median)} "
            f"(p10 {seconds(self.quantile(0.1))}, p90 {seconds(self.quantile(0.9))}), "
            f"cpu {seconds(self.median_cpu)}, first call {seconds(self.first_call)}"
        )
        return text if self.steady else f"{text}; not steady after {self.warmup_blocks} warm-up blocks"

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "median": self.median,
            "median_cpu": self.median_cpu,
            "p10": self.quantile(0.1),
            "p90": self.quantile(0.9),
        }


@dataclass
class Bench:
    """Two sides, their ratio (b over a) and what that is worth."""

    a: SideTimes
    b: SideTimes
    wall: Ratio
    cpu: Ratio
    control: Ratio | None
    """`a` against itself, measured the same way."""
    verdict: str
    """Of b against a, by wall time: SAME, FASTER, SLOWER or AMBIGUOUS."""
    margin: float
    rounds: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        lines = [self.a.line(), self.b.line(), f"{self.b.name} / {self.a.name}: {self.wall} wall, {self.cpu} cpu"]
        if self.control is not None:
            lines.append(f"control, {self.a.name} against itself: {self.control} wall")
        meaning = {
            "SAME": f"the two are within {self.margin:.0%} of each other",
            "FASTER": f"{self.b.name} takes less time than {self.a.name}",
            "SLOWER": f"{self.b.name} takes more time than {self.a.name}",
            "AMBIGUOUS": "the measurement does not tell them apart; try more rounds or a quieter machine",
        }
        lines.append(f"{self.verdict}: {meaning[self.verdict]}")
        if self.settings:
            lines.append(", ".join(f"{key} {value}" for key, value in self.settings.items()))
        return lines

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary that `json.dumps` takes."""
        return {
            "a": self.a.to_json(),
            "b": self.b.to_json(),
            "wall": self.wall.to_json(),
            "cpu": self.cpu.to_json(),
            "control": self.control.to_json() if self.control else None,
            "verdict": self.verdict,
            "margin": self.margin,
            "rounds": self.rounds,
            "seed": self.seed,
            "settings": self.settings,
        }


def seconds(value: float) -> str:
    """A duration in the unit that a person would use."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
