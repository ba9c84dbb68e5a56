"""The forward verdict: two models, many draws, two legs.

On a degenerate draw (a floating input that holds one value) the precision leg looks for gross errors only. Such inputs
give normalisations a variance of zero: the order in which a sum is taken then decides the last bits, 1/sqrt(epsilon)
times the size of the values multiplies them, and the source's own error is often zero by luck. Right ports were
measured at 25 times the floor and more. There the floor is at least 2^16 units of the size of an ordinary output, so
that only an error of about one per cent of it fails. The semantics leg is not affected, and is judged at these draws as
at any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from porter.equivalence.compare import Difference, Leg, Thresholds, compare_output
from porter.equivalence.draws import Draw, Range, make_draws, normal_draw
from porter.equivalence.modules import Culprit, ModuleEntry, compare_modules, first_differing_module
from porter.equivalence.raised import describe_error
from porter.equivalence.references import DrawReference, References, measure, run_source
from porter.equivalence.report import Report
from porter.equivalence.rounding import OperationFloors
from porter.equivalence.sizes import Shape, other_sizes, resized, size_name
from porter.errors import InconclusiveError
from porter.runners.base import UNIT_ROUNDOFF, Array, Precision, Runner, SourceRunner

DEGENERATE_UNITS = 2.0**16
LARGE_FLOOR = 1e-3
LEAK = 1e-3


def verify_forward(
    source: SourceRunner,
    target: Runner,
    examples: Sequence[Array],
    shapes: Sequence[Shape] | None = None,
    *,
    ranges: Sequence[Range] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    perturbations: int = 8,
    thresholds: Thresholds | None = None,
    modules: Sequence[ModuleEntry] | None = None,
    draws: Sequence[Draw] | None = None,
) -> Report:
    """Compare the outputs of two models.

    Args:
        source: the model that is right by definition.
        target: the model to judge; its runner gives arrays in the source's axis order.
        examples: flat inputs that the source accepts.
        shapes: per input its symbolic shape, ints and names; with it, sizes that were never traced are tried too.
        ranges: per integer input its legal range, ends included (default: as seen in the example).
        seeds: one ordinary draw each.
        perturbations: how many perturbed runs make up the floor.
        thresholds: the limits.
        modules: what the port knows of its modules, to name the first that differs.
        draws: these inputs instead of the standard ones (sizes are then left as they are).

    Raises:
        InconclusiveError: nothing could be compared, or the source gives no reference.
        InputError: an input cannot be drawn, or shapes or ranges do not fit.
    """
    thresholds = thresholds or Thresholds()
    dropped: dict[str, str] = {}
    chosen = list(draws) if draws is not None else make_draws(examples, ranges, seeds)
    if draws is None and shapes is not None:
        chosen += _sized_draws(source, [np.asarray(x) for x in examples], shapes, ranges, dropped)
    references = measure(source, chosen, perturbations)
    dropped.update(references.dropped)
    semantics_off = target.why_not("float64")
    notes = [f"semantics not judged apart: {semantics_off}"] if semantics_off else []

    differences: list[Difference] = []
    floors = OperationFloors(source, thresholds)
    for reference in references.draws:
        if semantics_off is None:
            found = _run_leg(reference, target, "semantics", thresholds, None, floors)
            if isinstance(found, str):
                semantics_off = found
                notes.append(f"semantics not judged apart: the target does not run in float64 ({found})")
            else:
                differences += found
        scales = _ordinary_scales(references) if reference.draw.degenerate else None
        found = _run_leg(reference, target, "precision", thresholds, scales, floors)
        differences += [_refused(reference, found)] if isinstance(found, str) else found
    if not any(d.compared or not d.passed for d in differences):
        raise InconclusiveError(
            f"No output of {target.name} was compared with {source.name} (every one was empty, not finite or "
            "undecided), so nothing is proved. Give example inputs at which the source's outputs are finite."
        )
    report = Report(
        source=source.name,
        target=target.name,
        level="forward",
        differences=differences,
        dropped=dropped,
        notes=notes + _notes(references, differences),
        thresholds=thresholds,
        seeds=list(seeds),
        perturbations=perturbations,
        versions={**source.versions(), **target.versions(), "numpy": np.__version__},
        floors=_floors(references),
    )
    if not report.passed:
        report.culprit = _culprit(source, target, report, references, thresholds, modules, perturbations)
    return report


def _sized_draws(
    source: SourceRunner,
    examples: Sequence[Array],
    shapes: Sequence[Shape],
    ranges: Sequence[Range] | None,
    dropped: dict[str, str],
) -> list[Draw]:
    """One ordinary draw per set of other sizes, at the first sizes that the source itself can run."""
    draws: list[Draw] = []
    for number, sizes_set in enumerate(other_sizes(examples, shapes)):
        for sizes in sizes_set.alternatives:
            name = f"normal at {size_name(sizes)}"
            if name in dropped:
                continue
            runs = run_source(source, normal_draw(resized(examples, shapes, sizes), ranges, 200 + number, name))
            if isinstance(runs, str):
                dropped[name] = runs
                continue
            draws.append(runs.draw)
            break
    return draws


def _run_leg(
    reference: DrawReference,
    target: Runner,
    leg: Leg,
    thresholds: Thresholds,
    scales: list[float] | None,
    floors: OperationFloors,
) -> list[Difference] | str:
    """The draw's differences, or what the target raised."""
    precision: Precision = "float64" if leg == "semantics" else "float32"
    try:
        outputs = target.run(reference.draw.inputs, precision)
    except Exception as error:
        # The target is the accused: whatever it raises is part of the verdict.
        return describe_error(error)
    name = reference.draw.name
    if len(outputs) != len(reference.outputs):
        reason = f"{len(outputs)} outputs where the source gives {len(reference.outputs)}"
        return [Difference("outputs", name, leg, passed=False, reason=reason, score=np.inf)]
    found: list[Difference] = []
    for index, (known, output) in enumerate(zip(reference.outputs, outputs, strict=True)):
        label = reference.names[index]
        if known is None:
            found.append(
                Difference(label, name, leg, passed=True, reason="its shape depends on rounding; not compared")
            )
        else:
            scale = scales[index] if scales is not None else None
            difference = compare_output(label, name, leg, known, output, thresholds, scale)
            if not difference.passed and leg == "precision" and difference.compared and known.floor is not None:
                difference = floors.judge(difference, reference, index, output, scale)
            found.append(difference)
    return found


def _refused(reference: DrawReference, error: str) -> Difference:
    reason = f"the target raises {error}"
    return Difference("outputs", reference.draw.name, "precision", passed=False, reason=reason, score=np.inf)


def _ordinary_scales(references: References) -> list[float]:
    """Per output, 2^16 units of its size at ordinary draws."""
    ordinary = [r for r in references.draws if not r.draw.degenerate and r.draw.name != "large"] or references.draws
    count = min(len(r.outputs) for r in references.draws)
    scales = [0.0] * max(len(r.outputs) for r in references.draws)
    for index in range(count):
        floors = [o.floor for r in ordinary if (o := r.outputs[index]) is not None and o.floor is not None]
        sizes = [floor.magnitude / np.sqrt(max(int(floor.known.sum()), 1)) for floor in floors]
        scales[index] = DEGENERATE_UNITS * UNIT_ROUNDOFF * max(sizes, default=0.0)
    return scales


def _notes(references: References, differences: Sequence[Difference]) -> list[str]:
    notes: list[str] = []
    for reference in references.draws:
        for name, known in zip(reference.names, reference.outputs, strict=True):
            if known is None or known.floor is None or reference.draw.degenerate:
                continue
            if known.floor.relative > LARGE_FLOOR:
                notes.append(
                    f"{name} is ill-conditioned at draw {reference.draw.name}: rounding alone moves it by "
                    f"{known.floor.relative:.1e} of its size, and smaller errors cannot be seen"
                )
    compared = {d.output for d in differences if d.compared or not d.passed}
    never = dict.fromkeys(d.output for d in differences if d.output not in compared)
    notes += [f"{name} was compared at no draw: it is empty, not finite, or decided by rounding" for name in never]
    leaks = {d.output: d for d in differences if d.leg == "semantics" and d.passed and d.R > LEAK and d.compared}
    notes += [
        f"{name}: the target in float64 agrees only to {d.R:.1e} of the float32 floor; some operation of it, or a "
        "weight derived from several, is rounded to float32 on the way"
        for name, d in leaks.items()
        if d.floor
    ]
    return notes


def _floors(references: References) -> list[dict[str, Any]]:
    """Relative floor and condition of every output at every draw, for the report."""
    return [
        {
            "output": name,
            "draw": reference.draw.name,
            "relative_floor": known.floor.relative,
            "condition": known.floor.condition,
        }
        for reference in references.draws
        for name, known in zip(reference.names, reference.outputs, strict=True)
        if known is not None and known.floor is not None
    ]


def _culprit(
    source: SourceRunner,
    target: Runner,
    report: Report,
    references: References,
    thresholds: Thresholds,
    modules: Sequence[ModuleEntry] | None,
    perturbations: int,
) -> Culprit | None:
    """The first module that differs, at the first ordinary draw that failed."""
    failed = [d for d in report.differences if not d.passed]
    draws = {r.draw.name: r.draw for r in references.draws}
    # Semantics first: its errors stand far above its floor, so that the first module over it is the right one.
    first = min(failed, key=lambda d: (d.leg != "semantics", draws[d.draw].degenerate, list(draws).index(d.draw)))
    try:
        found = compare_modules(source, target, draws[first.draw], first.leg, thresholds, modules, perturbations)
    except Exception as error:
        # The verdict stands without it; a target that raises half-way cannot be followed further.
        report.notes.append(f"the modules could not be compared: {describe_error(error)}")
        return None
    return first_differing_module(found, source.name)
