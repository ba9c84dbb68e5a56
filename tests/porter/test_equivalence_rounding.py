"""The floor of rounded operations: what it is for sums, and what it does not forgive."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import porter
from porter.equivalence.compare import Thresholds
from porter.equivalence.draws import normal_draw
from porter.equivalence.references import measure
from porter.equivalence.rounding import OperationFloors
from porter.runners.base import UNIT_ROUNDOFF
from porter.runners.torch import TorchRunner


class Total(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1, keepdim=True) - 0.0


@pytest.mark.parametrize("terms", [16, 4096])
def test_the_floor_of_a_sum_grows_with_the_square_root_of_its_terms(terms: int) -> None:
    x = np.ones((400, terms), dtype=np.float32)
    runner = TorchRunner(Total())
    (reference,) = measure(runner, [normal_draw([x], None, 0, "normal")]).draws
    (known,) = OperationFloors(runner, Thresholds())._floors(reference)
    assert known is not None and known.floor is not None
    # The sum is rounded by sqrt(terms) units of itself, the subtraction by one more.
    expected = UNIT_ROUNDOFF * np.sqrt(terms + 1)
    moved = known.floor.condition * UNIT_ROUNDOFF
    assert abs(moved / expected - 1) < 0.1, (moved, expected)


class Deep(nn.Module):
    """Long sums one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(256, 256), nn.ReLU())])
        self.norm = nn.LayerNorm(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layers(x)).softmax(-1)


class Reduced(Deep):
    """The same with factors of ten bits, as tensor cores take them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.float64:
            return super().forward(x)
        for layer in self.layers:
            x = (
                layer(x)
                if isinstance(layer, nn.ReLU)
                else nn.functional.linear(short(x), short(layer.weight), layer.bias)
            )
        return self.norm(x).softmax(-1)


def short(x: torch.Tensor) -> torch.Tensor:
    return (x.view(torch.int32) + 0x1000 & ~0x1FFF).view(torch.float32)


def test_reduced_precision_is_not_forgiven() -> None:
    torch.manual_seed(0)
    right, wrong = Deep().eval(), Reduced().eval()
    wrong.load_state_dict(right.state_dict())
    x = torch.randn(4, 256)
    assert porter.verify(right, right, (x,)).passed
    report = porter.verify(right, wrong, (x,))
    failed = [d for d in report.differences if not d.passed]
    assert {d.leg for d in failed} == {"precision"} and "rounding every operation" in (failed[0].reason or "")
