"""A second floor for the precision leg: what rounding every operation of the source may do to its outputs.

Moving inputs and weights by one unit, as `floor` does, shows how a model amplifies an error; it does not show that a
sum of many terms may be rounded in many orders, each off by the square root of their number. A target that is further
off than the first floor allows is therefore judged by this one too, which is larger and costs as many runs again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from porter.equivalence.compare import Difference, OutputReference, Thresholds, compare_output
from porter.equivalence.references import DrawReference, Spread
from porter.runners.base import Array, SourceRunner

RUNS = 8


class OperationFloors:
    """The floors of one source, draw by draw, computed when they are asked for."""

    def __init__(self, source: SourceRunner, thresholds: Thresholds, seed: int = 0) -> None:
        self._source = source
        self._thresholds = replace(thresholds, precision=thresholds.operations)
        self._seed = seed
        self._known: dict[str, list[OutputReference | None]] = {}

    def judge(
        self, found: Difference, reference: DrawReference, index: int, output: Array, scale: float | None
    ) -> Difference:
        """What failed by the first floor, judged by this one; unchanged where the source cannot be rounded."""
        known = self._floors(reference)
        again = known[index] if known else None
        if again is None:
            return found
        judged = compare_output(found.output, found.draw, "precision", again, output, self._thresholds, scale)
        if not judged.passed:
            return replace(found, reason=f"{found.reason}; {judged.R:.2g} times what rounding every operation does")
        return replace(judged, reason=f"{found.R:.2g} times the floor, but within what rounding every operation does")

    def _floors(self, reference: DrawReference) -> list[OutputReference | None]:
        name = reference.draw.name
        if name not in self._known:
            self._known[name] = self._measure(reference)
        return self._known[name]

    def _measure(self, reference: DrawReference) -> list[OutputReference | None]:
        spreads = [Spread(o.exact, o.own) if o is not None else None for o in reference.outputs]
        rng = np.random.default_rng(self._seed)
        for _ in range(RUNS):
            variant = self._source.rounded(rng)
            if variant is None:
                return []
            outputs = variant.run(reference.draw.inputs, "float64")
            for spread, output in zip(spreads, outputs, strict=True):
                if spread is not None:
                    spread.add(output)
        return [s.reference() if s is not None and s.stable else None for s in spreads]
