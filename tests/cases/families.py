"""What families of cases are made of."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.converters.targets.keras.modules import noise

# Layers over images every day, those over lines and volumes in a sweep.
RANKS: list[Any] = [pytest.param(1, marks=pytest.mark.sweep), 2, pytest.param(3, marks=pytest.mark.sweep)]


def images(rank: int, size: int, *, batch: int = 2, channels: int = 3) -> torch.Tensor:
    """Noise of `rank` spatial axes, no two of the same size."""
    return noise(batch, channels, *[size, size + 1, size - 1][:rank])
