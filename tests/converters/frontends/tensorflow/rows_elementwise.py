"""Arithmetic, comparisons, activations, reductions, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.converters.frontends.tensorflow.cases import Row, flags, floats, ints, positive, row

raw = tf.raw_ops
X, Y = floats(2, 3, 4), floats(2, 3, 4, seed=1)
ALSO = floats(5, 3, 4, seed=2), floats(5, 3, 4, seed=3)
INF = np.array([[1.0, np.inf, -np.inf, np.nan, 0.0, -2.0]])


def _unary() -> list[Row]:
    anywhere = {
        "Abs": tf.abs, "Asinh": tf.asinh, "Atan": tf.atan, "Ceil": tf.math.ceil, "Cos": tf.cos, "Cosh": tf.cosh,
        "Elu": tf.nn.elu, "Erf": tf.math.erf, "Erfc": tf.math.erfc, "Exp": tf.exp, "Expm1": tf.math.expm1,
        "Floor": tf.floor, "Identity": tf.identity, "LeakyRelu": lambda x: tf.nn.leaky_relu(x, 0.3), "Neg": tf.negative,
        "Reciprocal": tf.math.reciprocal, "Relu": tf.nn.relu, "Relu6": lambda x: tf.nn.relu6(3 * x),
        "Rint": tf.math.rint, "Round": tf.round, "Selu": tf.nn.selu, "Sigmoid": tf.sigmoid, "Sign": tf.sign,
        "Sin": tf.sin, "Sinh": tf.sinh, "Softplus": tf.nn.softplus, "Softsign": tf.nn.softsign, "Square": tf.square,
        "StopGradient": tf.stop_gradient, "Tan": tf.tan, "Tanh": tf.tanh, "ZerosLike": tf.zeros_like,
        "OnesLike": lambda x: raw.OnesLike(x=x), "Softmax": tf.nn.softmax, "LogSoftmax": tf.nn.log_softmax,
        "CheckNumerics": lambda x: tf.debugging.check_numerics(x, "no"), "L2Loss": tf.nn.l2_loss,
        "EnsureShape": lambda x: tf.ensure_shape(x, [None, 3, 4]),
        "PlaceholderWithDefault": lambda x: tf.compat.v1.placeholder_with_default(x, [None, 3, 4]),
    }  # fmt: skip
    inside = {
        "Acos": tf.acos, "Asin": tf.asin, "Atanh": tf.atanh, "Log": tf.math.log, "Log1p": tf.math.log1p,
        "Rsqrt": tf.math.rsqrt, "Sqrt": tf.sqrt,
    }  # fmt: skip
    return [
        *(row(name, f, X, also=ALSO[:1]) for name, f in anywhere.items()),
        *(row(name, f, positive(2, 3, 4), also=(positive(5, 3, 4),)) for name, f in inside.items()),
        row("Acosh", tf.acosh, 1 + positive(2, 3), also=(1 + positive(4, 3),)),
        row("IsNan", tf.math.is_nan, INF),
        row("IsInf", tf.math.is_inf, INF),
        row("IsFinite", tf.math.is_finite, INF),
        row("LogicalNot", tf.logical_not, flags(3, 4), also=(flags(5, 4),)),
        row("Invert", tf.bitwise.invert, ints(3, 4)),
        row("Neg", tf.negative, ints(3, 4)),
        row("Sign", tf.sign, ints(3, 4)),
        row("Abs", tf.abs, ints(3, 4, dtype="int64")),
        row("Round", tf.round, np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])),
        row("LeakyRelu", tf.nn.leaky_relu, X),
        row("IdentityN", lambda x, y: tf.identity_n([x, y]), X, Y),
    ]


def _binary() -> list[Row]:
    arithmetic = {
        "AddV2": tf.add, "Sub": tf.subtract, "Mul": tf.multiply, "RealDiv": tf.divide, "Maximum": tf.maximum,
        "Minimum": tf.minimum, "SquaredDifference": tf.math.squared_difference, "FloorDiv": tf.math.floordiv,
        "FloorMod": tf.math.floormod, "Less": tf.less, "LessEqual": tf.less_equal, "Greater": tf.greater,
        "GreaterEqual": tf.greater_equal, "Equal": tf.equal, "NotEqual": tf.not_equal, "Atan2": tf.atan2,
        "DivNoNan": tf.math.divide_no_nan, "MulNoNan": tf.math.multiply_no_nan, "Xdivy": tf.math.xdivy,
        "ApproximateEqual": lambda x, y: raw.ApproximateEqual(x=x, y=y, tolerance=0.5),
        "TruncateMod": tf.truncatemod,
    }  # fmt: skip
    whole = {
        "AddV2": tf.add, "Sub": tf.subtract, "Mul": tf.multiply, "Maximum": tf.maximum, "FloorDiv": tf.math.floordiv,
        "FloorMod": tf.math.floormod, "TruncateMod": tf.truncatemod, "TruncateDiv": tf.truncatediv, "Equal": tf.equal,
        "BitwiseAnd": tf.bitwise.bitwise_and, "BitwiseOr": tf.bitwise.bitwise_or, "BitwiseXor": tf.bitwise.bitwise_xor,
    }  # fmt: skip
    nonzero = np.where(ints(3, 4, seed=5) == 0, 2, ints(3, 4, seed=5)).astype("int32")
    holes = np.where(flags(2, 3, 4), X, 0)
    bits = {"LeftShift": tf.bitwise.left_shift, "RightShift": tf.bitwise.right_shift}
    return [
        *(row(name, f, X, Y, also=ALSO) for name, f in arithmetic.items()),
        *(row(name, f, X, floats(4, seed=4), also=(ALSO[0], floats(4))) for name, f in arithmetic.items()
          if name != "ApproximateEqual"),
        *(row(name, f, ints(3, 4), nonzero) for name, f in whole.items()),
        *(row(name, f, ints(3, low=0, dtype="uint32"), ints(3, low=0, seed=1, dtype="uint32"))
          for name, f in bits.items()),
        *(row(name, getattr(tf.math, f), flags(3, 4), flags(3, 4, seed=1))
          for name, f in {"LogicalAnd": "logical_and", "LogicalOr": "logical_or"}.items()),
        row("AddV2", lambda x: x + 1, X),
        row("Pow", tf.pow, positive(2, 3), floats(2, 3)),
        row("Pow", lambda x: x**2, X),
        row("Pow", tf.pow, ints(2, 3), ints(2, 3, low=0, high=3)),
        row("DivNoNan", tf.math.divide_no_nan, X, holes),
        row("MulNoNan", tf.math.multiply_no_nan, INF, np.zeros((1, 6))),
        row("Xdivy", tf.math.xdivy, holes, Y),
        row("Xlogy", tf.math.xlogy, holes, positive(2, 3, 4)),
        row("Xlog1py", tf.math.xlog1py, holes, positive(2, 3, 4)),
        row("Atan2", tf.atan2, np.array([1.0, -1, 0, 0, 1, -1]), np.array([0.0, 0, 1, -1, -1, -2])),
        row("AddN", lambda x, y: tf.add_n([x, y, x]), X, Y, also=ALSO),
        row("SelectV2", tf.where, flags(2, 3, 4), X, Y, also=(flags(5, 3, 4), *ALSO)),
        row("SelectV2", tf.where, flags(3, 1), X, Y),
        row("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), flags(2), X, Y),
        row("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), flags(2, 3, 4), X, Y),
        row("ClipByValue", lambda x: raw.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.7), X),
        row("Minimum", lambda x: tf.clip_by_value(x, -0.5, 0.7), X),
        row("Bucketize", lambda x: raw.Bucketize(input=x, boundaries=[-1.0, 0.0, 0.5]), X),
    ]  # fmt: skip


def _casts() -> list[Row]:
    kinds = ["float32", "float64", "int32", "int64", "uint8", "bool", "float16"]
    return [
        *(row("Cast", lambda x, k=k: tf.cast(x, k), positive(2, 3) * 9) for k in kinds if k != "float64"),
        *(row("Cast", lambda x, k=k: tf.cast(x, k), ints(2, 3)) for k in kinds if k not in ("int32", "uint8")),
        row("Cast", lambda x: tf.cast(x, "int32"), floats(2, 3) * 4),
        row("Cast", lambda x: tf.cast(x, "float64"), flags(2, 3)),
    ]


def _reductions() -> list[Row]:
    table: dict[str, Any] = {
        "Sum": tf.reduce_sum, "Mean": tf.reduce_mean, "Max": tf.reduce_max, "Min": tf.reduce_min,
        "Prod": tf.reduce_prod, "EuclideanNorm": tf.math.reduce_euclidean_norm,
    }  # fmt: skip
    settings: list[dict[str, Any]] = [
        {}, {"axis": 1}, {"axis": [-1, 0]}, {"axis": [0, 2], "keepdims": True}, {"axis": []},
    ]  # fmt: skip
    rows = [row(name, lambda x, f=f, s=s: f(x, **s), X, also=ALSO[:1]) for name, f in table.items() for s in settings]
    rows += [row(name, lambda x, f=f: f(x, axis=1), ints(3, 4)) for name, f in table.items() if name in ("Sum", "Max")]
    rows += [
        row("All", lambda x: tf.reduce_all(x, axis=1), flags(3, 4), also=(flags(5, 4),)),
        row("Any", lambda x: tf.reduce_any(x, axis=[0], keepdims=True), flags(3, 4)),
        row("Any", tf.reduce_any, flags(3, 4)),
        row("ArgMax", lambda x: tf.argmax(x, 1), X, also=ALSO[:1]),
        row("ArgMax", lambda x: tf.argmax(x, -1, output_type=tf.int32), X),
        row("ArgMin", lambda x: tf.argmin(x, 0), X),
        row("ArgMax", lambda x: tf.argmax(x, 1), ints(3, 6, low=0, high=2)),
        row("InTopKV2", lambda x, t: tf.math.in_top_k(t, x, 2), floats(4, 5), ints(4, low=0, high=5), double=False),
        row("TopKV2", lambda x: tf.math.top_k(x, 2), X, also=ALSO[:1]),
        row("TopKV2", lambda x: tf.math.top_k(x, 4), X),
        row("UnsortedSegmentSum", lambda x, i: tf.math.unsorted_segment_sum(x, i, 4), X[0], ints(3, low=0, high=4)),
        row("UnsortedSegmentProd", lambda x, i: tf.math.unsorted_segment_prod(x, i, 4), X[0], ints(3, low=0, high=4)),
    ]
    for exclusive in (False, True):
        for reverse in (False, True):
            rows.append(row("Cumsum", lambda x, e=exclusive, r=reverse: tf.cumsum(x, 1, e, r), X, also=ALSO[:1]))
    return rows


ROWS = [*_unary(), *_binary(), *_casts(), *_reductions()]
