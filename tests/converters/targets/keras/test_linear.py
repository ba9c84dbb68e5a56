"""Products with matrices: layers where the matrix is a parameter, arithmetic where it is computed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.targets.keras.nodes import Case, check

RNG = np.random.default_rng(13)


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def dyadic(*shape: int) -> np.ndarray:
    """Numbers that float32 holds exactly: parameters are stored so."""
    return RNG.integers(-64, 64, size=shape) / 16


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("bias", [(5,), None])
def test_gemm_with_parameters_is_a_dense_layer(trans_b: int, bias: tuple[int, ...] | None) -> None:
    b = None if bias is None else dyadic(*bias)
    inputs = {"x": dyadic(4, 3), "w": dyadic(5, 3) if trans_b else dyadic(3, 5), "b": b}
    source = check(Case("Gemm", inputs, {"transB": trans_b}, weights=("w", "b"), known=(-1,)))
    assert f"layers.Dense(5{'' if bias else ', use_bias=False'})" in source


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("bias", [(5,), (4, 1), (1,)])
@pytest.mark.parametrize(("scale", "weights"), [(1.0, ("w", "b")), (0.5, ("w", "b")), (0.5, ("w",)), (0.5, ())])
def test_gemm_in_all_its_forms(
    trans_a: int, trans_b: int, scale: float, bias: tuple[int, ...], weights: tuple[str, ...]
) -> None:
    inputs = {
        "x": dyadic(3, 4) if trans_a else dyadic(4, 3),
        "w": dyadic(5, 3) if trans_b else dyadic(3, 5),
        "b": dyadic(*bias),
    }
    check(
        Case(
            "Gemm",
            inputs,
            {"transA": trans_a, "transB": trans_b, "alpha": scale, "beta": 2 * scale},
            weights=weights,
            known=(-1,),
        )
    )


@pytest.mark.parametrize("left", [(4, 3), (2, 4, 3), (2, 2, 4, 3), (3, 3, 3, 3), (3,)])
@pytest.mark.parametrize("weights", [(), ("w",)])
def test_matmul_with_a_matrix(left: tuple[int, ...], weights: tuple[str, ...]) -> None:
    source = check(
        Case("MatMul", {"x": dyadic(*left), "w": dyadic(3, 3)}, weights=weights, known=(-1,)), spatial=len(left) == 4
    )
    assert ("layers.Dense(3, use_bias=False)" in source) == (bool(weights) and len(left) > 1)


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 4), (2, 4, 5)), ((2, 3, 4, 4), (3, 4, 4)), ((3,), (3,)), ((3,), (2, 3, 4)), ((1, 4, 4), (1, 4, 4))],
)
def test_matmul_of_two_computed_values(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check(Case("MatMul", {"x": dyadic(*left), "y": dyadic(*right)}), spatial=len(left) == 4)


def test_a_constant_matrix_does_not_train() -> None:
    source = check(Case("MatMul", {"x": dyadic(2, 6), "w": dyadic(6, 6)}, constants=("w",)))
    assert "Dense" not in source


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("b h i d, b h j d -> b h i j", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ij->ji", [(2, 3)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("bchw->bc", [(2, 3, 4, 5)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = {f"x{index}": dyadic(*shape) for index, shape in enumerate(shapes)}
    check(Case("Einsum", inputs, {"equation": equation}), spatial=len(shapes[0]) == 4)
