"""The numbers under a verdict: floors, comparisons, draws and sizes. No framework here."""

from __future__ import annotations

import numpy as np
import pytest

from porter.equivalence.compare import OutputReference, Thresholds, compare_output
from porter.equivalence.draws import make_draws
from porter.equivalence.floor import SMALLEST, make_floor
from porter.equivalence.references import Spread
from porter.equivalence.sizes import example_sizes, other_sizes, resized
from porter.errors import InputError

U = 2.0**-24


def reference(y: np.ndarray, own: np.ndarray | None = None) -> OutputReference:
    rng = np.random.default_rng(0)
    spread = Spread(y, y.astype(np.float32) if own is None else own)
    for _ in range(8):
        spread.add(y * (1 + 3 * U * rng.standard_normal(y.shape)))
    return spread.reference()


def test_floor_is_the_largest_of_its_three_parts() -> None:
    y = np.full(4, 2.0)
    known = np.ones(4, dtype=bool)
    plain = make_floor(y, y, np.zeros(4), 8, known)
    assert plain.norm == pytest.approx(U * 4 / np.sqrt(3))
    own = make_floor(y, y + 1e-3, np.zeros(4), 8, known)
    assert own.norm == pytest.approx(2e-3)
    moved = make_floor(y, y, np.full(4, 8 * 1e-4), 8, known)
    assert moved.norm == pytest.approx(2e-2)
    assert moved.elements[0] == pytest.approx(np.sqrt(8e-4 / 9 + (2 * U) ** 2 / 3))
    assert moved.condition == pytest.approx(2e-2 / (U * 4))


def test_zero_and_denormal_outputs_may_flush() -> None:
    for y in (np.zeros(3), np.full(3, 1e-40)):
        known = OutputReference(y, y.astype(np.float32), make_floor(y, y, np.zeros(3), 8, np.ones(3, dtype=bool)))
        flushed = compare_output("y", "zeros", "precision", known, np.zeros(3, dtype=np.float32), Thresholds())
        assert flushed.passed
        nonzero = compare_output("y", "zeros", "semantics", known, np.full(3, 1e3 * SMALLEST), Thresholds())
        assert not nonzero.passed


def test_values_against_the_floor() -> None:
    y = np.random.default_rng(1).standard_normal((3, 50))
    known = reference(y)
    assert compare_output("y", "d", "precision", known, y.astype(np.float32), Thresholds()).passed
    wrong = y.astype(np.float32)
    wrong[1, 7] += 1e-4
    found = compare_output("y", "d", "precision", known, wrong, Thresholds())
    assert not found.passed
    assert found.worst == (1, 7)
    assert found.line().startswith("y: precision R=")
    assert "worst [1,7], draw d" in found.line()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (np.ones((2, 3), dtype=np.float16), "type float16"),
        (np.ones((2, 3), dtype=np.int64), "type int64"),
        (np.ones((3,), dtype=np.float32), "shape"),
        (np.full((2, 3), np.nan, dtype=np.float32), "NaN at 6 elements"),
        (np.full((2, 3), np.inf, dtype=np.float32), "inf at 6"),
    ],
)
def test_structure_is_judged_before_values(target: np.ndarray, reason: str) -> None:
    found = compare_output("y", "d", "precision", reference(np.ones((2, 3))), target, Thresholds())
    assert not found.passed
    assert reason in found.line()


def test_infinities_must_have_their_sign() -> None:
    y = np.array([1.0, np.inf])
    right = compare_output("y", "d", "precision", reference(y), y.astype(np.float32), Thresholds())
    assert right.passed
    assert right.compared == 1
    assert not compare_output("y", "d", "precision", reference(y), np.float32([1, -np.inf]), Thresholds()).passed


def test_overflow_of_float32_only_is_a_pattern_not_a_value() -> None:
    y, own = np.array([1.0, 1e300]), np.array([1.0, np.inf], dtype=np.float32)
    assert compare_output("y", "large", "precision", reference(y, own), own, Thresholds()).passed
    assert compare_output("y", "large", "semantics", reference(y, own), y, Thresholds()).passed


def test_integers_are_exact_except_where_rounding_decides() -> None:
    spread = Spread(np.array([1, 2, 3]), np.array([1, 2, 3]))
    spread.add(np.array([1, 2, 0]))
    known = spread.reference()
    assert compare_output("i", "d", "precision", known, np.array([1, 2, 9], dtype=np.int32), Thresholds()).passed
    found = compare_output("i", "d", "precision", known, np.array([1, 9, 3]), Thresholds())
    assert "1 of 2 values differ, first 9 where the source gives 2" in found.line()
    assert not compare_output("i", "d", "precision", known, np.array([True, True, True]), Thresholds()).passed


def test_a_dead_unit_may_come_alive_by_less_than_the_floor() -> None:
    y = np.random.default_rng(0).standard_normal(1000)
    y[0] = 0.0
    known = reference(y)
    target = y.astype(np.float32)
    target[0] = 3e-8
    assert compare_output("y", "d", "precision", known, target, Thresholds()).passed
    target[0] = 3e-5
    assert not compare_output("y", "d", "precision", known, target, Thresholds()).passed


def test_own_rounding_that_no_perturbation_shows_is_pooled() -> None:
    rng = np.random.default_rng(0)
    y, size = rng.standard_normal(10_000), 1e-4
    spread = Spread(y, (y + size * rng.standard_normal(y.shape)).astype(np.float32))
    for _ in range(8):
        spread.add(y * (1 + U * rng.standard_normal(y.shape)))
    target = (y + size * rng.standard_normal(y.shape)).astype(np.float32)
    found = compare_output("y", "d", "precision", spread.reference(), target, Thresholds())
    assert found.passed
    assert found.Rc < 10


def test_element_limit_grows_with_very_large_outputs_only() -> None:
    assert Thresholds().limits("precision", 1000) == (4.0, 32.0)
    assert Thresholds().limits("precision", 10**7)[1] == pytest.approx(32 * 100 ** (1 / 9))
    assert Thresholds().limits("semantics", 10**7) == (2.0, 32.0)


def test_draws_fit_the_types_of_the_inputs() -> None:
    examples = [np.ones((2, 3), dtype=np.float64), np.array([[0, 5]]), np.array([[True, False]])]
    draws = {draw.name: draw for draw in make_draws(examples)}
    names = ["example", "normal 0", "normal 1", "normal 2", "large", "small", "constant", "zeros", "ends"]
    assert list(draws) == [*names, "mask all true", "mask row false"]
    assert all(d.inputs[0].dtype == np.float32 and d.inputs[1].dtype == np.int64 for d in draws.values())
    assert all(d.inputs[1].min() >= 0 and d.inputs[1].max() <= 5 for d in draws.values())
    assert set(draws["ends"].inputs[1].ravel()) <= {0, 5}
    assert draws["constant"].degenerate
    assert not draws["normal 0"].degenerate
    assert not draws["mask row false"].inputs[2].any()
    given = make_draws([np.array([3] * 50)], ranges=[(-2, 9)], seeds=(0,))
    assert given[1].inputs[0].min() == -2
    assert given[1].inputs[0].max() == 9
    with pytest.raises(InputError, match="complex64"):
        make_draws([np.ones(2, dtype=np.complex64)])


def test_sizes_never_traced() -> None:
    examples = [np.zeros((2, 3, 8)), np.zeros((2, 8))]
    shapes = [("b", 3, "n"), ("b", "n")]
    assert example_sizes(examples, shapes) == {"b": 2, "n": 8}
    first, second = other_sizes(examples, shapes)
    assert first.alternatives[0] == {"b": 3, "n": 9}
    assert second.alternatives[0] == {"b": 1, "n": 16}
    assert [x.shape for x in resized(examples, shapes, {"b": 1, "n": 16})] == [(1, 3, 16), (1, 16)]
    assert other_sizes([np.zeros(3)], [(3,)]) == []
    with pytest.raises(InputError, match="not"):
        example_sizes([np.zeros((2, 3))], [("n", "n")])
