"""A benchmark's numbers, on a clock that the test moves by hand."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from porter.errors import InconclusiveError, InputError
from porter.timing import Bench, Side, benchmark
from porter.timing.clock import Clock
from porter.timing.statistics import Ratio, bootstrap_ratio, is_steady, orders, verdict


class Machine:
    """Time passes only when a callable says so; a slow drift stands for a machine that gets busier."""

    def __init__(self, drift: float = 0.0, noise: float = 0.0) -> None:
        self.now = 0.0
        self.cpu_now = 0.0
        self.drift = drift
        self.noise = noise
        self.rng = np.random.default_rng(0)
        self.clock = Clock(wall=lambda: self.now, cpu=lambda: self.cpu_now)

    def takes(self, seconds: float, warm_after: int = 0) -> Callable[[], None]:
        calls = 0

        def call() -> None:
            nonlocal calls
            calls += 1
            factor = (1 + self.drift * self.now) * np.exp(self.noise * self.rng.standard_normal())
            self.cpu_now += seconds * factor
            self.now += seconds * factor * (5.0 if calls <= warm_after else 1.0)

        return call


def run(machine: Machine, a: Callable[[], None], b: Callable[[], None], **options: object) -> Bench:
    return benchmark(Side("a", a), Side("b", b), clock=machine.clock, **options)


def test_ratio_of_known_times() -> None:
    machine = Machine(noise=0.05)
    bench = run(machine, machine.takes(0.002), machine.takes(0.003))
    assert bench.wall.low < 1.5 < bench.wall.high
    assert bench.wall.width < 0.1
    assert bench.verdict == "SLOWER"
    assert bench.a.median == pytest.approx(0.002, rel=0.05)
    assert bench.a.calls_per_block * 0.002 >= 0.009
    assert len(bench.a.wall) == len(bench.b.cpu) == 60


def test_drift_falls_on_both_sides_alike() -> None:
    machine = Machine(drift=0.2)
    bench = run(machine, machine.takes(0.01), machine.takes(0.01))
    assert bench.a.wall[-1] > 1.2 * bench.a.wall[0]
    assert bench.verdict == "SAME"
    assert bench.control is not None
    assert bench.control.contains(1.0)


def test_faster_and_ambiguous() -> None:
    machine = Machine(noise=0.02)
    assert run(machine, machine.takes(0.02), machine.takes(0.01)).verdict == "FASTER"
    machine = Machine(noise=1.0)
    assert run(machine, machine.takes(0.02), machine.takes(0.021), rounds=8).verdict == "AMBIGUOUS"


def test_slow_first_calls_are_no_part_of_the_times() -> None:
    machine = Machine()
    bench = run(machine, machine.takes(0.02, warm_after=7), machine.takes(0.02))
    assert bench.a.first_call == pytest.approx(0.1)
    assert bench.a.steady
    assert max(bench.a.wall) == pytest.approx(0.02)


def test_a_side_that_never_settles_is_reported() -> None:
    machine = Machine(drift=50.0)
    bench = run(machine, machine.takes(0.02), machine.takes(0.02), warmup_seconds=0.1, rounds=5)
    assert not bench.a.steady
    assert "not steady" in bench.lines()[0]


def test_synchronisation_is_inside_the_block() -> None:
    machine = Machine()
    waits = machine.takes(0.02)
    bench = benchmark(Side("a", lambda: None, waits), Side("b", machine.takes(0.02)), clock=machine.clock, rounds=5)
    assert sum(bench.a.wall) > 0


def test_process_time_is_reported_beside_wall_time() -> None:
    machine = Machine()

    def waits() -> None:
        machine.now += 0.02
        machine.cpu_now += 0.001

    bench = run(machine, machine.takes(0.02), waits)
    assert bench.wall.value == pytest.approx(1.0)
    assert bench.cpu.value == pytest.approx(0.05)


def test_too_few_rounds_and_too_fast_callables() -> None:
    machine = Machine()
    with pytest.raises(InputError, match="at least 5"):
        run(machine, machine.takes(1), machine.takes(1), rounds=2)
    with pytest.raises(InconclusiveError, match="too fast"):
        run(machine, lambda: None, lambda: None)


def test_json_and_lines() -> None:
    machine = Machine()
    bench = run(machine, machine.takes(0.02), machine.takes(0.03), settings={"threads": 1})
    data = json.loads(json.dumps(bench.to_json()))
    assert data["wall"]["value"] == pytest.approx(1.5)
    assert data["a"]["median"] == pytest.approx(0.02)
    assert data["settings"] == {"threads": 1}
    lines = bench.lines()
    assert lines[0].startswith("a: median 20 ms")
    assert lines[2].startswith("b / a: 1.500 [1.500, 1.500] wall")
    assert lines[-2].startswith("SLOWER")
    assert lines[-1] == "threads 1"


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        common = rng.lognormal(0, 0.5, 30)
        a, b = common * rng.lognormal(0, 0.05, 30), 1.1 * common * rng.lognormal(0, 0.05, 30)
        hits += bootstrap_ratio(a.tolist(), b.tolist(), rng, resamples=400).contains(1.1)
    assert 180 <= hits <= 200


def test_orders_balance_the_sides() -> None:
    drawn = orders(50, np.random.default_rng(0))
    assert set(drawn) == {("a", "b", "b", "a"), ("b", "a", "a", "b")}


def test_steadiness() -> None:
    assert not is_steady([1.0] * 9)
    assert is_steady([1.0] * 10)
    assert not is_steady([2.0] * 5 + [1.0] * 5)


@pytest.mark.parametrize(
    ("ratio", "control", "expected"),
    [
        (Ratio(1.0, 0.99, 1.01), Ratio(1, 0.99, 1.01), "SAME"),
        (Ratio(1.2, 1.1, 1.3), Ratio(1, 0.99, 1.01), "SLOWER"),
        (Ratio(0.8, 0.7, 0.9), None, "FASTER"),
        (Ratio(1.0, 0.8, 1.2), None, "AMBIGUOUS"),
        (Ratio(1.2, 1.1, 1.3), Ratio(1.05, 1.02, 1.08), "AMBIGUOUS"),
        (Ratio(1.2, 1.1, 1.3), Ratio(1.0, 0.6, 1.6), "AMBIGUOUS"),
    ],
)
def test_verdict(ratio: Ratio, control: Ratio | None, expected: str) -> None:
    assert verdict(ratio, control, 0.03) == expected
