"""Reshaping, joining, cutting, repeating, padding, and tensors made from sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converters.targets.keras.nodes import Case, check

RNG = np.random.default_rng(17)
SHAPES = [(2, 3, 4, 5), (3, 3, 3, 3)]


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def integers(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# ***** the same elements in another shape *****


@pytest.mark.parametrize(
    "shape", [(2, -1), (0, -1), (0, 3, -1), (-1,), (0, 0, -1), (2, 3, 2, 2, 5), (6, 20), (2, 60, 1)]
)
def test_reshape(shape: tuple[int, ...]) -> None:
    for dynamic in (False, True):
        check(
            Case("Reshape", {"x": normal(2, 3, 4, 5), "shape": integers(*shape)}, constants=("shape",)),
            spatial=True,
            dynamic=dynamic,
        )


def test_reshape_to_a_computed_shape() -> None:
    check(Case("Reshape", {"x": normal(2, 3, 4), "shape": integers(4, 6)}, sized=("shape",)))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, 4, -1])
def test_flatten(axis: int) -> None:
    for dynamic in (False, axis != 2):
        check(Case("Flatten", {"x": normal(2, 3, 4, 5)}, {"axis": axis}), spatial=True, dynamic=dynamic)


@pytest.mark.parametrize("perm", [(0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("shape", SHAPES)
def test_transpose(perm: tuple[int, ...], shape: tuple[int, ...]) -> None:
    check(Case("Transpose", {"x": normal(*shape)}, {"perm": perm}), spatial=True)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, 1, 4, 1), (1, 3)), ((2, 1, 4, 1), (-1,)), ((1, 3, 4, 5), (0,)), ((2, 1, 1, 1), None), ((1, 1, 3, 1), (1,))],
)
def test_squeeze(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> None:
    numbers = None if axes is None else integers(*axes)
    case = Case("Squeeze", {"x": normal(*shape), "axes": numbers}, constants=("axes",))
    check(case, spatial=axes is not None, dynamic=False)
    if axes is not None:
        check(case, spatial=True)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (-1,), (0, 3), (4, 1), (-1, 2)])
@pytest.mark.parametrize("shape", SHAPES)
def test_unsqueeze(axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    check(Case("Unsqueeze", {"x": normal(*shape), "axes": integers(*axes)}, constants=("axes",)), spatial=True)


# ***** joining and cutting *****


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", SHAPES)
def test_concat(axis: int, shape: tuple[int, ...]) -> None:
    check(Case("Concat", {"x": normal(*shape), "y": normal(*shape)}, {"axis": axis}), spatial=True)
    check(Case("Concat", {"x": normal(*shape)}, {"axis": axis}), spatial=True)


@pytest.mark.parametrize(("axis", "sizes"), [(1, (2, 2)), (1, (1, 3)), (-1, (1, 2, 3)), (0, (1, 1)), (2, (3, 0, 1))])
def test_split_by_sizes(axis: int, sizes: tuple[int, ...]) -> None:
    case = Case(
        "Split",
        {"x": normal(2, 4, 4, 6), "split": integers(*sizes)},
        {"axis": axis},
        constants=("split",),
        outputs=len(sizes),
    )
    for dynamic in (False, True):
        check(case, spatial=True, dynamic=dynamic)


@pytest.mark.parametrize(("axis", "count"), [(1, 2), (1, 4), (2, 3), (-1, 4)])
def test_split_by_number(axis: int, count: int) -> None:
    check(
        Case("Split", {"x": normal(2, 4, 4, 6)}, {"axis": axis, "num_outputs": count}, outputs=count),
        spatial=True,
        dynamic=False,
    )


END = 2**63 - 1
SLICES = [
    ((1,), (3,), (1,), None, "x[:, 1:3]"),
    ((0,), (END,), (2,), (2,), "x[:, :, ::2]"),
    ((-2,), (END,), (-1,), None, "x[:, :, :, -2:]"),
    ((0, 1), (2, -1), (2, 3), None, "x[:, :, :2, 1:-1]"),
    ((-1,), (-END,), (3,), (-1,), "ops.flip(x, axis=3)"),
    ((-1, -1), (-END, -END), (1, 2), (-1, -1), "ops.flip(x, axis=(1, 2))"),
    ((3,), (0,), (1,), (-1,), "x[:, 3:0:-1]"),
    ((10,), (-10,), (2,), (-2,), None),
    ((-100,), (100,), (1,), None, None),
    ((2,), (1,), (1,), None, None),
    ((1, 2), (3, 4), None, None, "x[1:3, 2:4]"),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps", "text"), SLICES)
@pytest.mark.parametrize("shape", [(4, 5, 6, 7), (4, 4, 4, 4)])
def test_slice(starts: Any, ends: Any, axes: Any, steps: Any, text: str | None, shape: tuple[int, ...]) -> None:
    given = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    inputs = {"x": normal(*shape), **{name: None if v is None else integers(*v) for name, v in given.items()}}
    case = Case("Slice", inputs, constants=tuple(given))
    for dynamic in (False, True):
        source = check(case, dynamic=dynamic)
        assert text is None or text in source or shape == (4, 4, 4, 4) or not dynamic
        check(case, spatial=axes is not None, dynamic=dynamic)


def test_slice_by_computed_bounds() -> None:
    inputs = {"x": normal(4, 5), "starts": integers(1), "ends": integers(4), "axes": integers(1)}
    check(Case("Slice", inputs, constants=("axes",)))


# ***** repeating and padding *****


@pytest.mark.parametrize(
    ("shape", "target"), [((2, 1, 4), (2, 3, 4)), ((3, 1), (2, 3, 4)), ((2, 3), (1, 1)), ((2, 3), (1,)), ((), (2, 2))]
)
def test_expand(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    check(Case("Expand", {"x": normal(*shape), "shape": integers(*target)}, constants=("shape",)), dynamic=False)
    check(Case("Expand", {"x": normal(*shape), "shape": integers(*target)}, sized=("x", "shape")))


@pytest.mark.parametrize(
    ("number", "text"), [(0.0, "ops.zeros(shape, "), (1.0, "ops.ones(shape, "), (2.5, "ops.full(shape, 2.5, ")]
)
def test_constant_of_shape(number: float, text: str) -> None:
    from onnx import numpy_helper

    value = numpy_helper.from_array(np.array([number], np.float32))
    assert text in check(Case("ConstantOfShape", {"shape": integers(2, 3)}, {"value": value}, sized=("shape",)))


@pytest.mark.parametrize("repeats", [(1, 1, 1, 1), (1, 2, 1, 3), (2, 1, 1, 1)])
@pytest.mark.parametrize("shape", SHAPES)
def test_tile(repeats: tuple[int, ...], shape: tuple[int, ...]) -> None:
    check(Case("Tile", {"x": normal(*shape), "repeats": integers(*repeats)}, constants=("repeats",)), spatial=True)
    check(Case("Tile", {"x": normal(*shape), "repeats": integers(*repeats)}))


PADS = [(0, 0, 1, 2, 0, 0, 2, 1), (0, 1, 0, 0, 0, 2, 0, 0), (1, 0, 0, 0, 1, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0)]


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pad(mode: str, pads: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if mode == "reflect" and pads[0] >= shape[0]:
        pytest.skip("a reflection is smaller than the data")
    check(
        Case("Pad", {"x": normal(*shape), "pads": integers(*pads)}, {"mode": mode}, constants=("pads",)), spatial=True
    )


@pytest.mark.parametrize("value", [0.0, -1.5, -np.inf])
def test_pad_with_a_number(value: float) -> None:
    inputs = {"x": normal(2, 3, 4, 5), "pads": integers(*PADS[0]), "value": np.array(value)}
    for constants in (("pads",), ("pads", "value")):
        check(Case("Pad", inputs, constants=constants), spatial=True)


def test_pad_some_axes() -> None:
    inputs = {"x": normal(2, 3, 4, 5), "pads": integers(1, 0, 2, 1), "value": None, "axes": integers(-1, 1)}
    check(Case("Pad", inputs, constants=("pads", "axes")))


@pytest.mark.parametrize("pads", [(0, -1, 0, 0), (0, 0, 0, -2), (1, -1, -1, 2)])
def test_negative_padding_crops(pads: tuple[int, ...]) -> None:
    x = normal(4, 5)
    found, _, _ = run_pad(x, pads)
    cropped = x[max(-pads[0], 0) : x.shape[0] - max(-pads[2], 0), max(-pads[1], 0) : x.shape[1] - max(-pads[3], 0)]
    right = np.pad(cropped, [(max(pads[0], 0), max(pads[2], 0)), (max(pads[1], 0), max(pads[3], 0))])
    np.testing.assert_array_equal(found, right)


def run_pad(x: np.ndarray, pads: tuple[int, ...]) -> tuple[np.ndarray, None, str]:
    """ONNX's reference does not crop, so only the port runs."""
    import keras

    from tests.converters.targets.keras.nodes import graph_of, ported

    port, generated = ported(graph_of(Case("Pad", {"x": x, "pads": integers(*pads)}, constants=("pads",))))
    return np.asarray(port(keras.ops.convert_to_tensor(x))), None, generated.source


# ***** tensors made from sizes *****


@pytest.mark.parametrize(("start", "end"), [(None, None), (1, None), (0, -1), (-2, None), (1, 2)])
def test_shape(start: int | None, end: int | None) -> None:
    attributes = {name: number for name, number in (("start", start), ("end", end)) if number is not None}
    check(Case("Shape", {"x": normal(2, 3, 4)}, attributes))


def test_size() -> None:
    check(Case("Size", {"x": normal(2, 3, 4)}))


@pytest.mark.parametrize(
    ("start", "limit", "delta"), [(0, 5, 1), (2, 9, 3), (7, 0, -2), (0.0, 1.0, 0.25), (1.0, -1.0, -0.5)]
)
def test_range(start: float, limit: float, delta: float) -> None:
    check(Case("Range", {"start": np.array(start), "limit": np.array(limit), "delta": np.array(delta)}))


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.bool_])
def test_constant_of_shape_keeps_its_type(kind: type) -> None:
    from onnx import numpy_helper

    value = numpy_helper.from_array(np.ones(1, kind))
    check(Case("ConstantOfShape", {"shape": integers(2, 3)}, {"value": value}, sized=("shape",)))


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_eye_like(k: int) -> None:
    check(Case("EyeLike", {"x": normal(3, 4)}, {"k": k, "dtype": 7}))
    check(Case("EyeLike", {"x": normal(3, 3)}, {"k": k}))
