"""Complex tensors, which are real ones with a last axis (real, imaginary), and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.ops.elementwise import atan2
from porter.converters.frontends.tensorflow.table import tf_op

Value = ir.Value
INT64 = ir.DataType.INT64


def _parts(op: Builder, x: Value) -> tuple[Value, Value]:
    real, imaginary = op.Split(x, [1, 1], axis=-1, outputs=2)
    return op.Squeeze(real, [-1]), op.Squeeze(imaginary, [-1])


def _joined(op: Builder, real: Value, imaginary: Value) -> Value:
    return op.Concat(op.Unsqueeze(real, [-1]), op.Unsqueeze(imaginary, [-1]), axis=-1)


@tf_op("Complex", on_complex=True)
def complex_(op: Builder, real: Value, imaginary: Value) -> Value:
    return _joined(op, real, imaginary)


@tf_op("Real", on_complex=True)
def real(op: Builder, x: Value) -> Value:
    return _parts(op, x)[0]


@tf_op("Imag", on_complex=True)
def imag(op: Builder, x: Value) -> Value:
    return _parts(op, x)[1]


@tf_op("ComplexAbs", on_complex=True)
def complex_abs(op: Builder, x: Value) -> Value:
    return op.ReduceL2(x, [-1], keepdims=0)


@tf_op("Angle", on_complex=True)
def angle(op: Builder, x: Value) -> Value:
    re, im = _parts(op, x)
    return atan2(op, im, re)


@tf_op("Conj", on_complex=True)
def conj(op: Builder, x: Value) -> Value:
    re, im = _parts(op, x)
    return _joined(op, re, op.Neg(im))


@tf_op("Identity", "Snapshot", on_complex=True)
def identity(op: Builder, x: Value) -> Value:
    return x


@tf_op("Const", on_complex=True, ignored=["dtype"])
def const(op: Builder, *, value: np.ndarray) -> Value:
    return op.tensor(np.stack([value.real, value.imag], axis=-1))


@tf_op("AddV2", "Add", on_complex=True)
def add(op: Builder, x: Value, y: Value) -> Value:
    return op.Add(x, y)


@tf_op("Sub", on_complex=True)
def sub(op: Builder, x: Value, y: Value) -> Value:
    return op.Sub(x, y)


@tf_op("Neg", on_complex=True)
def neg(op: Builder, x: Value) -> Value:
    return op.Neg(x)


@tf_op("Mul", on_complex=True)
def mul(op: Builder, x: Value, y: Value) -> Value:
    (a, b), (c, d) = _parts(op, x), _parts(op, y)
    return _joined(op, op.Sub(op.Mul(a, c), op.Mul(b, d)), op.Add(op.Mul(a, d), op.Mul(b, c)))


@tf_op("RealDiv", on_complex=True)
def div(op: Builder, x: Value, y: Value) -> Value:
    (a, b), (c, d) = _parts(op, x), _parts(op, y)
    scale = op.Add(op.Mul(c, c), op.Mul(d, d))
    re = op.Div(op.Add(op.Mul(a, c), op.Mul(b, d)), scale)
    return _joined(op, re, op.Div(op.Sub(op.Mul(b, c), op.Mul(a, d)), scale))


@tf_op("Cast", on_complex=True)
def cast(op: Builder, x: Value, *, DstT: tf.DType, Truncate: bool) -> Value:
    """A real number is complex with no imaginary part; back, that part is dropped."""
    given, wanted = op.complex[0], DstT.is_complex
    kind = op.dtype
    if given and wanted:
        return op.cast(x, kind)
    if given:
        return op.cast(_parts(op, x)[0], kind)
    x = op.cast(x, kind)
    return _joined(op, x, op.Mul(x, op.like(0, x)))


@tf_op("Reshape", on_complex=True)
def reshape(op: Builder, x: Value, wanted: Value) -> Value:
    return op.Reshape(x, op.Concat(op.sizes(wanted), op.value([2]), axis=0))


@tf_op("Transpose", on_complex=True)
def transpose(op: Builder, x: Value, perm: Value) -> Value:
    rank = op.rank(x) - 1
    return op.Transpose(x, perm=[*(axis % rank for axis in op.ints(perm, "permutation")), rank])


@tf_op("ExpandDims", on_complex=True)
def expand_dims(op: Builder, x: Value, axis: Value) -> Value:
    place = op.number(axis, "axis")
    return op.Unsqueeze(x, [place % op.rank(x)])


# ---- Fourier transforms ----


def _axes(op: Builder, x: Value, count: int) -> list[int]:
    rank = op.rank(x) - 1
    return list(range(rank - count, rank))


def _dft(op: Builder, x: Value, axis: int, **settings: Any) -> Value:
    return op.DFT(x, None, op.constant(axis, INT64), **settings)


def _transform(count: int, inverse: bool) -> Any:
    def rule(op: Builder, x: Value) -> Value:
        for axis in _axes(op, x, count):
            shape = x.shape
            x = _dft(op, x, axis, inverse=int(inverse))
            x.shape = shape
        return x

    rule.__module__ = __name__
    return rule


for _count, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    tf_op(f"FFT{_suffix}", on_complex=True)(_transform(_count, False))
    tf_op(f"IFFT{_suffix}", on_complex=True)(_transform(_count, True))


def _fitted(op: Builder, x: Value, axis: int, size: int) -> Value:
    """The axis cut to `size`, or padded with zeros at its end."""
    has = op.shape_of(x)[axis]
    if has == size:
        return x
    if not isinstance(has, int) or has > size:
        x = op.Slice(x, [0], [size], [axis], [1])
    if not isinstance(has, int) or has < size:
        known = size if not isinstance(has, int) else has
        rank = op.rank(x)
        pads = [0] * 2 * rank
        pads[axis + rank] = size - known
        x = op.Pad(x, pads, op.like(0, x), mode="constant") if any(pads) else x
    return x


def _real_transform(count: int) -> Any:
    def rule(op: Builder, x: Value, length: Value) -> Value:
        """Real numbers to the half of the spectrum that is not the mirror of the other."""
        sizes = op.ints(length, "fft_length")
        rank = op.rank(x)
        axes = list(range(rank - count, rank))
        for axis, size in zip(axes, sizes, strict=True):
            x = _fitted(op, x, axis, size)
        known = op.shape_of(x)
        y = _dft(op, op.Unsqueeze(x, [-1]), axes[-1], onesided=1)
        y.shape = ir.Shape([*known[:-1], sizes[-1] // 2 + 1, 2])
        for axis in axes[:-1]:
            shape = y.shape
            y = _dft(op, y, axis)
            y.shape = shape
        return y

    rule.__module__ = __name__
    return rule


def _inverse_real(count: int) -> Any:
    def rule(op: Builder, x: Value, length: Value) -> Value:
        """The half of a spectrum, with its mirror, back to real numbers."""
        sizes = op.ints(length, "fft_length")
        axes = _axes(op, x, count)
        for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
            x = _fitted(op, x, axis, size)
            shape = x.shape
            x = _dft(op, x, axis, inverse=1)
            x.shape = shape
        axis, size = axes[-1], sizes[-1]
        x = _fitted(op, x, axis, size // 2 + 1)
        mirror = op.Slice(x, [(size - 1) // 2], [0], [axis], [-1])
        re, im = _parts(op, mirror)
        whole = op.Concat(x, _joined(op, re, op.Neg(im)), axis=axis)
        shape = whole.shape
        y = _dft(op, whole, axis, inverse=1)
        y.shape = shape
        return _parts(op, y)[0]

    rule.__module__ = __name__
    return rule


for _count, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _ignored = ["Treal", "Tcomplex"]
    tf_op(f"RFFT{_suffix}", on_complex=True, ignored=_ignored)(_real_transform(_count))
    tf_op(f"IRFFT{_suffix}", on_complex=True, ignored=_ignored)(_inverse_real(_count))
