"""Slices with every mask, gathering, scattering, diagonals, complex numbers and Fourier transforms."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.converters.frontends.tensorflow.cases import Row, flags, floats, ints, row

raw = tf.raw_ops
X, ALSO = floats(3, 6, 4), (floats(5, 6, 4),)


def _slices() -> list[Row]:
    taken = [
        lambda x: x[1], lambda x: x[:, 2], lambda x: x[..., -1], lambda x: x[:, 1:4], lambda x: x[:, ::2],
        lambda x: x[:, ::-1], lambda x: x[:, 4:1:-1], lambda x: x[:, -3:-1], lambda x: x[..., tf.newaxis],
        lambda x: x[:, tf.newaxis, 1], lambda x: x[tf.newaxis, ..., 1:3], lambda x: x[0, ..., tf.newaxis, 2],
        lambda x: x[:, 1:, :-1], lambda x: x[-1, -2:, 0], lambda x: x[1:], lambda x: x[:-1], lambda x: x[:2],
        lambda x: x[::2], lambda x: x[::-1], lambda x: x[-2:], lambda x: x[:, tf.shape(x)[0] - 2],
        lambda x: x[: tf.shape(x)[0] - 1], lambda x: x[...],
    ]  # fmt: skip
    rows = [row("StridedSlice", f, X, also=ALSO) for f in taken]
    return [
        *rows,
        row("StridedSlice", lambda x, n: x[:, n], X, np.int32(2), also=(*ALSO, np.int32(-1))),
        row("StridedSlice", lambda x, n: x[:, n:], X, np.int32(2), also=(*ALSO, np.int32(4))),
        row("StridedSlice", lambda x, n: x[:, :n, 1], X, np.int32(2), also=(*ALSO, np.int32(4))),
        row("Slice", lambda x: tf.slice(x, [0, 1, 2], [-1, 3, 2]), X, also=ALSO),
        row("Slice", lambda x, n: tf.slice(x, [0, n, 0], [-1, 2, -1]), X, np.int32(1), also=(*ALSO, np.int32(3))),
        row("Slice", lambda x, n: tf.slice(x, [0, 1, 0], tf.stack([-1, n, 2])), X, np.int32(1)),
    ]


def _gathering() -> list[Row]:
    index = ints(2, 5, low=0, high=4)
    batched = ints(3, 2, low=0, high=6)
    return [
        row("GatherV2", lambda x: tf.gather(x, [2, 0], axis=1), X, also=ALSO),
        row("GatherV2", lambda x, i: tf.gather(x, i, axis=-1), X, index, also=(*ALSO, index[:1])),
        row("GatherV2", lambda x, i: tf.gather(x, i), floats(4, 3), index, also=(floats(6, 3), index)),
        row("GatherV2", lambda x, i: tf.gather(x, i, batch_dims=1), X, batched),
        row("GatherV2", lambda x, i: tf.gather(x, i, axis=2, batch_dims=1), floats(3, 4, 6), batched,
            also=(floats(5, 4, 6), ints(5, 2, low=0, high=6))),
        row("GatherV2", lambda x, i: tf.gather(x, i, axis=1, batch_dims=-1), X, batched),
        row("GatherNd", lambda x, i: tf.gather_nd(x, i), X, ints(4, 2, low=0, high=3)),
        row("GatherNd", lambda x, i: tf.gather_nd(x, i), X, ints(2, 4, 1, low=0, high=3)),
        row("OneHot", lambda i: tf.one_hot(i, 4, dtype=tf.float64), ints(3, 2, low=-2, high=6), also=(ints(5, 2),)),
        row("OneHot", lambda i: tf.one_hot(i, 4, 2, -1, axis=1, dtype=tf.int32), ints(3, 2, low=-2, high=6)),
        row("OneHot", lambda i: tf.one_hot(i, 4, axis=0), ints(3, 2, low=0, high=4, dtype="int64")),
        row("Where", tf.where, flags(3, 4)),
        row("Where", tf.where, ints(3, 4, low=0, high=2)),
        row("InvertPermutation", lambda x: tf.gather(x, tf.math.invert_permutation([2, 0, 1])), X),
        row("ScatterNd", lambda i, u: tf.scatter_nd(i, u, [5, 4]), np.array([[1], [3], [1]]), floats(3, 4)),
        row("ScatterNd", lambda x, u: tf.scatter_nd([[1], [0]], u, tf.shape(x)), X, floats(2, 6, 4)),
        row("TensorScatterUpdate", lambda x, u: tf.tensor_scatter_nd_update(x, [[1], [0]], u), X, floats(2, 6, 4)),
        row("TensorScatterAdd", lambda x, u: tf.tensor_scatter_nd_add(x, [[1], [1]], u), X, floats(2, 6, 4)),
        row("TensorScatterSub", lambda x, u: tf.tensor_scatter_nd_sub(x, [[1], [1]], u), X, floats(2, 6, 4)),
        row("TensorScatterMax", lambda x, u: tf.tensor_scatter_nd_max(x, [[1], [1]], u), X, floats(2, 6, 4)),
        row("TensorScatterMin", lambda x, u: tf.tensor_scatter_nd_min(x, [[1], [1]], u), X, floats(2, 6, 4)),
    ]  # fmt: skip


def _diagonals() -> list[Row]:
    bands = [(-1, 0), (0, -1), (1, 2), (-1, -1), (0, 0)]
    return [
        *(row("MatrixBandPart", lambda x, b=b: tf.linalg.band_part(x, *b), X, also=ALSO) for b in bands),
        row("MatrixDiagV3", tf.linalg.diag, floats(2, 3), also=(floats(4, 3),)),
        row("MatrixDiagPartV3", tf.linalg.diag_part, floats(2, 3, 3), also=(floats(4, 3, 3),)),
        row("DiagPart", tf.linalg.tensor_diag_part, floats(3, 3)),
    ]


def _complex() -> list[Row]:
    def pair(x: tf.Tensor) -> tf.Tensor:
        return tf.complex(x, 2 * x + 1)

    def parts(z: tf.Tensor) -> list[tf.Tensor]:
        return [tf.math.real(z), tf.math.imag(z)]

    values = {
        "Mul": lambda z: z * (z + 1), "RealDiv": lambda z: z / (z * z + 2), "AddV2": lambda z: z + z,
        "Sub": lambda z: z - z * z, "Neg": tf.negative, "Conj": tf.math.conj, "Identity": tf.identity,
        "Reshape": lambda z: tf.reshape(z, [-1, 4]), "Transpose": lambda z: tf.transpose(z, [1, 2, 0]),
        "ExpandDims": lambda z: tf.expand_dims(z, -1), "FFT": tf.signal.fft, "IFFT": tf.signal.ifft,
        "FFT2D": tf.signal.fft2d, "IFFT2D": tf.signal.ifft2d, "FFT3D": tf.signal.fft3d, "IFFT3D": tf.signal.ifft3d,
        "Complex": lambda z: z, "Real": lambda z: z, "Imag": lambda z: z,
        "Const": lambda z: z * tf.constant(1 + 2j, tf.complex128),
    }  # fmt: skip
    rows = [row(name, lambda x, f=f: parts(f(pair(x))), X, also=ALSO) for name, f in values.items()]
    real = {
        "RFFT": lambda x: tf.signal.rfft(x), "RFFT2D": lambda x: tf.signal.rfft2d(x),
        "RFFT3D": lambda x: tf.signal.rfft3d(x),
    }  # fmt: skip
    rows += [row(name, lambda x, f=f: parts(f(x)), floats(3, 6, 4)) for name, f in real.items()]
    rows += [
        row("RFFT", lambda x: parts(tf.signal.rfft(x, [7])), X, also=ALSO),
        row("RFFT", lambda x: parts(tf.signal.rfft(x, [3])), X, also=ALSO),
        row("IRFFT", lambda x: tf.signal.irfft(pair(x), [6]), X, also=ALSO),
        row("IRFFT", lambda x: tf.signal.irfft(pair(x), [5]), X, also=ALSO),
        row("IRFFT2D", lambda x: tf.signal.irfft2d(tf.signal.rfft2d(x) * 2), X, also=ALSO),
        row("IRFFT3D", lambda x: tf.signal.irfft3d(tf.signal.rfft3d(x) * 2), X),
        row("ComplexAbs", lambda x: tf.abs(pair(x)), X, also=ALSO),
        row("Angle", lambda x: tf.math.angle(pair(x)), X, also=ALSO),
        row("Cast", lambda x: parts(tf.cast(x, tf.complex128)), X),
        row("Cast", lambda x: parts(tf.cast(pair(x), tf.complex64)), X),
    ]
    return rows


ROWS = [*_slices(), *_gathering(), *_diagonals(), *_complex()]
