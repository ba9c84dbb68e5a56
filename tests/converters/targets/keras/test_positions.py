"""Indexing by positions that count along whole axes reads the tensor as it is; any other indexing is still one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.converters.targets.keras.modules import check_module, noise


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def rows(x: torch.Tensor, rank: int) -> torch.Tensor:
    """0, 1, 2, … for every row of x, with axes of length 1 behind it: of `rank` together."""
    return torch.arange(x.shape[0]).reshape(-1, *[1] * (rank - 1))


AS_IT_IS = {
    "one new axis": lambda x: x[rows(x, 3), torch.arange(x.shape[1])],
    "two new axes": lambda x: x[rows(x, 4), torch.arange(x.shape[1])],
    "new axes in front": lambda x: x[rows(x, 2)[None], torch.arange(x.shape[1])],
    "no new axis": lambda x: x[rows(x, 2), torch.arange(x.shape[1])],
    "a part of an axis": lambda x: x[rows(x, 3), torch.arange(2)],
}
READ = {
    "the other order": lambda x: x[rows(x, 2)[:, 0], torch.arange(x.shape[1])[:, None]],
    "from 1": lambda x: x[rows(x, 3), torch.arange(1, x.shape[1])],
    "every other": lambda x: x[rows(x, 3), torch.arange(0, x.shape[1], 2)],
    "backwards": lambda x: x[rows(x, 3), torch.arange(x.shape[1] - 1, -1, -1)],
    "a diagonal": lambda x: x[torch.arange(3), torch.arange(3)],
    "one repeated": lambda x: x[torch.arange(1).expand(2, 3), torch.arange(3)],
    "spread": lambda x: x[rows(x, 3).expand(-1, 2, -1), torch.arange(x.shape[1])],
}


def indexed(source: str) -> bool:
    body = source[source.index("def call") :]
    return "gather_nd(" in body or "ops.take" in body


@pytest.mark.parametrize("dynamic", ["auto", "none"])
@pytest.mark.parametrize("forward", AS_IT_IS.values(), ids=AS_IT_IS)
@pytest.mark.parametrize("rank", [2, 3])
def test_whole_axes_in_order(forward: Callable, dynamic: str, rank: int) -> None:
    """Of a matrix, or of one with an axis behind it."""
    others = [(noise(*shape),) for shape in ((3, 6, 2)[:rank], (7, 4, 2)[:rank])] if dynamic == "auto" else []
    x = noise(*(4, 5, 2)[:rank])
    source = check_module(lambda x: 2 * forward(x), x, dynamic=dynamic, others=others)
    assert not indexed(source), source


@pytest.mark.parametrize("dynamic", ["auto", "none"])
@pytest.mark.parametrize("forward", READ.values(), ids=READ)
@pytest.mark.parametrize("shape", [(4, 5), (4, 4)])
def test_other_positions_are_read(forward: Callable, dynamic: str, shape: tuple[int, int]) -> None:
    others = [(noise(6, 4),), (noise(4, 7),)] if dynamic == "auto" else []
    source = check_module(forward, noise(*shape), dynamic=dynamic, others=others)
    assert indexed(source), source


@pytest.mark.parametrize("dynamic", ["auto", "none"])
@pytest.mark.parametrize("least", [0, -1, 1])
def test_a_condition_that_positions_always_meet(least: int, dynamic: str) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1])[:, None]
        return torch.where((positions >= least) & (x[:, None] > 0), x[:, None], 0.0)

    others = [(noise(6, 4),), (noise(2, 7),)] if dynamic == "auto" else []
    source = check_module(forward, noise(4, 5), dynamic=dynamic, others=others)
    assert ("logical_and" in source) == (least > 0), source


def test_a_mask_that_is_shared_by_queries_is_not_spread_out() -> None:
    def forward(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        spread = mask[:, None, None].expand(-1, -1, x.shape[2], -1)
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=spread)

    mask = torch.from_numpy(np.array([[True, True, False, True, False], [False, False, False, False, False]]))
    source = check_module(forward, noise(2, 3, 5, 4), mask, dynamic="none", gradients=False)
    assert "broadcast_to" not in source, source
