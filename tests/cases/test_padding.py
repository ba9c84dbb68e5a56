"""Convolutions, their transposes and padding: who pads where, and by how much."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.pairs import Each, Of, check, noise, port
from tests.cases.steps import train

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
# kernel, stride, padding, dilation
WINDOWS = [
    *[(3, 2, 1, 1), (3, 1, 1, 1), (1, 2, 0, 1), (5, 2, 2, 1), (5, 3, 2, 1), (4, 2, 1, 1), (2, 2, 1, 1), (3, 2, 0, 1)],
    *[(3, 2, 2, 2), (3, 1, 2, 2), (3, 1, "same", 1), (4, 1, "same", 1), (3, 1, "valid", 1)],
]


def images(rank: int, size: int, *, batch: int = 2, channels: int = 3) -> torch.Tensor:
    return noise(batch, channels, *[size, size + 1, size - 1][:rank])


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_at_odd_and_even_sizes(rank: int) -> None:
    """Keras' "same" pads (0, 1) at stride 2 on an even size, where torch pads (1, 1)."""
    windows = WINDOWS if rank < 3 else [WINDOWS[0], WINDOWS[5], WINDOWS[8]]
    family = Each(*[CONV[rank](3, 4, k, s, p, dilation=d) for k, s, p, d in windows])
    check(family, images(rank, 9), others=[[images(rank, 10, batch=3)]])


@pytest.mark.parametrize("size", [9, 10])
def test_only_an_exact_same_is_written_as_same(size: int) -> None:
    """"same" was written for every padding of k // 2, though it is that at stride 1 only."""
    windows = [(3, 1, 1, True), (5, 1, 2, True), (3, 2, 1, False), (3, 1, 2, False)]
    for kernel, stride, padding, same in windows:
        source = check(nn.Conv2d(3, 4, kernel, stride, padding), noise(2, 3, size, size), dynamic={"input": {0: "n"}})
        assert ('padding="same"' in source) == same, source


@pytest.mark.parametrize("padding", [(2, 1), (0, 3)])
def test_uneven_axes_keep_their_own_padding(padding: tuple[int, int]) -> None:
    """Height and width were exchanged where kernel, stride and padding differ between them."""
    net = nn.Conv2d(5, 5, (5, 3), (2, 3), padding, (1, 2))
    check(net, noise(5, 5, 5 + 4, 5 + 4), others=[[noise(1, 5, 12, 9)]])


def test_padding_modes_of_convolutions() -> None:
    """A padding mode was dropped and zeros took its place."""
    modes = ("reflect", "replicate", "circular")
    check(Each(*[nn.Conv2d(3, 2, 3, 2, 1, padding_mode=m) for m in modes]), images(2, 6), others=[[images(2, 7)]])


# kernel, stride, padding, output padding, dilation
SPREADS = [
    *[(3, 3, 1, 0, 1), (4, 3, 1, 0, 1), (3, 2, 1, 0, 1), (3, 2, 1, 1, 1), (4, 2, 1, 0, 1), (2, 2, 0, 0, 1)],
    *[(3, 1, 1, 0, 1), (1, 2, 0, 1, 1), (5, 3, 2, 2, 1), (2, 3, 0, 0, 1), (3, 1, 0, 0, 2), (3, 1, 2, 0, 2)],
]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions_are_cropped(rank: int) -> None:
    """Padding before a transposed convolution is no inverse: it is a crop of the full result."""
    spreads = SPREADS if rank < 3 else SPREADS[1:4]
    family = Each(*[TRANSPOSED[rank](3, 4, k, s, p, o, dilation=d) for k, s, p, o, d in spreads])
    check(family, images(rank, 5), others=[[images(rank, 6, batch=3)]])


@pytest.mark.parametrize("bias", [True, False])
def test_output_padding_adds_real_values(bias: bool) -> None:
    """The row and column of output_padding were lost, or filled with zeros."""
    pair = port(nn.ConvTranspose2d(3, 6, 3, 2, 1, output_padding=1, bias=bias), noise(2, 3, 28, 28))
    pair.check([noise(1, 3, 28, 28)], [noise(2, 3, 7, 8)])
    assert pair.exact(noise(1, 3, 28, 28)).shape[2:] == (56, 56)
    check(nn.ConvTranspose2d(3, 2, 3, (3, 2), (1, 0), output_padding=(2, 1), bias=bias), noise(2, 3, 5, 4))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_grouped_transposed_convolutions(rank: int) -> None:
    """Groups were refused, or split along the wrong axis of the kernel."""
    groups = [(4, 4, 4, {}), (4, 2, 2, {}), (4, 8, 2, {"output_padding": 1})][: None if rank < 3 else 2]
    family = Each(*[TRANSPOSED[rank](i, o, 4, 2, 1, groups=g, **more) for i, o, g, more in groups])
    check(family, images(rank, 3, channels=4), others=[[images(rank, 4, channels=4, batch=1)]])


def test_grouped_transposed_convolutions_train_their_own_kernel_only() -> None:
    """A block-diagonal kernel would train the blocks that the source does not have."""
    pair = port(nn.ConvTranspose2d(4, 4, 3, 2, 1, groups=2), noise(2, 4, 4, 4))
    train(pair, [[noise(2, 4, 4, 4, seed=s)] for s in range(3)])


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
    """The group count was compared with the wrong axis, and later layers became one split per channel."""
    net = Residual(2, size[1], multiplier)
    source = check(net, noise(*size), others=[[noise(7, size[1], 9, 4)]])
    assert source.count("layers.DepthwiseConv2D(") == 2, source
    assert "split" not in source and "concat" not in source, source
    assert ("depth_multiplier=2" in source) == (multiplier == 2), source


def test_depthwise_convolutions_of_other_ranks() -> None:
    """A depthwise convolution of one axis is a layer of its own; of three axes it is a grouped one."""
    source = check(Residual(1, 5), noise(5, 5, 5), others=[[noise(1, 5, 8)]])
    assert source.count("layers.DepthwiseConv1D(") == 2 and "split" not in source, source
    check(Residual(3, 3), noise(3, 3, 3, 3, 3), others=[[noise(1, 3, 4, 5, 2)]])


# kernel, stride, padding, dilation of a depthwise layer: TensorFlow's own takes neither uneven strides nor both at once
DEPTHWISE: list[dict[str, Any]] = [
    {"stride": 2},
    {"stride": 2, "padding": 1},
    {"stride": (2, 1), "padding": (0, 1)},
    {"dilation": 2, "padding": 2},
    {"dilation": (1, 2)},
    {"stride": 2, "dilation": 2, "padding": 2},
]


def test_depthwise_strides_and_dilations() -> None:
    """Uneven strides, or strides together with dilations, fail in TensorFlow's depthwise kernel."""
    check(Each(*[nn.Conv2d(4, 4, 3, groups=4, **o) for o in DEPTHWISE]), images(2, 9, channels=4))
    check(Each(*[nn.Conv2d(4, 6, 3, groups=2, **o) for o in DEPTHWISE]), images(2, 9, channels=4))


MIRRORS = ["reflect", "replicate", "circular"]


@pytest.mark.parametrize("mode", MIRRORS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_mirrored_pads(rank: int, mode: str) -> None:
    """Zeros stood where mirrored values belong; the largest legal pad is one less than the size."""
    amounts = [[1, 0], [0, 2], [3, 3], [-1, 2] if mode == "circular" else [2, 1]]
    pads = [sum(([a, b] if axis % 2 else [b, a] for axis in range(rank)), []) for a, b in amounts]

    def padded(x: torch.Tensor) -> list[torch.Tensor]:
        return [F.pad(x, pad, mode=mode) for pad in pads]

    check(Of(padded), noise(4, 4, *[4, 4, 4][:rank]), others=[[noise(1, 3, *[5, 6, 4][:rank])]])


def test_constant_pads() -> None:
    """A pad by another value than zero, and one that crops."""

    def padded(x: torch.Tensor) -> list[torch.Tensor]:
        pads: list[tuple[tuple[int, ...], float]] = [((1, 2), -3.5), ((0, 1, 2, 0), 0.0), ((-1, -1), 0.0)]
        pads += [((-1, 2, 1, -2), 7.0), ((1, 1, 1, 1, 1, 1, 1, 1), float("-inf"))]
        return [F.pad(x, pad, value=value) for pad, value in pads]

    check(Of(padded), noise(4, 4, 4, 4), others=[[noise(1, 3, 5, 6)]])


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
    source = check(net, noise(4, 4, 4, 4), others=[[noise(2, 4, 5, 6)]])
    assert "transpose" not in source.replace("Transpose", ""), source
