"""Reductions, positions of extremes, running sums against ONNX's reference in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.targets.keras.nodes import Case, check, graph_of, ported, run

RNG = np.random.default_rng(11)
SHAPES = [(2, 3, 4, 5), (3, 3, 3, 3)]
REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 2, size=shape)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axes", [(1,), (2, 3), (-1, 1, -2), (0, 1, 2, 3), None])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_reductions_follow_the_layout(
    name: str, axes: tuple[int, ...] | None, keepdims: int, shape: tuple[int, ...]
) -> None:
    numbers = None if axes is None else np.array(axes, np.int64)
    check(
        Case(f"Reduce{name}", {"x": positive(*shape), "axes": numbers}, {"keepdims": keepdims}, constants=("axes",)),
        spatial=True,
    )


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reducing_nothing(name: str) -> None:
    check(
        Case(
            f"Reduce{name}",
            {"x": -positive(2, 3) if "Log" not in name else positive(2, 3)},
            {"noop_with_empty_axes": 1},
        )
    )


@pytest.mark.parametrize("name", ["Sum", "Max", "Min", "Prod", "L1", "SumSquare", "Mean"])
@pytest.mark.parametrize("kind", [np.int64])
def test_integers_stay_integers(name: str, kind: type) -> None:
    axes = np.array([1], np.int64)
    check(Case(f"Reduce{name}", {"x": RNG.integers(-4, 5, (3, 4)).astype(kind), "axes": axes}, constants=("axes",)))


@pytest.mark.parametrize("name", ["Max", "Min"])
def test_truth_values(name: str) -> None:
    axes = np.array([1], np.int64)
    check(
        Case(
            f"Reduce{name}",
            {"x": np.array([[True, False], [True, True], [False, False]]), "axes": axes},
            constants=("axes",),
        )
    )


def test_not_a_number_is_kept() -> None:
    for name in ("Max", "Min", "Sum", "Mean"):
        check(Case(f"Reduce{name}", {"x": np.array([1.0, np.nan, 3.0])}))


def test_infinities_in_logsumexp() -> None:
    """Where ONNX's reference has NaN, torch has the limit."""
    x = np.array([[-np.inf, -np.inf], [1.0, -np.inf]])
    found, _, _ = run(Case("ReduceLogSumExp", {"x": x, "axes": np.array([1])}, {"keepdims": 0}, constants=("axes",)))
    assert found[0].tolist() == [-np.inf, 1.0]


def test_norm_of_zero_has_gradient_zero() -> None:
    import tensorflow as tf

    port, _ = ported(graph_of(Case("ReduceL2", {"x": np.zeros((2, 3)), "axes": np.array([1])}, constants=("axes",))))
    x = tf.constant([[0.0, 0, 0], [3, 0, 4]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        norm = port(x)
    np.testing.assert_allclose(tape.gradient(norm, x).numpy(), [[0, 0, 0], [0.6, 0, 0.8]], rtol=1e-12)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_positions_of_extremes(op: str, axis: int, keepdims: int, last: int) -> None:
    """Integers make ties likely."""
    x = RNG.integers(0, 3, (2, 3, 4, 5)).astype(float)
    check(Case(op, {"x": x}, {"axis": axis, "keepdims": keepdims, "select_last_index": last}), spatial=True)


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_top_k(axis: int, largest: int, kind: type) -> None:
    x = RNG.integers(0, 4, (3, 4, 5)).astype(kind)
    k = np.array([3], np.int64)
    check(
        Case("TopK", {"x": x, "k": k}, {"axis": axis, "largest": largest}, constants=("k",), outputs=2),
        spatial=kind is np.float64,
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums(axis: int, exclusive: int, reverse: int) -> None:
    attributes = {"exclusive": exclusive, "reverse": reverse}
    check(
        Case("CumSum", {"x": positive(2, 3, 4, 5), "axis": np.array(axis)}, attributes, constants=("axis",)),
        spatial=True,
    )


def test_plain_reductions_read_plainly() -> None:
    _, _, source = run(
        Case("ReduceMean", {"x": positive(2, 3, 4), "axes": np.array([1])}, {"keepdims": 0}, constants=("axes",))
    )
    assert "ops.mean(x, axis=1)" in source
