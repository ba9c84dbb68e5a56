"""Fourier neural operator in one dimension: learned multipliers on the low frequencies, at any resolution."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {"in_channels": 2, "width": 64, "out_channels": 1, "modes": 16, "depth": 4}
SMALL = {"in_channels": 2, "width": 6, "out_channels": 3, "modes": 4, "depth": 2}

DYNAMIC: dict[str, dict[int, str]] = {"x": {0: "batch", 2: "points"}}


def mix_channels(x: Tensor, weight: Tensor) -> Tensor:
    """One matrix per frequency: (batch, in_channels, modes) and (in_channels, out_channels, modes)."""
    return torch.einsum("bim,iom->bom", x, weight)


class SpectralConv1d(nn.Module):
    """Multiplies the lowest `modes` frequencies of (batch, in_channels, points) by a complex matrix each.

    The complex weight is a real tensor with (real, imaginary) as its last axis, and the product is written out, so that
    optimisers, casts and other runtimes meet complex numbers in the transforms alone.
    """

    def __init__(self, in_channels: int, out_channels: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(in_channels, out_channels, modes, 2) / in_channels)

    def forward(self, x: Tensor) -> Tensor:
        points = x.size(-1)
        spectrum = torch.view_as_real(torch.fft.rfft(x, dim=-1))
        real, imag = spectrum[:, :, : self.modes].unbind(-1)
        weight_real, weight_imag = self.weight.unbind(-1)
        low = torch.stack(
            [
                mix_channels(real, weight_real) - mix_channels(imag, weight_imag),
                mix_channels(real, weight_imag) + mix_channels(imag, weight_real),
            ],
            dim=-1,
        )
        padded = F.pad(low, (0, 0, 0, spectrum.size(2) - self.modes))
        # The spectra of an even length and of the next odd one have the same size: n tells them apart.
        return torch.fft.irfft(torch.view_as_complex(padded), n=points, dim=-1)


class FourierLayer(nn.Module):
    """GELU of the spectral convolution plus a pointwise one: (batch, width, points) is kept."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.spectral = SpectralConv1d(width, width, modes)
        self.pointwise = nn.Conv1d(width, width, kernel_size=1)
        self.activation = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.spectral(x) + self.pointwise(x))


class FNO1d(nn.Module):
    """Functions sampled at (batch, in_channels, points ≥ 2 · modes) to (batch, out_channels, points)."""

    def __init__(self, in_channels: int, width: int, out_channels: int, modes: int, depth: int) -> None:
        super().__init__()
        self.lift = nn.Conv1d(in_channels, width, kernel_size=1)
        self.layers = nn.Sequential(*(FourierLayer(width, modes) for _ in range(depth)))
        self.project = nn.Conv1d(width, out_channels, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.project(self.layers(self.lift(x)))


def make(*, small: bool = False) -> nn.Module:
    """The operator in eval mode with seeded weights."""
    model = FNO1d(**(SMALL if small else FULL))
    seed_weights(model)
    for layer in model.layers:
        # One frequency sums over the channels alone, so the weight is larger than its shape suggests.
        layer.spectral.weight.data *= layer.spectral.modes**0.5
    return model


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """x: float32 (batch, in_channels, points)."""
    size, points = (SMALL, 15) if small else (FULL, 128)
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, size["in_channels"], points), dtype=np.float32)}
