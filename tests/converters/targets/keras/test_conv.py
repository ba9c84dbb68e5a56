"""Convolutions and their transposes against torch in double precision: 1-D to 3-D, odd and even sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise
from tests.converters.targets.keras.nodes import Case, check

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def images(rank: int, size: int = 9, channels: int = 4) -> torch.Tensor:
    return noise(2, channels, *[size, size + 1, size - 1][:rank])


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "arguments",
    [
        {"kernel_size": 3, "padding": 1},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 4, "padding": "same"},
        {"kernel_size": 3, "dilation": 2, "padding": 2},
        {"kernel_size": 3, "stride": 2, "dilation": 2, "padding": 1},
        {"kernel_size": 3, "groups": 2, "padding": 1},
        {"kernel_size": 3, "groups": 4, "stride": 2, "padding": 1},
        {"kernel_size": 1, "bias": False},
    ],
    ids=str,
)
def test_conv(rank: int, arguments: dict[str, Any]) -> None:
    check_module(CONV[rank](4, 8, **arguments), images(rank), others=[(images(rank, 10),)])


def test_conv_is_written_as_people_write_it() -> None:
    source = check_module(nn.Conv2d(4, 8, 3, padding=1), images(2))
    assert 'layers.Conv2D(8, 3, padding="same")' in source
    source = check_module(nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False), images(2))
    assert "layers.ZeroPadding2D(1)" in source and "layers.Conv2D(8, 3, strides=2, use_bias=False)" in source
    source = check_module(nn.Conv2d(4, 8, 3, padding=1, groups=4), images(2))
    assert 'layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)' in source


@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 1)])
def test_depthwise_conv_after_a_residual_sum(stride: tuple[int, int]) -> None:
    """Every depthwise convolution is one layer, wherever its input comes from; all sizes are alike."""

    class Stage(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(8, 8, 3, padding=1, groups=8)
            self.second = nn.Conv2d(8, 8, (3, 5), stride=stride, padding=(1, 2), groups=8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(x + self.first(x))

    source = check_module(Stage(), noise(2, 8, 8, 8), others=[(noise(3, 8, 7, 9),)])
    assert source.count("layers.DepthwiseConv2D(") == 1 + (len(set(stride)) == 1)


def test_conv_with_a_computed_kernel() -> None:
    function = torch.nn.functional.conv2d
    check_module(lambda x, w: function(x, w, stride=2, padding=1), images(2), noise(8, 4, 3, 3), dynamic="none")
    check_module(lambda x, w: function(x, w, padding=1, groups=2), images(2), noise(8, 2, 3, 3), dynamic="none")


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "arguments",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": 4, "stride": 2, "padding": 1},
        {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
        {"kernel_size": 3, "stride": 2, "output_padding": 1},
        {"kernel_size": 3, "padding": 2},
        {"kernel_size": 2, "stride": 3},
        {"kernel_size": 2, "stride": 3, "output_padding": 2},
        {"kernel_size": 3, "dilation": 2},
        {"kernel_size": 3, "stride": 2, "dilation": 2, "padding": 1, "output_padding": 1},
        {"kernel_size": 3, "stride": 2, "padding": 1, "groups": 2},
        {"kernel_size": 4, "stride": 2, "padding": 1, "groups": 4, "bias": False},
    ],
    ids=str,
)
def test_conv_transpose(rank: int, arguments: dict[str, Any]) -> None:
    check_module(TRANSPOSED[rank](4, 8, **arguments), images(rank, 5), others=[(images(rank, 6),)])


def test_conv_transpose_is_written_as_people_write_it() -> None:
    source = check_module(nn.ConvTranspose2d(4, 8, 4, stride=2, padding=1), images(2))
    assert 'layers.Conv2DTranspose(8, 4, strides=2, padding="same")' in source
    source = check_module(nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1, output_padding=1), images(2))
    assert "layers.Cropping2D(((1, 0), (1, 0)))" in source


def test_conv_transpose_with_a_computed_kernel() -> None:
    function = torch.nn.functional.conv_transpose2d
    check_module(lambda x, w: function(x, w, stride=2, padding=1), images(2), noise(4, 6, 3, 3), dynamic="none")


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("size", [9, 10])
@pytest.mark.parametrize("stride", [1, 2])
def test_conv_with_automatic_padding(auto_pad: str, size: int, stride: int) -> None:
    """Keras' "same" is SAME_UPPER at every size; SAME_LOWER is a number of zeros that only a known size gives."""
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(6, 4, 4, 3)).astype(np.float32).astype(np.float64)
    inputs = {"x": rng.normal(size=(2, 4, size, size)), "w": weight}
    case = Case("Conv", inputs, {"auto_pad": auto_pad, "strides": [stride] * 2}, weights=("w",), known=(1,))
    for dynamic in (False, True):
        source = check(case, dynamic=dynamic)
        assert ('padding="same"' in source) == (auto_pad == "SAME_UPPER")


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("computed", [False, True])
def test_conv_with_automatic_padding_strides_and_holes(auto_pad: str, computed: bool) -> None:
    rng = np.random.default_rng(3)
    inputs = {"x": rng.normal(size=(2, 4, 9, 10)), "w": rng.normal(size=(6, 2, 3, 2)).astype(np.float32).astype(float)}
    attributes = {"auto_pad": auto_pad, "strides": [2, 3], "dilations": [2, 1], "group": 2}
    pads = []
    for length, stride, reach in ((9, 2, 5), (10, 3, 2)):
        total = max(0, (-(-length // stride) - 1) * stride + reach - length)
        pads.append((total // 2, total - total // 2) if auto_pad == "SAME_UPPER" else (total - total // 2, total // 2))
    padded = np.pad(inputs["x"], ((0, 0), (0, 0), *pads))
    right = torch.nn.functional.conv2d(
        torch.from_numpy(padded), torch.from_numpy(inputs["w"]), stride=(2, 3), dilation=(2, 1), groups=2
    )
    case = Case("Conv", inputs, attributes, weights=() if computed else ("w",), known=(1,), sized=("w",))
    for dynamic in (False, True):
        check(case, dynamic=dynamic, right=[right.numpy()])


@pytest.mark.parametrize(
    "attributes",
    [{"groups": 2}, {"dilation": (2, 1)}, {"groups": 2, "stride": (2, 3), "padding": 1, "output_padding": (1, 2)}],
)
def test_grouped_and_dilated_conv_transpose_with_a_computed_kernel(attributes: dict[str, Any]) -> None:
    function = torch.nn.functional.conv_transpose2d
    check_module(lambda x, w: function(x, w, **attributes), images(2), noise(4, 3, 3, 3), dynamic="none")


@pytest.mark.parametrize(
    "attributes", [{"output_shape": [10, 8]}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}]
)
def test_conv_transpose_by_the_size_of_its_result(attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(4, 6, 3, 3)).astype(np.float32).astype(np.float64)
    inputs = {"x": rng.normal(size=(2, 4, 3, 3)), "w": weight}
    check(Case("ConvTranspose", inputs, {"strides": [3, 2], **attributes}, weights=("w",)), dynamic=False)


@pytest.mark.parametrize("output_shape", [[10, 8], [7, 5], [13, 11], [4, 4]])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER"])
@pytest.mark.parametrize("facts", [{}, {"group": 2}, {"dilations": [2, 1]}], ids=str)
def test_conv_transpose_to_one_size_from_any(output_shape: list[int], auto_pad: str, facts: dict[str, Any]) -> None:
    """All that torch gives, cut in its middle; ONNX's reference does not cut so."""
    rng, strides, dilations, group = (
        np.random.default_rng(3),
        (3, 2),
        facts.get("dilations", [1, 1]),
        facts.get("group", 1),
    )
    weight = rng.normal(size=(4, 6 // group, 3, 3)).astype(np.float32).astype(np.float64)
    bias = rng.normal(size=6).astype(np.float32).astype(np.float64)
    inputs = {"x": rng.normal(size=(2, 4, 3, 4)), "w": weight, "b": bias}
    wanted = torch.nn.functional.conv_transpose2d(
        *map(torch.from_numpy, inputs.values()), stride=strides, dilation=tuple(dilations), groups=group
    )
    for axis, size in zip((2, 3), output_shape, strict=True):
        total = max(wanted.shape[axis] - size, 0)
        first = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        kept = wanted.narrow(axis, first, wanted.shape[axis] - total)
        more = list(kept.shape)
        more[axis] = max(size - kept.shape[axis], 0)
        wanted = torch.cat([kept, torch.from_numpy(bias).reshape(1, -1, 1, 1).expand(more)], dim=axis)
    attributes = {"strides": list(strides), "output_shape": output_shape, "auto_pad": auto_pad, **facts}
    case = Case("ConvTranspose", inputs, attributes, weights=("w", "b"), known=(1,))
    for dynamic in (False, True):
        check(case, dynamic=dynamic, right=[wanted.numpy()])
