"""Convolutions, their transposes and padding: who pads where, and by how much."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.families import RANKS, images
from tests.converters.targets.keras.modules import Each, check_module, noise

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
# kernel, stride, padding, dilation
WINDOWS = [
    *[(3, 2, 1, 1), (3, 1, 1, 1), (5, 2, 2, 1), (1, 2, 0, 1), (5, 3, 2, 1), (4, 2, 1, 1), (2, 2, 1, 1), (3, 2, 0, 1)],
    *[(3, 2, 2, 2), (3, 1, 2, 2), (3, 1, "same", 1), (4, 1, "same", 1)],
]


@pytest.mark.parametrize("rank", RANKS)
def test_strided_convolutions_at_odd_and_even_sizes(rank: int) -> None:
    """A ResNet whose copied weights agreed at stride 1 was far off at stride 2: on an even size Keras' "same" pads
    (0, 1) where torch pads (1, 1).
    """
    windows = WINDOWS if rank < 3 else [WINDOWS[0], WINDOWS[5], WINDOWS[8]]
    family = Each(*[CONV[rank](3, 4, k, s, p, dilation=d) for k, s, p, d in windows])
    check_module(family, images(rank, 9), others=[[images(rank, 10, batch=3)]], gradients=False)


@pytest.mark.parametrize("size", [9, 10])
def test_only_what_is_exactly_same_is_written_as_same(size: int) -> None:
    """ "same" was written for every padding of k // 2, though it is that at stride 1 only."""
    same, other = [(3, 1, 1), (5, 1, 2)], [(3, 2, 1), (3, 1, 2), (5, 3, 2)]
    for windows in (same, other):
        family = Each(*[nn.Conv2d(3, 4, kernel, stride, padding) for kernel, stride, padding in windows])
        source = check_module(family, noise(2, 3, size, size), dynamic={"x": {0: "batch"}})
        assert source.count('padding="same"') == (len(windows) if windows is same else 0), source


def test_height_and_width_keep_their_own_padding() -> None:
    """Height and width were exchanged where kernel, stride and padding differ between them."""
    family = Each(*[nn.Conv2d(5, 5, (5, 3), (2, 3), padding, (1, 2)) for padding in [(2, 1), (0, 3)]])
    check_module(family, noise(5, 5, 9, 9), others=[[noise(1, 5, 12, 9)]])


def test_padding_modes_of_convolutions() -> None:
    """A padding mode was dropped and zeros took its place."""
    family = Each(*[nn.Conv2d(3, 2, 3, 2, 1, padding_mode=mode) for mode in ("reflect", "replicate", "circular")])
    check_module(family, images(2, 6), others=[[images(2, 7)]])


# kernel, stride, padding, output padding, dilation
SPREADS = [
    *[(3, 3, 1, 0, 1), (4, 3, 1, 0, 1), (3, 2, 1, 0, 1), (3, 2, 1, 1, 1), (4, 2, 1, 0, 1), (2, 2, 0, 0, 1)],
    *[(3, 1, 1, 0, 1), (1, 2, 0, 1, 1), (5, 3, 2, 2, 1), (2, 3, 0, 0, 1), (3, 1, 0, 0, 2), (3, 1, 2, 0, 2)],
]


@pytest.mark.parametrize("rank", RANKS)
def test_transposed_convolutions_are_cropped(rank: int) -> None:
    """Decoders came out wrong for some kernels and strides: padding before a transposed convolution is no inverse, it
    is a crop of the full result.
    """
    spreads = SPREADS if rank < 3 else SPREADS[1:4]
    family = Each(*[TRANSPOSED[rank](3, 4, k, s, p, o, dilation=d) for k, s, p, o, d in spreads])
    check_module(family, images(rank, 5), others=[[images(rank, 6, batch=3)]], gradients=False)


def test_output_padding_adds_real_values() -> None:
    """An image came out one row and column too small, or with zeros there: output_padding was lost."""
    layers = [nn.ConvTranspose2d(3, 6, 3, 2, 1, output_padding=1, bias=bias) for bias in (True, False)]
    uneven = nn.ConvTranspose2d(3, 2, 3, (3, 2), (1, 0), output_padding=(2, 1))
    assert layers[0](torch.zeros(1, 3, 28, 28)).shape[2:] == (56, 56)
    check_module(Each(*layers, uneven), noise(2, 3, 7, 8), others=[[noise(1, 3, 28, 28)]])


@pytest.mark.parametrize("rank", RANKS)
def test_grouped_transposed_convolutions(rank: int) -> None:
    """Groups were refused, or split along the wrong axis of the kernel, or written as one kernel with blocks of zeros
    that train away from zero.
    """
    groups = [(4, 4, 4, {}), (4, 2, 2, {}), (4, 8, 2, {"output_padding": 1})][: None if rank < 3 else 2]
    family = Each(*[TRANSPOSED[rank](i, o, 4, 2, 1, groups=g, **more) for i, o, g, more in groups])
    check_module(family, images(rank, 3, channels=4), others=[[images(rank, 4, channels=4, batch=1)]])


class Residual(nn.Module):
    """A depthwise convolution after the sum with another one."""

    def __init__(self, rank: int, channels: int, multiplier: int = 1) -> None:
        super().__init__()
        self.dw = CONV[rank](channels, channels, 3, padding=1, groups=channels)
        self.dw2 = CONV[rank](channels, multiplier * channels, 3, padding=1, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dw2(x + self.dw(x))


@pytest.mark.parametrize(("size", "multiplier"), [((6, 6, 6, 6), 1), ((2, 6, 5, 8), 1), ((3, 3, 3, 3), 2)])
def test_depthwise_convolutions_are_one_layer_each(size: tuple[int, ...], multiplier: int) -> None:
    """Only the first depthwise convolution of a stage became one layer, the others 120 splits each: the number of
    groups was compared with the wrong axis.
    """
    source = check_module(Residual(2, size[1], multiplier), noise(*size), others=[[noise(7, size[1], 9, 4)]])
    assert source.count("layers.DepthwiseConv2D(") == 2 and "ops.split" not in source, source
    assert ("depth_multiplier=2" in source) == (multiplier == 2), source


def test_depthwise_convolutions_of_other_ranks() -> None:
    source = check_module(Residual(1, 5), noise(5, 5, 5), others=[[noise(1, 5, 8)]])
    assert source.count("layers.DepthwiseConv1D(") == 2 and "ops.split" not in source, source
    check_module(Residual(3, 3), noise(3, 3, 3, 3, 3), others=[[noise(1, 3, 4, 5, 2)]])


# TensorFlow's depthwise kernel takes neither uneven strides nor strides and dilation at once.
DEPTHWISE: list[dict[str, Any]] = [
    {"stride": 2},
    {"stride": (2, 1), "padding": (0, 1)},
    {"dilation": 2, "padding": 2},
    {"dilation": (1, 2)},
    {"stride": 2, "dilation": 2, "padding": 2},
]


@pytest.mark.parametrize(("out", "groups"), [(4, 4), (6, 2)])
def test_depthwise_strides_and_dilations(out: int, groups: int) -> None:
    family = Each(*[nn.Conv2d(4, out, 3, groups=groups, **options) for options in DEPTHWISE])
    check_module(family, images(2, 9, channels=4), gradients=out == groups)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_mirrored_pads(mode: str) -> None:
    """Zeros stood where mirrored values belong; the largest legal pad is one less than the size."""
    amounts = [(1, 0), (0, 2), (3, 3), (-1, 2) if mode == "circular" else (2, 1)]

    def padded(x: torch.Tensor) -> list[torch.Tensor]:
        images = [F.pad(x, (a, b, b, a), mode=mode) for a, b in amounts]
        lines = [F.pad(x[:, :, 0], (a, b), mode=mode) for a, b in amounts]
        return [*images, *lines, F.pad(x[:, :, None], (1, 0, 2, 1, 0, 0), mode=mode)]

    check_module(padded, noise(4, 4, 4, 4), others=[[noise(1, 3, 5, 6)]], gradients=False)


def test_constant_pads() -> None:
    """A pad by another value than zero, and one that crops."""
    pads: list[tuple[tuple[int, ...], float]] = [((1, 2), -3.5), ((0, 1, 2, 0), 0.0), ((-1, -1), 0.0)]
    pads += [((-1, 2, 1, -2), 7.0), ((1, 1, 1, 1, 1, 1, 1, 1), float("-inf"))]
    check_module(
        lambda x: [F.pad(x, pad, value=value) for pad, value in pads], noise(4, 4, 4, 4), others=[[noise(1, 3, 5, 6)]]
    )


def test_pads_between_convolutions_follow_the_layout() -> None:
    """A pad of the last two axes must pad height and width, whatever axes these are in the port."""
    net = nn.Sequential(
        nn.Conv2d(4, 4, 1),
        nn.ReflectionPad2d((1, 0, 2, 3)),
        nn.ZeroPad2d((0, 1, 2, 0)),
        nn.ReplicationPad2d((2, 0, 0, 1)),
        nn.CircularPad2d((1, 1, 0, 2)),
        nn.ConstantPad2d((1, 0, 0, 0), -2.0),
        nn.Conv2d(4, 4, 3),
    )
    source = check_module(net, noise(4, 4, 4, 4), others=[[noise(2, 4, 5, 6)]])
    assert "ops.transpose(" not in source, source
