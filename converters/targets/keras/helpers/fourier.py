"""Complex Fourier transforms of tensors whose last axis is (real, imaginary)."""

from __future__ import annotations

from keras import ops


def fft(x, axis, inverse=False):
    """The discrete Fourier transform of a (…, 2) tensor along `axis`; the inverse divides by the number of points."""
    x = ops.moveaxis(x, axis, -2)
    real, imag = x[..., 0], x[..., 1]
    if inverse:
        # The conjugate of the transform of the conjugate.
        real, imag = ops.fft((real, -imag))
        points = ops.cast(ops.shape(real)[-1], real.dtype)
        real, imag = real / points, -imag / points
    else:
        real, imag = ops.fft((real, imag))
    return ops.moveaxis(ops.stack([real, imag], axis=-1), -2, axis)


def rfft(x, axis, length=None):
    """The non-negative frequencies of real data along `axis`, (real, imaginary) as a new last axis."""
    real, imag = ops.rfft(ops.moveaxis(x, axis, -1), fft_length=length)
    return ops.moveaxis(ops.stack([real, imag], axis=-1), -2, axis)


def irfft(x, axis, length=None):
    """Real data from its non-negative frequencies along `axis`, (real, imaginary) in the last axis."""
    x = ops.moveaxis(x, axis, -2)
    return ops.moveaxis(ops.irfft((x[..., 0], x[..., 1]), fft_length=length), -1, axis)
