"""Activations."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, Literal, Size, Weight, call, layer
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.cast import dtype_argument
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Tensor

_PLAIN = {
    "HardSwish": "hard_swish",
    **{name: name.lower() for name in ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")},
}


@keras_op(*_PLAIN)
def activation(x: Tensor, *, op: str) -> Expr:
    return call(f"ops.{_PLAIN[op]}", x)


@keras_op("Mish")
def mish(x: Tensor) -> Expr:
    return call("keras.activations.mish", x)


@keras_op("Silu", domain="porter")
def silu(x: Tensor) -> Expr:
    return call("ops.silu", x)


@keras_op("Gelu", note="on TensorFlow, Keras rounds the constant to float32 in double precision too: off by 5e-9")
def gelu(x: Tensor, *, approximate: str) -> Expr:
    return call("ops.gelu", x, approximate=approximate == "tanh")


@keras_op("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float) -> Expr:
    return call("ops.leaky_relu", x, negative_slope=alpha)


@keras_op("Elu", "Celu")
def elu(x: Tensor, *, op: str, alpha: float) -> Expr:
    return call(f"ops.{op.lower()}", x, alpha=alpha)


@keras_op("Selu")
def selu(x: Tensor, *, alpha: float, gamma: float) -> Expr:
    if abs(alpha - 1.6732632) < 1e-6 and abs(gamma - 1.0507010) < 1e-6:
        return call("ops.selu", x)
    return Literal(gamma) * call("ops.elu", x, alpha=alpha)


@keras_op("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float, beta: float) -> Expr:
    if abs(alpha - 1 / 6) < 1e-7 and beta == 0.5:
        return call("ops.hard_sigmoid", x)
    return call("ops.clip", Literal(alpha) * x + beta, 0.0, 1.0)


@keras_op("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float) -> Expr:
    return call("ops.threshold", x, alpha, 0.0)


@keras_op("Shrink")
def shrink(x: Tensor, *, bias: float, lambd: float) -> Expr:
    if bias == 0:
        return call("ops.hard_shrink", x, threshold=lambd)
    if bias == lambd:
        return call("ops.soft_shrink", x, threshold=lambd)
    below = call("ops.where", call("ops.less", x, -lambd), x + bias, 0.0)
    return call("ops.where", call("ops.greater", x, lambd), x - bias, below)


@keras_op("PRelu")
def prelu_layer(x: Tensor, slope: Weight) -> Expr:
    """A Keras slope has no batch axis and keeps the axes that it is shared along as ones."""
    shape = (1,) * (x.rank - slope.rank) + slope.shape
    if x.rank < 2 or slope.rank > x.rank or shape[0] != 1 or slope.kind != "parameter":
        raise CannotBind("the slope is no parameter of the features")
    shared = [axis for axis in range(1, x.rank) if shape[axis] == 1]
    return layer("PReLU", shared_axes=shared or None, weights={"alpha": slope.reshaped(*shape[1:])})(x)


@keras_op("PRelu")
def prelu(x: Tensor, slope: Tensor) -> Expr:
    return call("ops.where", call("ops.greater", x, 0), x, slope * x)


@keras_op("Softmax", "LogSoftmax", axes=["axis"])
def softmax(x: Tensor, *, op: str, axis: int) -> Expr:
    return call({"Softmax": "ops.softmax", "LogSoftmax": "ops.log_softmax"}[op], x, axis=axis)


@keras_op("Hardmax", axes=["axis"])
def hardmax(x: Tensor, *, axis: int) -> Expr:
    size = x.shape[axis]
    classes = Size(size) if isinstance(size, str) else size
    return call(
        "ops.one_hot", call("ops.argmax", x, axis=axis), classes, axis=axis % x.rank, dtype=dtype_argument(x.dtype)
    )
