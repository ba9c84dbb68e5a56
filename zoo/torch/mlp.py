"""Deep GELU network that is ill-conditioned on purpose.

Its own float32 rounding moves the outputs by about 1e-4, so a fixed absolute tolerance would call a perfect port wrong.
"""

import numpy as np
import torch
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {"in_features": 48, "width": 256, "out_features": 20}
SMALL = {"in_features": 6, "width": 16, "out_features": 5}

DYNAMIC: dict[str, dict[int, str]] = {"x": {0: "batch"}}


class MLP(nn.Module):
    """Features (batch, in_features) to (batch, out_features) through `depth` square GELU layers."""

    def __init__(self, in_features: int, width: int, out_features: int, depth: int = 12) -> None:
        super().__init__()
        self.embed = nn.Linear(in_features, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.activation = nn.GELU()
        self.head = nn.Linear(width, out_features)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for layer in self.layers:
            x = self.activation(layer(x))
        return self.head(x)


def ill_conditioned(size: int, rng: np.random.Generator) -> np.ndarray:
    """A random float64 matrix (size, size) with singular values from 10^0.9 down to 10^-2."""
    left, _ = np.linalg.qr(rng.standard_normal((size, size)))
    right, _ = np.linalg.qr(rng.standard_normal((size, size)))
    return left * np.logspace(0.9, -2.0, size) @ right


def make(*, small: bool = False) -> nn.Module:
    """The network in eval mode with seeded weights."""
    model = MLP(**(SMALL if small else FULL))
    seed_weights(model)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.copy_(torch.from_numpy(ill_conditioned(layer.in_features, rng)))
    return model


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """x: float32 (batch, in_features)."""
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, (SMALL if small else FULL)["in_features"]), dtype=np.float32)}
