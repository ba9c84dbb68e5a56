"""What tracing leaves of a model is not in its port: nodes that change nothing, zeros that attention gives anyway."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.converters.targets.keras.modules import check_module, noise


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def attended(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


def seen(*shape: int) -> torch.Tensor:
    """A mask by which one query sees nothing and another one key."""
    mask = torch.from_numpy(np.random.default_rng(0).random(shape) < 0.6)
    mask[..., 1, :] = False
    mask[..., 2, 1:] = False
    return mask


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("boolean", [True, False])
def test_a_query_that_sees_nothing_gets_zeros_from_attention_itself(heads: int, boolean: bool) -> None:
    x, mask = noise(2, heads, 5, 4), seen(2, heads, 5, 5)
    mask = mask if boolean else torch.where(mask, 0.5, -float("inf")).float()
    assert torch.equal(attended(x, mask)[:, :, 1], torch.zeros(2, heads, 4))
    source = check_module(attended, x, mask, gradients=False, dynamic="none")
    body = source[source.index("def call") :]
    assert "ops.where" not in body and "ops.max(" not in body, source


def test_a_row_of_another_mask_is_blanked() -> None:
    def forward(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.where(mask.flip(-2).any(-1, keepdim=True), attended(x, mask), 0.0)

    source = check_module(forward, noise(2, 3, 5, 4), seen(2, 3, 5, 5), gradients=False, dynamic="none")
    assert "ops.where" in source[source.index("def call") :], source


def test_nodes_that_change_nothing_are_dropped() -> None:
    def forward(x: torch.Tensor, flags: torch.Tensor) -> torch.Tensor:
        x = x.reshape(x.shape).expand(x.shape[0], -1, 4)
        positions = torch.arange(x.shape[1]) + 0
        everywhere = torch.ones((), dtype=torch.bool)
        return x * positions[:, None] * (everywhere & flags)

    flags = torch.from_numpy(np.random.default_rng(0).random((2, 5, 4)) < 0.5)
    source = check_module(forward, noise(2, 5, 4), flags, gradients=False)
    for gone in ("reshape", "broadcast_to", "+ 0", "logical_and"):
        assert gone not in source, source


class Table(nn.Module):
    """A table that no checkpoint holds, read through an expansion to the shape that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kinds", torch.arange(100.0)[None], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.kinds.expand(1, -1)


def test_a_table_keeps_its_name() -> None:
    assert "self.kinds" in check_module(Table(), noise(3, 100))


@pytest.mark.parametrize("element", [1, -2])
def test_what_adds_something_stays(element: int) -> None:
    source = check_module(lambda x: x * (torch.arange(x.shape[1]) + element)[:, None], noise(2, 5, 4))
    assert f"{abs(element)}" in source[source.index("def call") :]


def test_a_broadcast_is_no_node_that_changes_nothing() -> None:
    """The neutral number brings the shape."""
    check_module(lambda x: x * (torch.arange(1) + torch.zeros(3, 1, dtype=torch.int64)), noise(3, 4))
    check_module(lambda x: x.expand(3, -1) * 2, noise(1, 4), dynamic="none")


IMAGES = {
    1: (lambda x: x[:, None], (2, 9), nn.Conv1d(1, 3, 3, padding=1)),
    2: (lambda x: x[:, None, :, None], (2, 9), nn.Conv2d(1, 3, (3, 1), padding=(1, 0))),
    3: (lambda x: x[:, None], (2, 9, 6, 7), nn.Conv3d(1, 3, 3, padding=1)),
}


class Imaged(nn.Module):
    """Makes an image of its input, for a convolution behind operators that keep the axes in their places."""

    def __init__(self, made: Any, conv: nn.Module) -> None:
        super().__init__()
        self.made, self.conv = made, conv

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.made(x)
        x = F.pad(x, (1, 2, *[0] * (2 * x.dim() - 6)))
        return self.conv(x * 2).amax(1)


@pytest.mark.parametrize(("made", "shape", "conv"), IMAGES.values(), ids=map(str, IMAGES))
def test_what_becomes_an_image_has_its_channels_last_at_once(
    made: Any, shape: tuple[int, ...], conv: nn.Module
) -> None:
    other = noise(3, *[size + 2 for size in shape[1:]])
    for sizes in (
        shape,
        (shape[0], *[shape[0]] * (len(shape) - 1)),
    ):
        source = check_module(Imaged(made, conv), noise(*sizes), others=[(other,)])
        assert "transpose" not in source, source


def test_an_image_of_channels_that_were_there_is_transposed_once() -> None:
    """The channels lie before the axis that becomes its width: they must go behind it."""
    module = Imaged(lambda x: x[:, :, None], nn.Conv2d(5, 3, (1, 3)))
    source = check_module(module, noise(2, 5, 9), others=[(noise(3, 5, 7),)])
    assert source.count("transpose") <= 1, source


def test_an_image_that_is_also_read_flat() -> None:
    class Both(Imaged):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            image = self.made(x)
            return self.conv(image).flatten(1)[:, :18] + image.expand(-1, 2, -1).reshape(x.shape[0], -1)

    check_module(Both(lambda x: x[:, None], nn.Conv1d(1, 3, 3, padding=1)), noise(2, 9), dynamic="none")


@pytest.mark.parametrize(
    "made",
    [
        lambda x: x[:, None, :, None],
        lambda x: x[None, :, None],
        lambda x: x[:, :, None, None],
        lambda x: x.unsqueeze(-1).unsqueeze(0).unsqueeze(-2),
        lambda x: x.unsqueeze(1).unsqueeze(1),
    ],
)
def test_new_axes_are_made_in_one_step(made: Any) -> None:
    source = check_module(lambda x: made(x) * made(x + 1).cos(), noise(4, 4), others=[(noise(3, 5),)])
    assert source.count("expand_dims") <= 3, source
