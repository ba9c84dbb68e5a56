"""Overlapping blocks against torch and ONNX's reference in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.converters.targets.keras.modules import check_module, noise
from tests.converters.targets.keras.nodes import Case, check

pytestmark = pytest.mark.usefixtures("keras_double")


@pytest.mark.parametrize(
    ("image", "block", "options"),
    [
        ((6, 5), (2, 2), {"stride": 2, "padding": (0, 1)}),
        ((4, 5), (2, 3), {"padding": 1}),
        ((7, 7), (3, 3), {"dilation": (2, 1), "stride": (1, 2)}),
        ((6, 6), (3, 3), {"stride": 3}),
        ((3, 3), (3, 3), {}),
    ],
)
def test_fold(image: tuple[int, int], block: tuple[int, int], options: dict[str, Any]) -> None:
    """`fold` undoes nothing: where blocks overlap it adds them."""
    blocks = F.unfold(noise(2, 3, *image), block, **options)
    check_module(lambda x: F.fold(x, image, block, **options), blocks, others=[(noise(*(4, *blocks.shape[1:])),)])


def test_fold_of_unfold_at_sizes_that_vary() -> None:
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        return F.fold(F.unfold(x, 3, padding=1), (x.shape[2], x.shape[3]), 3, padding=1)

    check_module(there_and_back, noise(2, 3, 6, 7), others=[(noise(1, 3, 9, 5),)])


@pytest.mark.parametrize(
    ("image", "block", "counts", "attributes"),
    [
        ([9], [3], 4, {"strides": [2]}),
        ([5, 5], [1, 5], 5, {}),
        ([6, 6], [2, 2], 4, {"dilations": [1, 5], "strides": [2, 1], "pads": [0, 0, 0, 1]}),
        ([4, 5, 3], [2, 2, 3], 12, {}),
        ([5, 4], [2, 3], 25, {"pads": [1, 2, 0, 1]}),
    ],
)
def test_any_rank(image: list[int], block: list[int], counts: int, attributes: dict[str, Any]) -> None:
    rank = len(image)
    pads = attributes.get("pads", [0] * 2 * rank)
    strides, holes = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    found = [
        (image[a] + pads[a] + pads[rank + a] - (block[a] - 1) * holes[a] - 1) // strides[a] + 1 for a in range(rank)
    ]
    x = np.random.default_rng(0).standard_normal((2, 2 * int(np.prod(block)), int(np.prod(found))))
    inputs = {"x": x, "image": np.array(image, np.int64), "block": np.array(block, np.int64)}
    check(Case("Col2Im", inputs, attributes, constants=("image", "block")))
