"""Arrays that a source framework and the ONNX made of it give, side by side."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from porter.converters.graph.nesting import captured, subgraphs

TOLERANCE = 1e-6


def external(nodes: list[ir.Node]) -> list[ir.Value]:
    """The values that nodes read and do not make, those read inside branches too."""
    made: set[ir.Value] = set()
    read: dict[ir.Value, None] = {}
    for node in nodes:
        for value in node.inputs:
            if value is not None and value not in made:
                read[value] = None
        for body in subgraphs(node).values():
            read.update((value, None) for value in captured(body) if value not in made)
        made.update(node.outputs)
    return list(read)


def difference(got: np.ndarray, truth: np.ndarray, of: str = "torch", tolerance: float = TOLERANCE) -> str:
    """How two arrays differ, in words; nothing when they agree."""
    if got.shape != truth.shape:
        return f"its shape is {got.shape}, {of}'s {truth.shape}"
    if got.dtype.kind != truth.dtype.kind:
        return f"its type is {got.dtype}, {of}'s {truth.dtype}"
    if truth.size == 0:
        return ""
    if truth.dtype.kind != "f":
        wrong = int((got != truth).sum())
        return f"{wrong} of {truth.size} elements differ" if wrong else ""
    with np.errstate(all="ignore"):
        apart = got - truth
        error = max(float(apart.max()), -float(apart.min()))
        if error == 0:
            return ""
        if np.isfinite(error):
            scale = max(float(truth.max()), -float(truth.min()))
        else:
            finite = np.isfinite(truth) & np.isfinite(got)
            if not (finite | (got == truth) | (np.isnan(got) & np.isnan(truth))).all():
                return "one is infinite or NaN where the other is not"
            error = float(np.abs(apart[finite]).max(initial=0.0))
            scale = float(np.abs(truth[finite]).max(initial=0.0))
    return f"off by {error:.3g} at a scale of {scale:.3g}" if error > tolerance * max(scale, 1e-30) else ""
