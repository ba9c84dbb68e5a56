"""What a parameter is drawn from before anything is trained, in the terms of no framework.

A draw is recorded as numbers, since that is what runs: `kaiming_normal_` ends in `normal_(0, 0.06)`. Where the numbers
of several parameters follow one of the known formulas, with the fans of the target's shapes, `common` finds it again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["constant", "normal", "truncated_normal", "uniform", "orthogonal", "unit_forget_bias"]

# Standard deviations behind which cutting a normal distribution off changes nothing that a float32 could show.
_FAR = 6.0
_MODES = ("fan_in", "fan_out", "fan_avg")


@dataclass(frozen=True)
class Draw:
    """A distribution with its numbers.

    constant (value), normal (mean, deviation), truncated_normal (mean and deviation before it is cut at two of these),
    uniform (low, high), orthogonal (gain), unit_forget_bias: zeros, and ones at an LSTM's forget gate.
    """

    kind: Kind
    numbers: tuple[float, ...] = ()

    def to_json(self) -> str:
        return json.dumps([self.kind, *self.numbers])

    @staticmethod
    def from_json(text: str) -> Draw:
        kind, *numbers = json.loads(text)
        return Draw(kind, tuple(numbers))

    def scaled(self, factor: float, shift: float = 0.0) -> Draw | None:
        """The distribution of `factor · x + shift`; None where it has no name here."""
        match self.kind, self.numbers:
            case "constant", (value,):
                return Draw("constant", (value * factor + shift,))
            case "normal" | "truncated_normal", (mean, deviation):
                return Draw(self.kind, (mean * factor + shift, deviation * abs(factor)))
            case "uniform", (low, high):
                ends = sorted((low * factor + shift, high * factor + shift))
                return Draw("uniform", (ends[0], ends[1]))
            case "orthogonal", (gain,) if not shift:
                return Draw("orthogonal", (gain * abs(factor),))
        return None

    def cut(self, low: float, high: float) -> Draw | None:
        """A normal distribution without what lies outside of [low, high]; None where it has no name here."""
        if self.kind != "normal":
            return None
        mean, deviation = self.numbers
        ends = ((mean - low) / deviation, (high - mean) / deviation) if deviation else (math.inf, math.inf)
        if min(ends) >= _FAR:
            return self
        return (
            Draw("truncated_normal", self.numbers)
            if all(math.isclose(end, 2.0, rel_tol=1e-6) for end in ends)
            else None
        )


@dataclass(frozen=True)
class Scaled:
    """A variance that falls with the fan: `scale / fan`, as the initializers of Glorot and He have it.

    Of a truncated normal distribution it is the variance after it was cut.
    """

    scale: float
    mode: str
    kind: Kind


# The deviation of a normal distribution that was cut at two deviations of its own.
CUT = 0.87962566103423978


def fans(shape: Sequence[int], *, channels_first: bool) -> dict[str, float]:
    """Fan in, fan out and their mean as the target's framework counts them for a kernel of this shape."""
    if len(shape) < 2:
        ends = (shape[0], shape[0]) if shape else (1, 1)
    elif channels_first:  # (out, in, *window)
        window = math.prod(shape[2:])
        ends = (shape[1] * window, shape[0] * window)
    else:  # (*window, in, out)
        window = math.prod(shape[:-2])
        ends = (shape[-2] * window, shape[-1] * window)
    return dict(zip(_MODES, (*ends, sum(ends) / 2), strict=True))


def common(draws: Sequence[tuple[Draw, Sequence[int]]], *, channels_first: bool) -> Draw | Scaled | None:
    """What describes every draw of variables of these shapes: one distribution, or a formula; None without either.

    A round number is a number that somebody wrote; else a formula that is known, or that holds for several shapes.
    """
    first = draws[0][0]
    same = all(is_close(draw, first) for draw, _ in draws)
    if same and (
        first.kind in ("constant", "orthogonal", "unit_forget_bias") or _is_round(max(map(abs, first.numbers)))
    ):
        return first
    if not all(draw.kind == first.kind and _is_centred(draw) for draw, _ in draws):
        return first if same else None
    sizes = [fans(shape, channels_first=channels_first) for _, shape in draws]
    variances = [_variance(draw) for draw, _ in draws]
    for mode in _MODES:
        scales = [variance * fan[mode] for variance, fan in zip(variances, sizes, strict=True)]
        if all(math.isclose(scale, scales[0], rel_tol=1e-5) for scale in scales):
            known = any(math.isclose(scales[0], scale, rel_tol=1e-5) for scale in (1.0, 2.0, 1 / 3))
            if known or (not same and len({fan[mode] for fan in sizes}) > 1):
                return Scaled(scales[0], mode, first.kind)
    return first if same else None


def is_close(a: Draw, b: Draw) -> bool:
    """Whether two draws are the same but for rounding."""
    return a.kind == b.kind and all(
        math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-12) for x, y in zip(a.numbers, b.numbers, strict=True)
    )


def _is_round(number: float) -> bool:
    return float(f"{number:.3g}") == number


def _is_centred(draw: Draw) -> bool:
    match draw.kind, draw.numbers:
        case "normal" | "truncated_normal", (mean, _):
            return mean == 0
        case "uniform", (low, high):
            return math.isclose(low, -high)
    return False


def _variance(draw: Draw) -> float:
    match draw.kind:
        case "uniform":
            return draw.numbers[1] ** 2 / 3
        case "truncated_normal":
            return (draw.numbers[1] * CUT) ** 2
    return draw.numbers[1] ** 2
