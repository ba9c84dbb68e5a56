"""Time two callables in turns.

Each is called until its times are steady, then in blocks long enough that reading the clock costs nothing, in random
ABBA order. The first callable is timed against itself in the same way: what that finds is the measurement's own error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from porter.errors import InconclusiveError, InputError
from porter.timing.bench import Bench, SideTimes
from porter.timing.clock import Clock
from porter.timing.statistics import bootstrap_ratio, is_steady, orders, verdict

OVERHEAD_SHARE = 1e-4
"""The most of a block that reading the clock may take."""

MAX_CALLS = 1_000_000


@dataclass(frozen=True)
class Side:
    """A callable to time."""

    name: str
    call: Callable[[], Any]
    sync: Callable[[], Any] | None = None
    """Waits for the device at the end of a block; None when a call returns only when its result is there."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What a reader must know of it: versions, mode, threads."""


@dataclass
class _Block:
    wall: float
    cpu: float


def benchmark(
    a: Side | Callable[[], Any],
    b: Side | Callable[[], Any],
    *,
    rounds: int = 30,
    block_seconds: float = 0.01,
    warmup_seconds: float = 10.0,
    margin: float = 0.03,
    control: bool = True,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> Bench:
    """Time `b` against `a`.

    Args:
        a: the side that ratios are over.
        b: the other side.
        rounds: how many ABBA rounds, two blocks a side in each.
        block_seconds: how long a block lasts at least.
        warmup_seconds: how long to wait for steady times, a side.
        margin: how far from 1 a ratio still says SAME.
        control: time `a` against itself as well.
        seed: draws the order and the bootstrap's samples.
        settings: what the report says besides (threads, device, versions).
        clock: the clocks to read.

    Raises:
        InputError: too few rounds for an interval.
        InconclusiveError: a side is too fast for the clock.
    """
    if rounds < 5:
        raise InputError(f"{rounds} rounds give no confidence interval: use at least 5, better 30.")
    clock = clock or Clock()
    sides = {
        key: side if isinstance(side, Side) else Side(getattr(side, "__name__", key), side)
        for key, side in (("a", a), ("b", b))
    }
    rng = np.random.default_rng(seed)
    shortest = max(block_seconds, clock.overhead() / OVERHEAD_SHARE)
    warm = {key: _warm_up(side, shortest, warmup_seconds, clock) for key, side in sides.items()}
    calls = {key: times.calls_per_block for key, times in warm.items()}

    measured = _rounds(sides, calls, rounds, rng, clock)
    for key, times in warm.items():
        times.wall = [block.wall for block in measured[key]]
        times.cpu = [block.cpu for block in measured[key]]
    wall, cpu = (
        bootstrap_ratio(_paired(measured["a"], kind), _paired(measured["b"], kind), rng) for kind in ("wall", "cpu")
    )
    control_ratio = None
    if control:
        same = _rounds({"a": sides["a"], "b": sides["a"]}, {"a": calls["a"], "b": calls["a"]}, rounds, rng, clock)
        control_ratio = bootstrap_ratio(_paired(same["a"], "wall"), _paired(same["b"], "wall"), rng)
    return Bench(
        a=warm["a"],
        b=warm["b"],
        wall=wall,
        cpu=cpu,
        control=control_ratio,
        verdict=verdict(wall, control_ratio, margin),
        margin=margin,
        rounds=rounds,
        seed=seed,
        settings=dict(settings or {}),
    )


def _warm_up(side: Side, shortest: float, seconds: float, clock: Clock) -> SideTimes:
    """The first call on its own (it traces and compiles), then blocks until they are steady."""
    first = _block(side, 1, clock)
    start = clock.wall()
    calls, block = 1, _block(side, 1, clock)
    while block.wall * calls < shortest:
        if calls >= MAX_CALLS:
            raise InconclusiveError(f"{side.name} is too fast to time: {calls} calls take {block.wall * calls:.1e} s.")
        # Never more than tenfold at once: a first fast block must not lead to one that takes minutes.
        growth = 1.2 * shortest / max(block.wall * calls, shortest / 10)
        calls = min(MAX_CALLS, max(calls + 1, int(np.ceil(calls * growth))))
        block = _block(side, calls, clock)
    times: list[float] = []
    while not is_steady(times) and (len(times) < 10 or clock.wall() - start < seconds):
        times.append(_block(side, calls, clock).wall)
    return SideTimes(
        name=side.name,
        first_call=first.wall,
        calls_per_block=calls,
        warmup_blocks=len(times),
        steady=is_steady(times),
        settings=dict(side.settings),
    )


def _block(side: Side, calls: int, clock: Clock) -> _Block:
    """Seconds per call over `calls` calls and one synchronisation."""
    call = side.call
    cpu, wall = clock.cpu(), clock.wall()
    for _ in range(calls):
        call()
    if side.sync is not None:
        side.sync()
    wall, cpu = clock.wall() - wall, clock.cpu() - cpu
    return _Block(wall / calls, cpu / calls)


def _rounds(
    sides: Mapping[str, Side], calls: Mapping[str, int], rounds: int, rng: np.random.Generator, clock: Clock
) -> dict[str, list[_Block]]:
    measured: dict[str, list[_Block]] = {"a": [], "b": []}
    for order in orders(rounds, rng):
        for key in order:
            measured[key].append(_block(sides[key], calls[key], clock))
    return measured


def _paired(blocks: list[_Block], kind: str) -> list[float]:
    """One time per round, the mean of its two blocks."""
    # The process clock of some systems is too coarse to see a short block at all.
    values = np.maximum([getattr(block, kind) for block in blocks], 1e-12)
    return [float(x) for x in values.reshape(-1, 2).mean(axis=1)]
