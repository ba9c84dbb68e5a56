"""Arithmetic, comparisons, logic, activations and casts against ONNX's reference in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converters.targets.keras.nodes import Case, check, run

RNG = np.random.default_rng(7)
# Twins: sizes that tell the axes apart, and sizes that do not.
SHAPES = [(2, 3, 4, 5), (3, 3, 3, 3)]
SPECIAL = np.array([-np.inf, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 3.0, 30.0, np.inf, np.nan])


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) * 2


ANY_NUMBER = [
    "Abs",
    "Atan",
    "Ceil",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Floor",
    "Identity",
    "Neg",
    "Relu",
    "Round",
    "Sigmoid",
]
ANY_NUMBER += ["Asinh", "HardSwish", "Mish", "Selu", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh"]


# ONNX's reference rounds these, or their attributes, to float32.
ROUNDED = dict.fromkeys(("Erf", "HardSwish", "Selu"), 1e-6)


@pytest.mark.parametrize("op", ANY_NUMBER)
@pytest.mark.parametrize("shape", SHAPES)
def test_functions_of_any_number(op: str, shape: tuple[int, ...]) -> None:
    check(Case(op, {"x": normal(*shape)}), spatial=True, atol=ROUNDED.get(op, 1e-12))


@pytest.mark.parametrize(
    ("op", "low", "high"),
    [
        ("Acos", -1, 1),
        ("Acosh", 1, 9),
        ("Asin", -1, 1),
        ("Atanh", -0.9, 0.9),
        ("Log", 0.01, 9),
        ("Sqrt", 0, 9),
        ("Reciprocal", 0.1, 5),
    ],
)
def test_functions_on_their_domain(op: str, low: float, high: float) -> None:
    check(Case(op, {"x": RNG.uniform(low, high, size=(2, 3, 4, 5))}), spatial=True)


@pytest.mark.parametrize("op", ["Abs", "Ceil", "Floor", "IsNaN", "Neg", "Relu", "Round", "Tanh", "Exp", "Sigmoid"])
def test_special_values(op: str) -> None:
    check(Case(op, {"x": SPECIAL}))


@pytest.mark.parametrize(("negative", "positive"), [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_is_inf(negative: int, positive: int) -> None:
    check(Case("IsInf", {"x": SPECIAL}, {"detect_negative": negative, "detect_positive": positive}))


ACTIVATIONS: list[tuple[str, dict[str, Any], float]] = [
    ("LeakyRelu", {"alpha": 0.01}, 1e-8),  # TensorFlow rounds the slope to float32
    ("LeakyRelu", {"alpha": 0.25}, 1e-12),
    ("Elu", {"alpha": 1.0}, 1e-12),
    ("Elu", {"alpha": 0.5}, 1e-12),
    ("Celu", {"alpha": 2.0}, 1e-12),
    ("Selu", {"alpha": 1.5, "gamma": 2.0}, 1e-12),
    ("Gelu", {"approximate": "none"}, 1e-6),  # and ONNX's reference the function
    ("Gelu", {"approximate": "tanh"}, 1e-6),
    ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}, 1e-7),  # ONNX' own attribute is float32
    ("HardSigmoid", {"alpha": 0.25, "beta": 0.5}, 1e-12),
    ("ThresholdedRelu", {"alpha": 0.5}, 1e-12),
    ("Shrink", {"lambd": 0.5, "bias": 0.0}, 1e-12),
    ("Shrink", {"lambd": 0.5, "bias": 0.5}, 1e-12),
    ("Shrink", {"lambd": 0.5, "bias": 0.25}, 1e-12),
]


@pytest.mark.parametrize(("op", "attributes", "atol"), ACTIVATIONS, ids=lambda v: str(v))
@pytest.mark.parametrize("shape", SHAPES)
def test_activations(op: str, attributes: dict[str, Any], atol: float, shape: tuple[int, ...]) -> None:
    check(Case(op, {"x": normal(*shape)}, attributes), spatial=True, atol=atol)


def test_gelu_keeps_its_flavour() -> None:
    exact, tanh = (check(Case("Gelu", {"x": normal(3)}, {"approximate": kind}), atol=1e-6) for kind in ("none", "tanh"))
    assert "ops.gelu(x, approximate=False)" in exact
    assert "ops.gelu(x)" in tanh


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_follows_its_axis(op: str, axis: int, shape: tuple[int, ...]) -> None:
    check(Case(op, {"x": normal(*shape)}, {"axis": axis}), spatial=True)


@pytest.mark.parametrize("slope", [(1,), (3, 1, 1), (1, 1), (3, 4, 5), (1, 4, 1)])
def test_prelu(slope: tuple[int, ...]) -> None:
    case = Case("PRelu", {"x": normal(2, 3, 4, 5), "slope": normal(*slope)}, weights=("slope",), known=(1, 2, 3))
    assert "layers.PReLU" in check(case, spatial=True, rtol=1e-6, atol=1e-6)  # the slope is stored in float32
    check(Case("PRelu", {"x": normal(2, 3, 4, 5), "slope": normal(*slope)}))


# ***** arithmetic *****

OPERANDS = [
    ((2, 3, 4, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 5), ()),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((3, 3, 3, 3), (3,)),
    ((3, 3, 3, 3), (3, 1, 1)),
]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize(("left", "right"), OPERANDS)
def test_arithmetic_broadcasts_in_any_layout(op: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check(Case(op, {"x": normal(*left), "y": normal(*right)}), spatial=True)


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("count", [1, 3])
def test_many_operands(op: str, count: int) -> None:
    check(Case(op, {f"x{i}": normal(2, 3) for i in range(count)}))


SIGNS = (np.array([5, 5, -5, -5, 6, 0]), np.array([3, -3, 3, -3, -2, 4]))


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.int8])
def test_integers_divide_towards_zero(kind: type) -> None:
    x, y = (operand.astype(kind) for operand in SIGNS)
    found, _, _ = run(Case("Div", {"x": x, "y": y}))
    assert found[0].dtype == kind
    assert found[0].tolist() == [1, -1, -1, 1, -3, 0]


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64])
def test_remainder_signs(kind: type) -> None:
    x, y = (operand.astype(kind) for operand in SIGNS)
    assert run(Case("Mod", {"x": x, "y": y}, {"fmod": 1}))[0][0].tolist() == [2, 2, -2, -2, 0, 0]
    if kind is not np.float64:
        assert run(Case("Mod", {"x": x, "y": y}, {"fmod": 0}))[0][0].tolist() == [2, -1, 1, -2, 0, 0]


@pytest.mark.parametrize("constants", [(), ("y",)])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"])
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8])
def test_integers_keep_their_width(op: str, kind: type, constants: tuple[str, ...]) -> None:
    check(Case(op, {"x": np.array([1, 7, 100], kind), "y": np.array(3, kind)}, constants=constants))


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.0, np.int64(2), np.int64(3)])
@pytest.mark.parametrize("constants", [(), ("y",)])
def test_power(exponent: Any, constants: tuple[str, ...]) -> None:
    check(
        Case("Pow", {"x": RNG.uniform(0.1, 3, size=(2, 3, 4, 5)), "y": np.asarray(exponent)}, constants=constants),
        spatial=True,
    )


def test_power_keeps_the_type_of_the_base() -> None:
    check(Case("Pow", {"x": np.array([1, 2, 3], np.int64), "y": np.array([0.5, 2, 3])}))


BOUNDS = [(0.0, 6.0), (-1.0, 1.0), (0.0, None), (None, 0.5), (None, None), (1.0, -1.0)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
@pytest.mark.parametrize("constants", [(), ("low", "high")])
def test_clip(low: float | None, high: float | None, constants: tuple[str, ...]) -> None:
    bounds = {name: None if bound is None else np.asarray(bound) for name, bound in (("low", low), ("high", high))}
    check(Case("Clip", {"x": normal(2, 3, 4, 5), **bounds}, constants=constants), spatial=True)


def test_clip_of_integers() -> None:
    for kind in (np.int8, np.int64):
        check(Case("Clip", {"x": np.array([-3, 5], kind), "low": np.array(0, kind)}, constants=("low",)))


def test_relu6() -> None:
    assert "ops.relu6(x)" in check(
        Case("Clip", {"x": normal(5) * 9, "low": np.array(0.0), "high": np.array(6.0)}, constants=("low", "high"))
    )


# ***** comparisons, logic, bits *****


@pytest.mark.parametrize("op", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_comparisons(op: str, kind: type) -> None:
    check(
        Case(op, {"x": RNG.integers(0, 3, (2, 3, 4)).astype(kind), "y": RNG.integers(0, 3, (3, 1)).astype(kind)}),
        spatial=kind is np.float64,
    )


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op: str) -> None:
    check(Case(op, {"x": np.array([[True], [False]]), "y": np.array([True, False])}))


def test_not_and_bits() -> None:
    check(Case("Not", {"x": np.array([True, False])}))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        check(Case(op, {"x": np.array([-12, 9, 7], np.int64), "y": np.array([10, 3, -1], np.int64)}))
    check(Case("BitwiseNot", {"x": np.array([-12, 9], np.int32)}))
    for direction in ("LEFT", "RIGHT"):
        check(
            Case(
                "BitShift",
                {"x": np.array([16, 4], np.uint8), "y": np.array([1, 2], np.uint8)},
                {"direction": direction},
            )
        )


def test_where() -> None:
    condition, x = RNG.random((3, 1, 1)) > 0.5, normal(2, 3, 4, 5)
    check(Case("Where", {"c": condition, "x": x, "y": np.array(-np.inf)}, constants=("y",)))
    check(
        Case("Where", {"c": condition, "x": np.array([1, 2], np.int64), "y": np.array(-1, np.int64)}, constants=("y",))
    )


LARGE = np.array([2**64 - 1, 2**63 + 5, 2**32 + 7, 12, 0], np.uint64)
OTHER = np.array([2**63, 2**63 + 4, 2**33, 5, 3], np.uint64)


@pytest.mark.parametrize(
    "op",
    ["Max", "Min", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
     "Mod", "Add", "Sub", "Mul", "Div"],
)  # fmt: skip
@pytest.mark.parametrize("constants", [(), ("y",)])
def test_unsigned_64_bits(op: str, constants: tuple[str, ...]) -> None:
    check(Case(op, {"x": LARGE, "y": OTHER}, constants=constants))


def test_unsigned_64_bits_of_functions() -> None:
    check(Case("BitShift", {"x": LARGE, "y": np.array([1, 40, 3, 60, 2], np.uint64)}, {"direction": "LEFT"}))
    check(Case("BitShift", {"x": LARGE, "y": np.array([1, 40, 3, 60, 2], np.uint64)}, {"direction": "RIGHT"}))
    check(Case("Where", {"c": np.array([True, False, True, False, True]), "x": LARGE, "y": OTHER}))
    bounds = {"low": np.array(7, np.uint64), "high": np.array(2**63 + 2, np.uint64)}
    for constants in ((), ("low", "high")):
        check(Case("Clip", {"x": LARGE, **bounds}, constants=constants))
        check(Case("Clip", {"x": LARGE, "low": bounds["low"]}, constants=constants[:1]))


# ***** types *****

FLOAT, INT32, INT64, BOOL, DOUBLE = 1, 6, 7, 9, 11


@pytest.mark.parametrize("to", [INT32, INT64, BOOL])
def test_cast_from_float(to: int) -> None:
    check(Case("Cast", {"x": np.array([-2.7, -0.5, 0.0, 0.3, 2.7])}, {"to": to}))


@pytest.mark.parametrize("kind", [np.bool_, np.int32, np.int64])
def test_cast_to_float_takes_the_precision_of_the_model(kind: type) -> None:
    found, _, source = run(Case("Cast", {"x": np.array([0, 1, 3]).astype(kind)}, {"to": FLOAT}))
    assert found[0].dtype == np.float64
    assert "ops.cast(x, self.compute_dtype)" in source


def test_cast_like() -> None:
    check(Case("CastLike", {"x": normal(4), "like": np.array([1], np.int64)}))
