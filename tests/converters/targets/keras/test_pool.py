"""Pooling against torch in double precision, and against ONNX's reference where torch has no such pooling."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.converters.targets.keras.modules import check_module, noise
from tests.converters.targets.keras.nodes import Case, check, expected, graph_of, ported, run

MAX = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVERAGE = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
# (rank, size, stride, padding)
WINDOWS = [
    *[(2, 2, 2, 0), (2, 3, 1, 1), (2, 3, 2, 1), (2, 3, 3, 0), (2, 2, 3, 1)],
    *[(rank, *window) for rank in (1, 3) for window in ((3, 1, 1), (3, 2, 1))],
]


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def images(rank: int, size: int = 9) -> torch.Tensor:
    return noise(2, 3, *[size, size + 1, size - 1][:rank])


def further(rank: int) -> list[tuple[torch.Tensor]]:
    """Other sizes. torch itself fixes the length that a 1-D max pooling was traced with."""
    return [] if rank == 1 else [(images(rank, 8),), (images(rank, 11),)]


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("rank", "size", "stride", "padding"), WINDOWS)
def test_max_pool_of_negative_numbers(rank: int, ceil_mode: bool, size: int, stride: int, padding: int) -> None:
    pool = MAX[rank](size, stride, padding, ceil_mode=ceil_mode)
    others = [(-x.abs(),) for (x,) in further(rank)]
    check_module(pool, -images(rank).abs(), others=others)
    check_module(pool, -images(rank).abs(), dynamic="none")


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("size", "stride", "padding", "dilation"), [(3, 1, 1, 2), (2, 2, 0, 3), (3, 2, 1, 2)])
def test_dilated_max_pool(rank: int, size: int, stride: int, padding: int, dilation: int) -> None:
    pool = MAX[rank](size, stride, padding, dilation=dilation)
    check_module(pool, -images(rank).abs(), others=[(-x.abs(),) for (x,) in further(rank)])


def test_the_first_of_equal_maxima_gets_the_gradient() -> None:
    ties = torch.from_numpy(np.random.default_rng(2).integers(0, 3, size=(2, 3, 9, 9)).astype(np.float64))
    check_module(nn.MaxPool2d(3, 2, 1, dilation=2), ties)
    check_module(nn.MaxPool2d(3, 2, 1), ties)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize(("rank", "size", "stride", "padding"), WINDOWS)
def test_average_pool(
    rank: int, ceil_mode: bool, count_include_pad: bool, size: int, stride: int, padding: int
) -> None:
    pool = AVERAGE[rank](size, stride, padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
    check_module(pool, images(rank), dynamic="none")
    if not ceil_mode or not count_include_pad or not padding:
        check_module(pool, images(rank), others=further(rank))


@pytest.mark.parametrize(("size", "stride", "padding"), [(3, 2, 1), (3, 3, 1), (2, 3, 1), (4, 3, 2)])
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_a_last_window_that_hangs_over_is_divided_by_what_it_covers(
    size: int, stride: int, padding: int, count_include_pad: bool
) -> None:
    """At every size, those too where the last window would start in the padding and is left out."""
    attributes = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [padding] * 4, "ceil_mode": 1}
    attributes["count_include_pad"] = int(count_include_pad)
    pool = nn.AvgPool2d(size, stride, padding, ceil_mode=True, count_include_pad=count_include_pad)
    case = Case("AveragePool", {"x": images(2).numpy()}, attributes)
    port, generated = ported(graph_of(case))
    for length in (4, 7, 8, 9, 10, 11, 12):
        x = noise(2, 3, length, length + 1)
        found = port(keras.ops.convert_to_tensor(x.numpy()))
        np.testing.assert_allclose(found, pool(x), rtol=1e-12, atol=1e-12, err_msg=generated.source)


def test_pools_are_written_as_people_write_them() -> None:
    assert "layers.MaxPooling2D(2)" in check_module(nn.MaxPool2d(2), images(2))
    assert "layers.AveragePooling2D(3, strides=2)" in check_module(nn.AvgPool2d(3, 2, 1), images(2))
    source = check_module(nn.AvgPool2d(3, 1, 1, count_include_pad=False), images(2))
    assert 'layers.AveragePooling2D(3, strides=1, padding="same")' in source


@pytest.mark.parametrize("kind", [MAX, AVERAGE])
@pytest.mark.parametrize(
    ("size", "stride", "lengths", "dynamic", "same"),
    [
        (2, 2, (9, 8), "auto", True),
        (1, 1, (9, 8), "auto", False),  # nothing hangs over
        (3, 3, (9, 8), "auto", False),  # a rest of one would be padded at both ends
        (3, 2, (9, 8), "auto", False),
        (3, 2, (22, 22), "none", True),
        (3, 2, (22, 21), "none", False),  # nothing hangs over in the second axis, where "same" would pad
        (3, 3, (8, 11), "none", True),
        (3, 3, (7, 10), "none", False),
        (2, 3, (10, 10), "none", True),
        (2, 3, (9, 9), "none", False),  # a last window would start beyond the end
        ((2, 1), (2, 1), (9, 8), "auto", True),
        (4, 2, (9, 9), "none", False),
    ],
)
def test_a_last_window_that_hangs_over_is_padding_of_keras_where_it_can_be(
    kind: Any, size: Any, stride: Any, lengths: tuple[int, int], dynamic: str, same: bool
) -> None:
    height, width = lengths
    others = [(-noise(2, 3, h, w).abs(),) for h, w in ((10, 13), (11, 12), (14, 7))] if dynamic == "auto" else []
    pool = kind[2](size, stride, ceil_mode=True)
    source = check_module(pool, -noise(2, 3, height, width).abs(), others=others, dynamic=dynamic)
    assert ('padding="same"' in source) == same, source


@pytest.mark.parametrize(("size", "bins"), [(12, 7), (13, 1), (13, 2), (13, 3), (13, 6), (12, 6)])
@pytest.mark.parametrize("kind", [nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d])
def test_adaptive_pool(size: int, bins: int, kind: Any) -> None:
    check_module(kind(bins), noise(2, 3, size, size), dynamic="none")


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("size", [9, 10])
def test_pool_with_automatic_padding(op: str, auto_pad: str, size: int) -> None:
    """Against torch with the padding written out; ONNX's reference miscounts the windows of SAME_LOWER."""
    x = noise(2, 3, size, size + 1)
    pads = []
    for length, kernel in ((size + 1, 2), (size, 3)):
        total = max(0, (-(-length // 2) - 1) * 2 + kernel - length) if auto_pad != "VALID" else 0
        pads += [total // 2, total - total // 2] if auto_pad == "SAME_UPPER" else [total - total // 2, total // 2]
    if op == "MaxPool":
        wanted = F.max_pool2d(F.pad(x, pads, value=-float("inf")), (3, 2), 2)
    else:
        inside = F.avg_pool2d(F.pad(torch.ones_like(x), pads), (3, 2), 2)
        wanted = F.avg_pool2d(F.pad(x, pads), (3, 2), 2) / inside
    attributes = {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": auto_pad}
    check(Case(op, {"x": x.numpy()}, attributes), dynamic=auto_pad != "SAME_LOWER", right=[wanted.numpy()])


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_lp_pool(p: int, dilation: int) -> None:
    inputs = {"x": np.random.default_rng(5).normal(size=(2, 3, 9, 10))}
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [dilation] * 2, "p": p}
    check(Case("LpPool", inputs, attributes))


@pytest.mark.parametrize(("op", "reduce"), [("GlobalAveragePool", np.mean), ("GlobalMaxPool", np.max)])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_global_pool(op: str, reduce: Any, rank: int) -> None:
    x = images(rank).numpy()
    check(Case(op, {"x": x}), right=[reduce(x, axis=tuple(range(2, rank + 2)), keepdims=True)])


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2]},
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "storage_order": 1},
        {"kernel_shape": [2, 3], "strides": [2, 2], "dilations": [2, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ],
)
@pytest.mark.parametrize("shape", [(2, 3, 6, 7), (3, 3, 3, 3)])
def test_indices_of_maxima(attributes: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Against their meaning: the row of the whole input, row by row or column by column, holds the maxima there."""
    x = np.random.default_rng(5).permutation(np.prod(shape)).reshape(shape).astype(np.float64)
    case = Case("MaxPool", {"x": x}, attributes, outputs=2)
    order = "F" if attributes.get("storage_order") else "C"
    rows = np.stack([plane.reshape(-1, order=order) for sample in x for plane in sample]).reshape(-1)
    (values, indices), _, _ = run(case, right=[x])
    wanted = expected(Case("MaxPool", {"x": x}, {k: v for k, v in attributes.items() if k != "storage_order"}))[0]
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(rows[indices], values)


def test_the_first_of_equal_maxima_is_the_index() -> None:
    x = np.zeros((1, 2, 4, 4))
    (_, indices), _, _ = run(
        Case("MaxPool", {"x": x}, {"kernel_shape": [2, 2], "strides": [2, 2]}, outputs=2), right=[x]
    )
    np.testing.assert_array_equal(indices.reshape(-1), [0, 2, 8, 10, 16, 18, 24, 26])


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("dilation", "counted"), [(1, 0), (1, 1), (2, 0), (2, 1)])
@pytest.mark.parametrize("size", [9, 10])
def test_automatic_padding_with_holes(op: str, auto_pad: str, dilation: int, counted: int, size: int) -> None:
    """The same with its padding written out, at sizes known while porting or not."""
    x = np.random.default_rng(1).normal(size=(2, 3, size, size + 1))
    pads, ones = [], [size, size + 1]
    for length, kernel in zip(ones, (3, 2), strict=True):
        total = max(0, (-(-length // 2) - 1) * 2 + (kernel - 1) * dilation + 1 - length)
        pads.append((total // 2, total - total // 2) if auto_pad == "SAME_UPPER" else (total - total // 2, total // 2))
    common = {"kernel_shape": [3, 2], "strides": [2, 2], "dilations": [dilation] * 2}
    if op == "AveragePool":
        common["count_include_pad"] = counted
    written = {"pads": [pads[0][0], pads[1][0], pads[0][1], pads[1][1]]}
    right = run(Case(op, {"x": x}, common | written), right=[x])[0]
    for dynamic in (True, False):
        check(Case(op, {"x": x}, common | {"auto_pad": auto_pad}), dynamic=dynamic, right=right)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize(
    ("size", "stride", "padding", "ceil_mode"), [(3, 2, 1, False), (3, 2, 1, True), (2, 2, 1, False)]
)
def test_zeros_are_as_good_as_nothing_behind_a_relu(
    rank: int, size: int, stride: int, padding: int, ceil_mode: bool
) -> None:
    """Also for gradients, in windows that hold nothing but zeros (most of these are negative before the ReLU)."""
    net = nn.Sequential(nn.ReLU(), MAX[rank](size, stride, padding, ceil_mode=ceil_mode))
    source = check_module(net, images(rank) - 1.5, others=[(x - 1.5,) for (x,) in further(rank)])
    assert "layers.ZeroPadding" in source and "inf" not in source


def test_zeros_are_no_good_where_numbers_are_negative() -> None:
    for before in (nn.Tanh(), nn.LeakyReLU(0.25), nn.Identity()):
        assert "-inf" in check_module(nn.Sequential(before, nn.MaxPool2d(3, 2, 1)), images(2) - 1.5)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("size", [(5, 6), (6, 5), (7, 7)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_indices_of_maxima_with_automatic_padding(auto_pad: str, size: tuple[int, int], dilation: int) -> None:
    """torch counts in what is padded, ONNX in the input."""
    x = np.random.default_rng(0).normal(size=(2, 3, *size))
    kernel, strides, around = (3, 2), (2, 2), []
    for length, extent, stride in zip(size, kernel, strides, strict=True):
        reach = (extent - 1) * dilation + 1
        total = max(0, (-(-length // stride) - 1) * stride + reach - length)
        around.append(
            (total // 2, total - total // 2) if auto_pad == "SAME_UPPER" else (total - total // 2, total // 2)
        )
    padded = np.pad(x, ((0, 0), (0, 0), *around), constant_values=-np.inf)
    values, places = torch.nn.functional.max_pool2d(
        torch.from_numpy(padded), kernel, strides, dilation=dilation, return_indices=True
    )
    rows, columns = np.divmod(places.numpy(), padded.shape[3])
    planes = np.arange(6).reshape(2, 3, 1, 1) * size[0] * size[1]
    indices = planes + (rows - around[0][0]) * size[1] + columns - around[1][0]
    attributes = {"kernel_shape": kernel, "strides": strides, "auto_pad": auto_pad, "dilations": [dilation] * 2}
    for dynamic in (False, True):
        check(Case("MaxPool", {"x": x}, attributes, outputs=2), dynamic=dynamic, right=[values.numpy(), indices])
