"""Where the two models part: every module's inputs and outputs compared, in the order in which the source ran them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np

from porter.equivalence.compare import Difference, Leg, OutputReference, Thresholds, as_real, compare_output
from porter.equivalence.draws import Draw
from porter.equivalence.references import Spread, perturbed_inputs
from porter.runners.base import Array, ModuleCall, Permutation, Precision, Runner, SourceRunner

ModuleEntry = TypedDict(
    "ModuleEntry",
    {
        "path": str,
        "class": str,
        "file": str | None,
        "line": int | None,
        "output_permutations": Sequence[Permutation] | None,
    },
    total=False,
)
"""What a port knows of one module; only `path` must be there. `file` and `line` are the source's."""


@dataclass(frozen=True)
class ModuleDifference:
    """One call of one module."""

    path: str
    class_name: str
    source: str | None
    """`file:line` of the call in the source."""
    target: str | None
    """`file:line` of the call in the target."""
    inputs: list[Difference]
    outputs: list[Difference]

    @property
    def passed(self) -> bool:
        return all(d.passed for d in self.outputs)

    @property
    def inputs_agree(self) -> bool:
        return all(d.passed for d in self.inputs)

    @property
    def worst(self) -> Difference:
        return max((d for d in self.outputs), key=lambda d: d.score)


@dataclass(frozen=True)
class Culprit:
    """The module in which the difference arises."""

    path: str
    """Empty for the model itself."""
    class_name: str
    source: str | None
    target: str | None
    detail: str

    def line(self) -> str:
        places = [f"{side} {place}" for side, place in (("source", self.source), ("target", self.target)) if place]
        where = f" at {', '.join(places)}" if places else ""
        return f"first difference: {self.path or 'the model itself'} ({self.class_name}){where}: {self.detail}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_modules(
    source: SourceRunner,
    target: Runner,
    draw: Draw,
    leg: Leg,
    thresholds: Thresholds,
    modules: Sequence[ModuleEntry] | None = None,
    perturbations: int = 8,
    seed: int = 0,
) -> list[ModuleDifference]:
    """Every module that both sides have and call, in the order in which the source's calls returned.

    Without `output_permutations` an array may be in the source's order or have its channels first or last; the
    nearest is taken, which is good enough to find a module but no proof of it. Calls that cannot be matched are left
    out.
    """
    entries = {entry["path"]: entry for entry in modules or []}
    theirs = set(target.module_paths())
    paths = [path for path in (entries or source.module_paths()) if path in theirs]
    if not paths:
        return []
    references = _references(source, draw, paths, perturbations, seed)
    precision: Precision = "float64" if leg == "semantics" else "float32"
    found = _numbered(target.record_modules(draw.inputs, precision, paths))
    differences: list[ModuleDifference] = []
    for key, (call, inputs, outputs) in references.items():
        other = found.get(key)
        if other is None:
            continue
        entry = entries.get(call.path, ModuleEntry(path=call.path))
        judged = _judge("output", outputs, other.outputs, entry.get("output_permutations"), draw, leg, thresholds)
        if judged:
            differences.append(
                ModuleDifference(
                    call.path,
                    entry.get("class") or call.class_name,
                    f"{entry['file']}:{entry.get('line')}" if entry.get("file") else call.location,
                    other.location,
                    _judge("input", inputs, other.inputs, None, draw, leg, thresholds),
                    judged,
                )
            )
    return differences


def first_differing_module(differences: Sequence[ModuleDifference], model_class: str) -> Culprit:
    """The module whose inputs agree and whose outputs do not.

    When a module already gets different inputs, the difference lies in the code of a module around it, before the call.
    """
    first = next((d for d in differences if not d.passed), None)
    if first is None:
        seen = f"all {len(differences)} modules compared agree" if differences else "no module could be compared"
        return Culprit(
            "", model_class, None, None, f"{seen}, so it lies in the model's own forward (or its outputs' order)"
        )
    if first.inputs_agree:
        return Culprit(first.path, first.class_name, first.source, first.target, first.worst.line())
    by_path: Mapping[str, ModuleDifference] = {d.path: d for d in reversed(differences)}
    owner = first.path
    while owner:
        owner = owner.rpartition(".")[0]
        if owner in by_path and by_path[owner].inputs_agree:
            break
    name = by_path[owner].class_name if owner else model_class
    detail = f"in its own code before {first.path}, whose input already differs: {_worst_input(first).line()}"
    return Culprit(owner, name, first.source, first.target, detail)


def _worst_input(difference: ModuleDifference) -> Difference:
    return max(difference.inputs, key=lambda d: d.score)


Key = tuple[str, int]
"""A path and the number of the call: one module may be called several times."""


def _numbered(calls: Sequence[ModuleCall]) -> dict[Key, ModuleCall]:
    counts: dict[str, int] = {}
    numbered: dict[Key, ModuleCall] = {}
    for call in calls:
        count = counts.get(call.path, 0)
        counts[call.path] = count + 1
        numbered[call.path, count] = call
    return numbered


def _references(
    source: SourceRunner, draw: Draw, paths: Sequence[str], perturbations: int, seed: int
) -> dict[Key, tuple[ModuleCall, list[OutputReference | None], list[OutputReference | None]]]:
    """The source's calls with what is known of their inputs and outputs."""
    exact = _numbered(source.record_modules(draw.inputs, "float64", paths))
    own = _numbered(source.record_modules(draw.inputs, "float32", paths))
    keys = [key for key in exact if key in own and _alike(exact[key], own[key])]
    spreads = {key: _spreads(exact[key], own[key]) for key in keys}
    rng = np.random.default_rng(seed)
    for _ in range(perturbations):
        variant = source.perturbed(rng)
        shifted = _numbered(variant.record_modules(perturbed_inputs(draw.inputs, rng), "float64", paths))
        for key in keys:
            if key in shifted and _alike(exact[key], shifted[key]):
                for spread, array in zip(spreads[key], [*shifted[key].inputs, *shifted[key].outputs], strict=True):
                    spread.add(array)
    known = {key: [s.reference() if s.stable else None for s in spreads[key]] for key in keys}
    return {
        key: (exact[key], known[key][: len(exact[key].inputs)], known[key][len(exact[key].inputs) :]) for key in keys
    }


def _alike(a: ModuleCall, b: ModuleCall) -> bool:
    return len(a.inputs) == len(b.inputs) and len(a.outputs) == len(b.outputs)


def _spreads(exact: ModuleCall, own: ModuleCall) -> list[Spread]:
    ours, theirs = [*exact.inputs, *exact.outputs], [*own.inputs, *own.outputs]
    return [Spread(x, y) for x, y in zip(ours, theirs, strict=True)]


def _judge(
    what: str,
    references: Sequence[OutputReference | None],
    arrays: Sequence[Array],
    permutations: Sequence[Permutation] | None,
    draw: Draw,
    leg: Leg,
    thresholds: Thresholds,
) -> list[Difference]:
    """Compare arrays pairwise; where the two sides hold different numbers of them the common ones count."""
    known = permutations or [None] * len(arrays)
    judged: list[Difference] = []
    for index, (reference, array, permutation) in enumerate(zip(references, arrays, known, strict=False)):
        if reference is None:
            continue
        array = as_real(array)
        if permutation is not None and len(permutation) == array.ndim:
            candidates = [np.transpose(array, np.argsort(permutation))]
        else:
            candidates = _orders(array, reference.exact.shape)
        name = f"{what} {index}"
        results = [compare_output(name, draw.name, leg, reference, x, thresholds) for x in candidates]
        if what == "input" and not any(result.passed for result in results):
            # A flattened image, say, which the target flattens in its own order: as long as every sample holds the same
            # values, what the module then makes of them is its own affair.
            ranked = [_ranked(array, reference.exact)] if array.ndim and array.shape == reference.exact.shape else []
            results += [compare_output(name, draw.name, leg, reference, x, thresholds) for x in ranked]
        if results:
            judged.append(min(results, key=lambda d: d.score))
    return judged


def _ranked(array: Array, like: Array) -> Array:
    """Each sample's values in the order of size that those of `like` have."""
    values, order = array.reshape(len(array), -1), like.reshape(len(like), -1)
    ranked = np.empty_like(values)
    np.put_along_axis(ranked, np.argsort(order, axis=1, kind="stable"), np.sort(values, axis=1), axis=1)
    return ranked.reshape(array.shape)


def _orders(array: Array, shape: tuple[int, ...]) -> list[Array]:
    """The array as it is and with its channels moved either way, those that have the source's shape.

    Another number of elements is a difference of its own; the same number in another shape cannot be matched.
    """
    if array.size != int(np.prod(shape)):
        return [array]
    orders = [array, np.moveaxis(array, -1, 1), np.moveaxis(array, 1, -1)] if array.ndim >= 3 else [array]
    return [x for x in orders if x.shape == shape]
