"""One output of the target against the source's: type, shape, NaN and infinity, then values against the floor.

Two legs. *Semantics*: both in float64, they may differ by no more than storing the weights in float32 can explain, or
the two are different functions. *Precision*: the target in float32 may be as far from that reference as honest
rounding goes, a small multiple of the floor.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from porter.equivalence.floor import Floor
from porter.runners.base import Array

Leg = Literal["semantics", "precision"]


@dataclass(frozen=True)
class Thresholds:
    """Multiples of the floor that are still the same model.

    Measured on right and on wrong ports of small models: right ones stay below 2.4 (whole output) and 18 (one element)
    in float32; the mildest planted error reaches 6 and 70. Of what rounding every operation does (`operations`, asked
    only when these are exceeded) right ones reach 2.2. In float64 right ports stay below 0.1 when their weights are the
    source's, and below 0.6 when they are derived from them and rounded once more (the sum of two biases of an LSTM),
    against 9 for the mildest error.
    """

    semantics: float = 2.0
    semantics_element: float = 32.0
    precision: float = 4.0
    precision_element: float = 32.0
    operations: float = 3.0

    def limits(self, leg: Leg, elements: int) -> tuple[float, float]:
        """The limits for the whole output and for one element of an output of that many.

        In float32 the error of an element over a spread estimated from nine runs is Student-distributed with nine
        degrees of freedom, whose largest of n grows like n^(1/9): beyond a hundred thousand elements the limit follows.
        """
        if leg == "semantics":
            return self.semantics, self.semantics_element
        return self.precision, self.precision_element * max(1.0, elements / 1e5) ** (1 / 9)


@dataclass(frozen=True)
class OutputReference:
    """What the source says about one output at one draw."""

    exact: Array
    """In float64 (integers and booleans as they are)."""
    own: Array
    """In float32."""
    floor: Floor | None
    """None for integers and booleans."""
    undecided: Array | None = None
    """Integers: where rounding alone changes the source's answer, as for ties of argmax."""


@dataclass(frozen=True)
class Difference:
    """One output, one draw, one leg."""

    output: str
    draw: str
    leg: Leg
    passed: bool
    R: float = 0.0
    """Error over floor, whole output."""
    Rc: float = 0.0
    """Error over floor, worst element."""
    err: float = 0.0
    """Root mean square of the error."""
    floor: float = 0.0
    """Root mean square of the floor."""
    worst: tuple[int, ...] = ()
    compared: int = 0
    """How many elements were compared by value."""
    score: float = 0.0
    """The larger of R and Rc, each over its limit; above 1 is a failure."""
    reason: str | None = None
    """Why it failed, or what was left out."""
    lenient: bool = False
    """Judged against a widened floor, because the draw is degenerate."""

    def line(self) -> str:
        if not self.passed and not self.compared:
            return f"{self.output}: {self.leg}: {self.reason} (draw {self.draw})"
        where = ",".join(map(str, self.worst))
        text = (
            f"{self.output}: {self.leg} R={self.R:.2g} "
            f"(floor {self.floor:.1e}, err {self.err:.1e}, worst [{where}], draw {self.draw})"
        )
        return text if self.reason is None else f"{text}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return {k: _finite(v) for k, v in asdict(self).items()}


def as_real(values: Array) -> Array:
    """Complex numbers as pairs on a last axis of two; anything else unchanged."""
    return np.stack([values.real, values.imag], axis=-1) if np.iscomplexobj(values) else values


def compare_output(
    output: str,
    draw: str,
    leg: Leg,
    reference: OutputReference,
    target: Array,
    thresholds: Thresholds,
    degenerate_scale: float | None = None,
) -> Difference:
    """Judge one output.

    Args:
        output: its name.
        draw: the draw's name.
        leg: `semantics` for a target run in float64, `precision` for one in float32.
        reference: what the source says.
        target: the target's output in the source's axis order.
        thresholds: the limits.
        degenerate_scale: for a degenerate draw, the least floor per element in the precision leg (see `forward`).
    """
    expected, target = reference.exact if leg == "semantics" else reference.own, as_real(target)
    structural = _type_difference(expected, target, leg) or _shape_difference(expected, target)
    if structural:
        return Difference(output, draw, leg, passed=False, reason=structural, score=np.inf)
    if reference.floor is None:
        return _compare_exact(output, draw, leg, reference, target)
    pattern = _pattern_difference(expected, target)
    if pattern:
        return Difference(output, draw, leg, passed=False, reason=pattern, score=np.inf)

    floor = reference.floor
    lenient = leg == "precision" and degenerate_scale is not None
    if lenient and degenerate_scale is not None:
        floor = floor.widened(degenerate_scale)
    known = floor.known & np.isfinite(target)
    count = int(known.sum())
    if not count:
        return Difference(output, draw, leg, passed=True, reason="no finite element to compare", lenient=lenient)
    error = np.where(known, np.abs(np.where(known, target.astype(np.float64), 0.0) - reference.exact), 0.0)
    ratios = error / (floor.semantics_elements() if leg == "semantics" else floor.precision_elements())
    total, element = float(np.linalg.norm(error)) / floor.norm, float(ratios.max())
    whole_limit, element_limit = thresholds.limits(leg, count)
    score = max(total / whole_limit, element / element_limit)
    return Difference(
        output,
        draw,
        leg,
        passed=bool(score <= 1),
        R=total,
        Rc=element,
        err=float(np.linalg.norm(error)) / np.sqrt(count),
        floor=floor.rms,
        worst=tuple(int(i) for i in np.unravel_index(int(ratios.argmax()), ratios.shape)),
        compared=count,
        score=score,
        reason=None if score <= 1 else _why(total, whole_limit, element, element_limit),
        lenient=lenient,
    )


def _why(total: float, whole_limit: float, element: float, element_limit: float) -> str:
    if total > whole_limit:
        return f"{total:.3g} times the floor where {whole_limit:.2g} is the limit"
    return f"one element {element:.3g} times its floor where {element_limit:.3g} is the limit"


def _type_difference(expected: Array, target: Array, leg: Leg) -> str | None:
    """Kinds must agree; so must the width of floats in the precision leg. An integer's width is not meaning."""
    kinds = {"i": "integer", "u": "integer", "b": "boolean", "f": "floating", "V": "floating"}
    ours, theirs = kinds.get(target.dtype.kind), kinds.get(expected.dtype.kind)
    if ours != theirs or (leg == "precision" and theirs == "floating" and target.dtype != expected.dtype):
        return f"type {target.dtype} where the source gives {expected.dtype}"
    return None


def _shape_difference(expected: Array, target: Array) -> str | None:
    if expected.shape == target.shape:
        return None
    return f"shape {target.shape} where the source gives {expected.shape}"


def _pattern_difference(expected: Array, target: Array) -> str | None:
    tests = (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf))
    for name, test in tests:
        mismatched = test(expected) != test(target)
        if mismatched.any():
            first = [int(i) for i in np.argwhere(mismatched)[0]]
            ours, theirs = int(test(target).sum()), int(test(expected).sum())
            return f"{name} at {ours} elements where the source has {theirs}, first {first}"
    return None


def _compare_exact(output: str, draw: str, leg: Leg, reference: OutputReference, target: Array) -> Difference:
    """Integers and booleans are equal or not, except where rounding alone changes the source's own answer."""
    undecided = reference.undecided if reference.undecided is not None else np.zeros(target.shape, dtype=bool)
    wrong = (target != reference.exact) & ~undecided
    compared, left_out, count = int((~undecided).sum()), int(undecided.sum()), int(wrong.sum())
    worst = tuple(int(i) for i in np.argwhere(wrong)[0]) if count else ()
    reason = f"{left_out} elements left out: rounding alone changes them in the source" if left_out else None
    if count:
        here, there = target[worst], reference.exact[worst]
        reason = f"{count} of {compared} values differ, first {here} where the source gives {there}"
    return Difference(
        output,
        draw,
        leg,
        passed=not count,
        R=float(count),
        Rc=float(count),
        err=float(count),
        worst=worst,
        compared=compared,
        score=np.inf if count else 0.0,
        reason=reason,
    )


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
