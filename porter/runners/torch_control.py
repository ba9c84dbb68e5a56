"""torch's branches and loops run as Python, one operation at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def run(operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a higher-order operator gives; those that are no branch and no loop run as they are."""
    runner = _RUNNERS.get(operator.name())
    return operator(*args, **kwargs) if runner is None or kwargs else runner(*args)


def _cond(taken: Any, first: Callable[..., Any], second: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    return (first if taken else second)(*operands)


def _while_loop(
    goes_on: Callable[..., Any], step: Callable[..., Any], carried: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    while goes_on(*carried, *others):
        carried = step(*carried, *others)
    return tuple(carried)


def _scan(step: Callable[..., Any], carried: Sequence[Any], xs: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    count, turns = len(carried), []
    for slices in zip(*(x.unbind() for x in xs), strict=True):
        results = list(step(*carried, *slices, *others))
        carried = results[:count]
        turns.append(results[count:])
    return (*carried, *(torch.stack(rows) for rows in zip(*turns, strict=True)))


def _map(step: Callable[..., Any], xs: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    return _scan(step, (), xs, others)


_RUNNERS: dict[str, Callable[..., Any]] = {"cond": _cond, "while_loop": _while_loop, "scan": _scan, "map_impl": _map}
