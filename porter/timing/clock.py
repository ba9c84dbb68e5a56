"""The two clocks of a benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Wall time and the CPU time of this process, all its threads together.

    CPU time is steady on a machine that others use too; a framework whose threads spin while they wait pays for that.
    """

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time

    def overhead(self, readings: int = 200) -> float:
        """Seconds of wall time that one reading of both clocks takes."""
        start = self.wall()
        for _ in range(readings):
            self.cpu()
            self.wall()
        return (self.wall() - start) / readings
