"""Arithmetic of sizes that a model computes with: numbers where Keras runs eagerly, tensors in a graph."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.converters.targets.keras.modules import OfOne, check_module, noise

pytestmark = pytest.mark.usefixtures("keras_double")
OTHERS = [(noise(2, 3, 9, 8),), (noise(3, 3, 4, 5),), (noise(1, 3, 12, 15),)]


class SameConv(nn.Module):
    """A convolution that pads by the size of what it gets, as TensorFlow's does."""

    def __init__(self, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.conv = nn.Conv2d(3, 4, kernel, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pads: list[int] = []
        for size in (x.shape[-1], x.shape[-2]):
            total = max((math.ceil(size / self.stride) - 1) * self.stride + self.kernel - size, 0)
            pads += [total // 2, total - total // 2]
        return self.conv(F.pad(x, pads))


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (5, 2), (2, 3), (1, 2)])
def test_padding_by_the_size_of_the_input(kernel: int, stride: int) -> None:
    check_module(SameConv(kernel, stride), noise(2, 3, 7, 8), others=OTHERS)


SIZES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "max": lambda x: F.pad(x, (0, max(9 - x.shape[2], 0))),
    "max of sizes": lambda x: F.pad(x, (max(x.shape[2], x.shape[3]) - x.shape[3], 0)),
    "min": lambda x: x[:, :, : min(x.shape[2], 5)],
    "min of sizes": lambda x: x[:, :, : min(x.shape[2], x.shape[3])],
    "floor division": lambda x: x[:, :, : (x.shape[2] + 1) // 3],
    "ceil": lambda x: x[:, :, : math.ceil(x.shape[2] / 3)],
    "ceil by negation": lambda x: x[:, :, : -(-x.shape[2] // 3)],
    "mod": lambda x: F.pad(x, (0, (4 - x.shape[3] % 4) % 4)),
    "of a product": lambda x: F.pad(x, (0, max(60 - x.shape[2] * x.shape[3], 0) // 7)),
    "as numbers": lambda x: x * min(x.shape[2], 5) + max(x.shape[3] // 2, 3),
}


@pytest.mark.parametrize("name", SIZES)
def test_arithmetic_of_sizes(name: str) -> None:
    check_module(OfOne(SIZES[name]), noise(2, 3, 7, 8), others=OTHERS)
