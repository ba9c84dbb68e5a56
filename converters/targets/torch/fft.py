"""Fourier transforms, a complex tensor being a real one with a last axis (real, imaginary)."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, Literal, Ref, Size, call
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.types import Dims, Int, Tensor


def _complex(x: Expr) -> Expr:
    return call("torch.complex", x[Literal(...), 0], x[Literal(...), 1])


def _pairs(x: Expr) -> Expr:
    return call("torch.view_as_real", x)


def _length(given: Dims | None, own: int | str) -> int | Size | None:
    """The number of points, None where it is the axis' own."""
    if given is None:
        return None
    (size,) = given
    same = size.expression == own if isinstance(size, Size) else size == own
    return None if same else size


def _along(axis: int, rank: int) -> int | None:
    """The axis, None for the last one."""
    return None if axis % rank == rank - 1 else axis


@torch_op("RFFT", domain="porter", layout="fixed")
def rfft(x: Tensor, length: Dims | None = None, *, axis: int) -> Expr:
    points = _length(length, x.shape[axis])
    return _pairs(call("torch.fft.rfft", x, n=points, dim=_along(axis, x.rank)))


@torch_op("IRFFT", domain="porter", layout="fixed")
def irfft(x: Tensor, length: Dims | None = None, *, axis: int) -> Expr:
    frequencies = x.shape[axis]
    points = _length(length, 2 * (frequencies - 1) if isinstance(frequencies, int) else "?")
    return call("torch.fft.irfft", _complex(x), n=points, dim=_along(axis % x.rank, x.rank - 1))


@torch_op("DFT", layout="fixed")
def dft(x: Tensor, length: Dims | None = None, axis: Int | None = None, *, inverse: int, onesided: int) -> Expr:
    along = (x.rank - 2 if axis is None else axis) % x.rank
    real = x.shape[-1] == 1
    if not real and x.shape[-1] != 2:
        raise CannotBind("a last axis of which it is not known whether it is (real, imaginary)")
    points = _length(length, x.shape[along])
    given = {"n": points, "dim": _along(along, x.rank - 1)}
    if onesided and inverse:
        given["n"] = _length(length, "?")
        return call(".unsqueeze", call("torch.fft.irfft", _complex(x), **given), -1)
    if onesided:
        if not real:
            raise CannotBind("half of the frequencies of complex data")
        return _pairs(call("torch.fft.rfft", real_part(x), **given))
    data = real_part(x) if real else _complex(x)
    return _pairs(call("torch.fft.ifft" if inverse else "torch.fft.fft", data, **given))


def real_part(x: Ref) -> Expr:
    """The data of a (…, 1) tensor: what the axis was added to, where the graph adds it."""
    producer = x.value.producer()
    if producer is not None and producer.op_type == "Unsqueeze":
        axes = constant_of(producer.inputs[1])
        if axes is not None and axes.reshape(-1).tolist() in ([-1], [x.rank - 1]):
            return Ref(producer.inputs[0])
    return x[Literal(...), 0]


@torch_op("STFT", layout="fixed")
def stft(
    x: Tensor, frame_step: Int, window: Tensor | None = None, frame_length: Int | None = None, *, onesided: int
) -> Expr:
    """The frames of the signal, one after the other, and the transform of each."""
    if x.shape[-1] != 1:
        raise CannotBind("a short-time transform of complex data")
    if frame_length is None:
        size = x.shape[1] if window is None else window.shape[0]
        if not isinstance(size, int):
            raise CannotBind("frames of a length that is known only at run time")
        frame_length = Int(size)
    frames: Expr = call(".unfold", real_part(x), 1, int(frame_length), int(frame_step))
    frames = frames if window is None else frames * window
    return _pairs(call("torch.fft.rfft" if onesided else "torch.fft.fft", frames))
