"""Numbers: signs of remainders, types that promote, roundings, ties, infinities, and activations that look alike."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise

A, B = torch.tensor([5, 5, -5, -5, 6, -6, 0]), torch.tensor([3, -3, 3, -3, 3, 3, -2])


def divisions(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Every remainder and quotient that torch has."""
    rounded = [torch.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc")]
    return [torch.remainder(x, y), torch.fmod(x, y), torch.floor_divide(x, y), x % y, x // y, torch.div(x, y), *rounded]


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.float64])
def test_division_of_negatives(kind: torch.dtype) -> None:
    """The sign was wrong and all tests had positive numbers: `remainder` follows the divisor, `fmod` the dividend, and
    floor is not trunc.
    """
    assert torch.remainder(A, B)[:4].tolist() == [2, -1, 1, -2] and torch.fmod(A, B)[:4].tolist() == [2, 2, -2, -2]
    assert (A // B)[:4].tolist() == [1, -2, -2, 1]
    shift = 0.25 if kind.is_floating_point else 0
    check_module(divisions, A.to(kind) + shift, B.to(kind), gradients=False)


def test_division_by_numbers() -> None:
    """The same by a literal, which a simplification might fold wrongly."""

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        return [x % 3, x % -3, x // 3, x // -3, torch.fmod(x, -3), 7 % (x * 2 + 1), 7 // (x * 2 + 1), x / 2, -x // 2]

    for kind in (torch.int64, torch.int32, torch.float64):
        check_module(every, A.to(kind), dynamic="none", gradients=False)


def test_promotion_between_integers_and_floats() -> None:
    """TensorFlow refused int64 · float32 and int64 · int32, where torch promotes."""

    def every(x: torch.Tensor, n: torch.Tensor) -> list[torch.Tensor]:
        short = n.to(torch.int32)
        sizes = [x.size(1) * 0.5 + x, torch.arange(x.size(1)) * 1.5 + x, x / x.size(0), n * x.size(1)]
        mixed = [n * x, n + 1.5, n / 2, n * 2, short + n, short * short, (x > 0) * x, (x > 0) + n, (x > 0).sum(1)]
        whole = [n + torch.tensor([1, 2, 3]), short + torch.tensor([1, 2, 3]), n.sum(), short.sum(1), n.float().mean(0)]
        powers = [n**2, 2.0**n, x**n, n.abs() ** 0.5, torch.sqrt(n.abs()), n.clamp(-1, 1), torch.where(x > 0, x, 1)]
        return sizes + mixed + whole + powers

    check_module(every, noise(2, 3), torch.tensor([[1, -2, 3], [0, 5, -1]]), gradients=False)


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_types_of_inputs_stay(kind: torch.dtype) -> None:
    """A saved model came back with another integer type."""
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(kind)
    check_module(lambda x: [x, x.float() * 2, x.long() + 1, (x == 1), torch.cat([x, x], 1)], x, gradients=False)


def test_bytes_wrap_as_in_the_source() -> None:
    """Arithmetic of bytes overflows; TensorFlow must not widen them."""
    x = torch.tensor([[250, 7, 255], [1, 128, 0]], dtype=torch.uint8)
    check_module(lambda x: [x + 10, x * 3, x - 8, x // 3, x % 7, x.to(torch.int8), x / 255], x, gradients=False)


def test_roundings() -> None:
    """Halves round to even; casts cut towards zero."""
    x = torch.tensor([-2.5, -1.5, -0.5, -0.2, 0.5, 1.5, 2.5, 2.7, -2.7], dtype=torch.float64)

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        casts = [x.long(), x.to(torch.int32), x.bool(), x.int().double()]
        return [x.round(), x.floor(), x.ceil(), x.trunc(), x.frac(), torch.round(x, decimals=1), x.sign(), *casts]

    check_module(every, x, gradients=False)


def test_ties() -> None:
    """The first of equal maxima, and a stable order of equal numbers."""
    x = torch.tensor([[1.0, 3, 3, 2, 3], [2, 2, 2, 1, 1]], dtype=torch.float64)

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        first = [x.argmax(1), x.argmin(1), x.max(1).indices, x.min(1).indices]
        return [
            *first,
            x.topk(2, 1).values,
            *x.sort(dim=1, stable=True),
            x.argsort(dim=1, stable=True, descending=True),
        ]

    check_module(every, x, gradients=False)


def test_what_is_no_number() -> None:
    """NaN, infinities and negative zero go through comparisons, extremes and selections as in torch."""
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[nan, 1.0, -inf, 0.0], [inf, -0.0, -1.0, nan]], dtype=torch.float64)

    def every(x: torch.Tensor) -> list[torch.Tensor]:
        tests = [x.isnan(), x.isinf(), x.isfinite(), x > 0, x == x, x != x]
        extremes = [x.amax(1), x.relu(), x.clamp(-2, 2), torch.maximum(x, -x), torch.minimum(x, x * 0 + 1)]
        cleaned = [
            torch.nan_to_num(x.clamp(-9, 9)),  # the largest number is another one in float64
            torch.nan_to_num(x, 0.5, 7.0, -7.0),
            torch.where(x.isnan(), 0.0, x),
            x.nansum(1),
        ]
        return [*tests, *extremes, *cleaned, 1 / (x * 0 + 2), F.leaky_relu(x, 0.25), x.masked_fill(x.isnan(), 3.0)]

    check_module(every, x, gradients=False)


@pytest.mark.xfail(strict=True, reason="torch's sign of NaN is 0; that of ONNX, numpy and TensorFlow is NaN")
def test_the_sign_of_nan() -> None:
    check_module(torch.sign, torch.tensor([float("nan"), -1.0], dtype=torch.float64), gradients=False)


def test_gelu_keeps_its_flavour() -> None:
    """The exact and the approximate GELU differ by 5e-4, so that 7 % of the elements failed at 1e-4 and a port "passed"
    at 1e-3.
    """
    x = torch.linspace(-6, 6, 101, dtype=torch.float64)
    exact, approximate = F.gelu(x), F.gelu(x, approximate="tanh")
    assert 4e-4 < (exact - approximate).abs().max() < 6e-4
    # TensorFlow's own function rounds its constants to float32.
    source = check_module(lambda x: [F.gelu(x), F.gelu(x, approximate="tanh")], x, rtol=1e-7, atol=1e-7)
    assert "approximate=False" in source, source
    written = [
        lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)),
        lambda x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))),
        lambda x: x * torch.sigmoid(1.702 * x),
    ]
    check_module(lambda x: [function(x) for function in written], x, rtol=1e-7, atol=1e-7)


ACTIVATIONS: list[nn.Module] = [
    *[nn.SiLU(), nn.Mish(), nn.Softplus(2, 5), nn.Softplus(), nn.ELU(0.7), nn.SELU(), nn.CELU(1.3), nn.Hardswish()],
    *[nn.Hardsigmoid(), nn.LeakyReLU(0.2), nn.ReLU6(), nn.Hardtanh(-0.5, 2), nn.Threshold(0.3, -2), nn.Softsign()],
    *[nn.Tanhshrink(), nn.Hardshrink(0.4), nn.Softshrink(0.3), nn.LogSigmoid(), nn.GLU(1)],
    *[nn.Softmin(1), nn.Softmax(1), nn.LogSoftmax(1), nn.PReLU(), nn.PReLU(4)],
]


def test_activations_keep_their_numbers() -> None:
    """A slope, a threshold or a beta at the other framework's default."""

    def every(x: torch.Tensor) -> list[Any]:
        return [activation(x) for activation in ACTIVATIONS]

    class All(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(ACTIVATIONS)

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [part(x) for part in self.parts]

    # TensorFlow rounds the slope of LeakyReLU to float32.
    check_module(All(), noise(3, 4, 5) * 3, others=[[noise(2, 4, 7) * 3]], rtol=1e-7, atol=1e-7)
