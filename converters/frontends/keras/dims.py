"""Which sizes vary: two traces of one model at different sizes, compared call by call."""

from __future__ import annotations

from typing import Any

import numpy as np

from porter.converters.frontends.keras import internals
from porter.converters.frontends.keras.symbolic import Size, text
from porter.converters.frontends.keras.trace import Call, Marks, Tensor, Trace, trace
from porter.errors import ExportError

Dim = int | str


def trace_sizes(model: Any, arguments: Any) -> tuple[Trace, dict[int, list[Dim]]]:
    """One trace, and {id of a tensor of it: its sizes, each a number or an expression}.

    `arguments(which)` makes symbolic tensors, flat and as `(args, kwargs)`, at the first (0) and at other sizes (1).

    Raises:
        ExportError: the model cannot be traced, or a size that varies becomes a number in it.
    """
    marks: Marks = {}
    while True:
        first, second = (_traced(model, arguments(which), marks) for which in (0, 1))
        if len(first.calls) != len(second.calls):
            raise ExportError(
                f"{type(model).__name__} calls other layers at other sizes ({len(first.calls)} calls or "
                f"{len(second.calls)}): a loop or branch in it depends on a size. Fix the sizes with --static."
            )
        lost = _lost(first, second)
        if not lost - marks.keys():
            break
        marks |= {place: f"size_{len(marks) + k}" for k, place in enumerate(sorted(lost - marks.keys()))}
    numbers: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for one, other in zip(_tensors(first), _tensors(second), strict=True):
        numbers[0][id(one)], numbers[1][id(other)] = len(numbers[0]), len(numbers[1])
    for call, twin in zip(first.calls, second.calls, strict=True):
        _compare(call, twin, numbers)
    return first, {id(tensor): [_dim(size) for size in tensor.shape] for tensor in _tensors(first)}


def _dim(size: int) -> Dim:
    return text(size) if isinstance(size, Size) else int(size)


def _tensors(trace: Trace) -> list[Tensor]:
    return [*trace.inputs, *(tensor for call in trace.calls for tensor in internals.flat(call.outputs))]


def _lost(first: Trace, second: Trace) -> set[tuple[int, int, int]]:
    """Sizes that differ between the traces and do not know why."""
    found = set()
    for position, (call, twin) in enumerate(zip(first.calls, second.calls, strict=True)):
        pairs = zip(internals.flat(call.outputs), internals.flat(twin.outputs), strict=False)
        for number, (one, other) in enumerate(pairs):
            for axis, (a, b) in enumerate(zip(one.shape, other.shape, strict=False)):
                known = isinstance(a, Size) and isinstance(b, Size) and a.expression == b.expression
                if int(a) != int(b) and not known:
                    found.add((position, number, axis))
    return found


def _compare(call: Call, twin: Call, numbers: tuple[dict[int, int], dict[int, int]]) -> None:
    """Both traces must make the same call, sizes apart that are known to vary."""

    def fail(what: str) -> None:
        raise ExportError(
            f"{type(call.subject).__name__} in {call.path} ({call.line}) {what} at other sizes of the inputs. "
            "A size became a plain number there: take sizes from ops.shape and compute with + - * // %, "
            "or fix the sizes with --static."
        )

    if type(call.subject) is not type(twin.subject):
        fail(f"becomes {type(twin.subject).__name__}")
    ours, theirs = (internals.flat((c.args, c.kwargs, _settings(c.subject))) for c in (call, twin))
    if len(ours) != len(theirs):
        fail("takes other arguments")
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            if numbers[0].get(id(one)) != numbers[1].get(id(other)):
                fail("takes other tensors")
        elif not _same(one, other):
            fail(f"takes {_brief(one)} or {_brief(other)}")


def _settings(subject: Any) -> Any:
    """What an operation was made with; the layers are the same objects in both traces."""
    if isinstance(subject, internals.Layer):
        return ()
    return [(key, value) for key, value in sorted(vars(subject).items()) if not key.startswith("_") and key != "name"]


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, Size) and isinstance(other, Size):
        return one.expression == other.expression
    if hasattr(one, "shape") and hasattr(other, "shape"):
        return tuple(one.shape) == tuple(other.shape) and bool(np.array_equal(np.asarray(one), np.asarray(other)))
    if isinstance(one, slice) and isinstance(other, slice):
        return all(_same(getattr(one, k), getattr(other, k)) for k in ("start", "stop", "step"))
    try:
        return type(one) is type(other) and bool(one == other or one != one)
    except Exception:
        return type(one) is type(other)


def _brief(value: Any) -> str:
    return f"a tensor of shape {list(value.shape)}" if hasattr(value, "shape") else repr(value)


def _traced(model: Any, given: tuple, marks: Marks) -> Trace:
    inputs, args, kwargs = given
    return trace(model, inputs, args, kwargs, marks)
