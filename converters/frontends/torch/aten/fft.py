"""Fourier transforms. ONNX holds a complex tensor as real numbers with a last axis (real, imaginary)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.aten.complex import conj
from porter.converters.frontends.torch.table import aten
from porter.errors import UnsupportedError

Value = ir.Value
Size = int | Value
# How each side of torch's `norm` scales the sum: by this power of the number of points.
_FORWARD = {None: 0.0, "backward": 0.0, "ortho": -0.5, "forward": -1.0}
_INVERSE = {None: -1.0, "backward": -1.0, "ortho": -0.5, "forward": 0.0}
_NUMBERED = (0.0, -0.5, -1.0)


def _size(op: Builder, x: Value, axis: int) -> Size:
    size = x.shape[axis]
    return size if isinstance(size, int) else op.size(str(size.value))


def _dft(op: Builder, x: Value, n: Size | None, axis: int, *, inverse: bool = False, onesided: bool = False) -> Value:
    length = None if n is None else op.constant(n, ir.DataType.INT64) if isinstance(n, int) else n
    return op.DFT(x, length, op.constant(axis, ir.DataType.INT64), inverse=int(inverse), onesided=int(onesided))


def _scaled(op: Builder, y: Value, sizes: Sequence[Size], power: float) -> Value:
    """`y` times the number of points to a power."""
    if power == 0:
        return y
    if all(isinstance(size, int) for size in sizes):
        return op.Mul(y, op.constant(float(np.prod([int(size) for size in sizes])) ** power, op.dtype))
    points: Value | None = None
    for size in sizes:
        factor = op.cast(size, op.dtype) if isinstance(size, ir.Value) else op.constant(size, op.dtype)
        points = factor if points is None else op.Mul(points, factor)
    assert points is not None
    return op.Mul(y, op.Pow(points, op.constant(power, op.dtype)))


def _with_imaginary_axis(op: Builder, x: Value) -> Value:
    """Real data in ONNX's form, (…, 1)."""
    wide = op.Unsqueeze(op.cast(x, op.dtype), [-1])
    wide.shape = ir.Shape([*x.shape, 1])
    return wide


def _power(table: dict[str | None, float], norm: str | None) -> float:
    if norm not in table:
        raise UnsupportedError(f"norm={norm!r} of a Fourier transform")
    return table[norm]


# ***** along one axis *****


@aten("fft_rfft", on_complex=True)
def rfft(op: Builder, x: Value, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Value:
    return _real_to_complex(op, x, None if n is None else [n], [dim], _power(_FORWARD, norm))


@aten("fft_irfft", on_complex=True)
def irfft(op: Builder, x: Value, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Value:
    return _complex_to_real(op, x, None if n is None else [n], [dim], _power(_INVERSE, norm))


@aten("fft_fft", on_complex=True)
def fft(op: Builder, x: Value, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Value:
    return _complex_to_complex(op, x, None if n is None else [n], [dim], _power(_FORWARD, norm), inverse=False)


@aten("fft_ifft", on_complex=True)
def ifft(op: Builder, x: Value, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Value:
    return _complex_to_complex(op, x, None if n is None else [n], [dim], _power(_INVERSE, norm), inverse=True)


@aten("fft_hfft", on_complex=True)
def hfft(op: Builder, x: Value, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Value:
    """The spectrum, all real, of a signal whose other half is the conjugate of this one."""
    return _complex_to_real(op, conj(op, x), None if n is None else [n], [dim], _power(_FORWARD, norm))


@aten("fft_ihfft", on_complex=True)
def ihfft(op: Builder, x: Value, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Value:
    return conj(op, _real_to_complex(op, x, None if n is None else [n], [dim], _power(_INVERSE, norm)))


# ***** along several *****

Sizes = Sequence[Size] | None
Axes = Sequence[int] | None


@aten("fft_rfft2", on_complex=True)
def rfft2(op: Builder, x: Value, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Value:
    return _real_to_complex(op, x, s, dim, _power(_FORWARD, norm))


@aten("fft_rfftn", on_complex=True)
def rfftn(op: Builder, x: Value, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Value:
    return _real_to_complex(op, x, s, _axes(len(x.shape), dim, s), _power(_FORWARD, norm))


@aten("fft_irfft2", on_complex=True)
def irfft2(op: Builder, x: Value, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Value:
    return _complex_to_real(op, x, s, dim, _power(_INVERSE, norm))


@aten("fft_irfftn", on_complex=True)
def irfftn(op: Builder, x: Value, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Value:
    return _complex_to_real(op, x, s, _axes(len(x.shape) - 1, dim, s), _power(_INVERSE, norm))


@aten("fft_fft2", on_complex=True)
def fft2(op: Builder, x: Value, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Value:
    return _complex_to_complex(op, x, s, dim, _power(_FORWARD, norm), inverse=False)


@aten("fft_fftn", on_complex=True)
def fftn(op: Builder, x: Value, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Value:
    return _complex_to_complex(op, x, s, _axes(len(op.shape) - 1, dim, s), _power(_FORWARD, norm), inverse=False)


@aten("fft_ifft2", on_complex=True)
def ifft2(op: Builder, x: Value, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Value:
    return _complex_to_complex(op, x, s, dim, _power(_INVERSE, norm), inverse=True)


@aten("fft_ifftn", on_complex=True)
def ifftn(op: Builder, x: Value, s: Sizes = None, dim: Axes = None, norm: str | None = None) -> Value:
    return _complex_to_complex(op, x, s, _axes(len(op.shape) - 1, dim, s), _power(_INVERSE, norm), inverse=True)


def _axes(rank: int, dim: Axes, s: Sizes) -> Sequence[int]:
    """torch's default: the axes that sizes are given for, else all."""
    return dim if dim is not None else range(-rank if s is None else -len(s), 0)


def _given(sizes: Sizes, index: int) -> Size | None:
    """The size asked for along an axis; None for the one that it has."""
    size = None if sizes is None else sizes[index]
    return None if isinstance(size, int) and size == -1 else size


def _real_to_complex(op: Builder, x: Value, sizes: Sizes, dims: Sequence[int], power: float) -> Value:
    axes = [axis % len(x.shape) for axis in dims]
    lengths = [_given(sizes, index) for index in range(len(axes))]
    y = _dft(op, _with_imaginary_axis(op, x), lengths[-1], axes[-1], onesided=True)
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        y = _dft(op, y, length, axis)
    points = [_size(op, x, axis) if length is None else length for axis, length in zip(axes, lengths, strict=True)]
    return _scaled(op, y, points, power)


def _complex_to_complex(
    op: Builder, x: Value, sizes: Sizes, dims: Sequence[int], power: float, *, inverse: bool
) -> Value:
    if not op.complex[0]:
        x = _with_imaginary_axis(op, x)
    axes = [axis % (len(x.shape) - 1) for axis in dims]
    lengths = [_given(sizes, index) for index in range(len(axes))]
    y = x
    for axis, length in zip(axes, lengths, strict=True):
        y = _dft(op, y, length, axis, inverse=inverse)
    points = [_size(op, x, axis) if length is None else length for axis, length in zip(axes, lengths, strict=True)]
    return _scaled(op, y, points, power + inverse)  # ONNX divides an inverse by the number of points


def _complex_to_real(op: Builder, x: Value, sizes: Sizes, dims: Sequence[int], power: float) -> Value:
    """Without a size the last axis becomes 2(n - 1) long, which torch has worked out."""
    assert op.shape is not None
    axes = [axis % len(op.shape) for axis in dims]
    lengths = [_given(sizes, index) for index in range(len(axes))]
    if lengths[-1] is None:
        size = op.shape[axes[-1]]
        lengths[-1] = size if isinstance(size, int) else op.size(size)
    y = x
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        y = _dft(op, y, length, axis, inverse=True)
    y = op.Squeeze(_dft(op, y, lengths[-1], axes[-1], inverse=True, onesided=True), [-1])
    points = [_size(op, x, axis) if length is None else length for axis, length in zip(axes, lengths, strict=True)]
    return _scaled(op, y, points, power + 1)


# ***** what torch itself takes transforms apart into *****


@aten("_fft_r2c", on_complex=True)
def r2c(op: Builder, x: Value, dim: Sequence[int], normalization: int, onesided: bool) -> Value:
    if not onesided:
        return _complex_to_complex(op, x, None, dim, _NUMBERED[normalization], inverse=False)
    return _real_to_complex(op, x, None, dim, _NUMBERED[normalization])


@aten("_fft_c2c", on_complex=True)
def c2c(op: Builder, x: Value, dim: Sequence[int], normalization: int, forward: bool) -> Value:
    return _complex_to_complex(op, x, None, dim, _NUMBERED[normalization], inverse=not forward)


@aten("_fft_c2r", on_complex=True)
def c2r(op: Builder, x: Value, dim: Sequence[int], normalization: int, last_dim_size: Size) -> Value:
    return _complex_to_real(op, x, [*[-1] * (len(dim) - 1), last_dim_size], dim, _NUMBERED[normalization])


# ***** short-time transforms *****


@aten("stft", on_complex=True)
def stft(
    op: Builder,
    x: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Value:
    """(batch, time) to (batch, frequencies, frames); torch pads for `center` before, and windows to `n_fft`."""
    if any(op.complex[position] for position in (0, 4) if position < len(op.complex)):
        raise UnsupportedError("an STFT of a complex signal or window")
    if align_to_window:
        raise UnsupportedError("an STFT with align_to_window")
    assert op.dtype is not None
    signal = op.Unsqueeze(op.cast(x, op.dtype), [0, 2] if len(x.shape) == 1 else [2])
    width = n_fft if win_length is None else win_length
    if window is None:
        window = op.tensor(np.ones(width, op.dtype.numpy()))
    if width < n_fft:
        left = (n_fft - width) // 2
        window = op.Pad(window, [left, n_fft - width - left])
    hop = n_fft // 4 if hop_length is None else hop_length
    y = op.STFT(
        signal,
        op.constant(hop, ir.DataType.INT64),
        op.cast(window, op.dtype),
        op.constant(n_fft, ir.DataType.INT64),
        onesided=int(onesided is not False),
    )
    assert op.shape is not None
    *batch, frequencies, frames, _ = op.shape
    y.shape = ir.Shape([*(batch or [1]), frames, frequencies, 2])
    y = op.Transpose(y, perm=[0, 2, 1, 3])
    y = op.Squeeze(y, [0]) if len(x.shape) == 1 else y
    return _scaled(op, y, [n_fft], -0.5 if normalized else 0)


@aten("istft", on_complex=True)
def istft(op: Builder, *_: object, **__: object) -> Value:
    raise UnsupportedError("the inverse of an STFT; write it with torch.fft.irfft and torch.nn.functional.fold")
