"""Fourier transforms, a complex tensor being a real one with a last axis (real, imaginary)."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, Literal, Ref, Size, call
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Dims, Int, Tensor


def _part(x: Expr, index: int) -> Expr:
    return x[Literal(...), index]


def _length(given: Dims | None, own: int | str) -> int | Size | None:
    """The number of points, None where it is the axis' own."""
    if given is None:
        return None
    (size,) = given
    same = size.expression == own if isinstance(size, Size) else size == own
    return None if same else size


@keras_op("RFFT", domain="porter", layout="fixed")
def rfft(x: Tensor, length: Dims | None = None, *, axis: int) -> Expr:
    points = _length(length, x.shape[axis])
    if axis == x.rank - 1:
        return call("ops.stack", call("ops.rfft", x, fft_length=points), axis=-1)
    return call("rfft", x, axis=axis, length=points)


@keras_op("IRFFT", domain="porter", layout="fixed")
def irfft(x: Tensor, length: Dims | None = None, *, axis: int) -> Expr:
    frequencies = x.shape[axis]
    points = _length(length, 2 * (frequencies - 1) if isinstance(frequencies, int) else "?")
    if axis == x.rank - 2:
        return call("ops.irfft", (_part(x, 0), _part(x, 1)), fft_length=points)
    return call("irfft", x, axis=axis, length=points)


@keras_op("DFT", layout="fixed")
def dft(
    x: Tensor, length: Dims | None = None, axis: Int | None = None, *, inverse: int, onesided: int, out: Ref
) -> Expr:
    """Keras transforms the last axis, real and imaginary parts apart, and has no inverse."""
    along = (x.rank - 2 if axis is None else axis) % x.rank
    real = x.shape[-1] == 1
    if onesided and inverse:
        return call("ops.expand_dims", call("irfft", x, axis=along, length=_length(length, "?")), -1)
    if onesided:
        if not real:
            raise CannotBind("half of the frequencies of complex data")
        return call("rfft", _real(x), axis=along, length=_length(length, x.shape[along]))
    points = _length(length, x.shape[along])
    data: Expr = x
    if points is not None:
        data = _resized(x, along, points)
    if real:
        data = call("ops.concatenate", [data, call("ops.zeros_like", data)], axis=-1)
    return call("fft", data, axis=along, inverse=bool(inverse) or None)


def _resized(x: Ref, axis: int, points: int | Size) -> Expr:
    """Filled with zeros or cut off."""
    if not isinstance(points, int):
        raise CannotBind("a complex transform of as many points as are known only at run time")
    size = x.shape[axis]
    missing = points - size if isinstance(size, int) else points
    data: Expr = x
    if missing > 0:
        data = call("ops.pad", x, [(0, missing if index == axis else 0) for index in range(x.rank)])
    if not isinstance(size, int) or missing < 0:
        data = data[tuple([Literal(slice(None))] * axis + [Literal(slice(None, points))])]
    return data


def _real(x: Ref) -> Expr:
    """The data of a (…, 1) tensor: what the axis was added to, where the graph adds it."""
    producer = x.value.producer()
    if producer is not None and producer.op_type == "Unsqueeze":
        axes = constant_of(producer.inputs[1])
        if axes is not None and axes.reshape(-1).tolist() in ([-1], [x.rank - 1]):
            return Ref(producer.inputs[0])
    return x[Literal(...), 0]


@keras_op("STFT", layout="fixed")
def stft(
    x: Tensor, frame_step: Int, window: Tensor | None = None, frame_length: Int | None = None, *, onesided: int
) -> Expr:
    if not onesided or x.shape[-1] != 1:
        raise CannotBind("a short-time transform of complex data, or with all frequencies of real data")
    if frame_length is None:
        size = x.shape[1] if window is None else window.shape[0]
        if not isinstance(size, int):
            raise CannotBind("frames of a length that is known only at run time")
        frame_length = Int(size)
    spectrum = call(
        "ops.stft",
        _real(x),
        sequence_length=frame_length,
        sequence_stride=frame_step,
        fft_length=frame_length,
        window=Literal(None) if window is None else window,
        center=False,
    )
    return call("ops.stack", spectrum, axis=-1)
