"""Activations."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.codegen.nodes import Binary, Expr, Literal, Size, Weight, call, layer
from porter.converters.graph.canonical import constant_of
from porter.converters.targets.table import CannotBind, shortest
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import cast_to
from porter.converters.targets.types import Tensor

_PLAIN = {
    "HardSwish": "F.hardswish",
    "Mish": "F.mish",
    "Relu": "F.relu",
    "Sigmoid": "torch.sigmoid",
    "Softsign": "F.softsign",
    "Tanh": "torch.tanh",
}


@torch_op(*_PLAIN)
def activation(x: Tensor, *, op: str) -> Expr:
    return call(_PLAIN[op], x)


@torch_op("Softplus")
def softplus(x: Tensor) -> Expr:
    """PyTorch's own is x itself above its threshold of 20, which double precision tells from softplus; not above 40."""
    return call("F.softplus", x, threshold=40)


@torch_op("Where")
def thresholded_softplus(condition: Tensor, x: Tensor, y: Tensor) -> Expr:
    """Softplus with PyTorch's threshold, spelled out."""
    compared, soft = condition.value.producer(), y.value.producer()
    if compared is None or soft is None or (compared.op_type, soft.op_type) != ("Greater", "Softplus"):
        raise CannotBind("this is no softplus with a threshold")
    threshold = constant_of(compared.inputs[1])
    if threshold is None or threshold.ndim or {compared.inputs[0], soft.inputs[0]} != {x.value}:
        raise CannotBind("this is no softplus with a threshold")
    return call("F.softplus", x, threshold=None if threshold == 20 else shortest(threshold.item()))


@torch_op("Silu", domain="porter")
def silu(x: Tensor) -> Expr:
    return call("F.silu", x)


@torch_op("Gelu")
def gelu(x: Tensor, *, approximate: str) -> Expr:
    return call("F.gelu", x, approximate="tanh" if approximate == "tanh" else None)


@torch_op("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float) -> Expr:
    return call("F.leaky_relu", x, alpha)


@torch_op("Elu", "Celu")
def elu(x: Tensor, *, op: str, alpha: float) -> Expr:
    return call(f"F.{op.lower()}", x, *([] if alpha == 1 else [alpha]))


@torch_op("Selu")
def selu(x: Tensor, *, alpha: float, gamma: float) -> Expr:
    if abs(alpha - 1.6732632) < 1e-6 and abs(gamma - 1.0507010) < 1e-6:
        return call("F.selu", x)
    return Literal(gamma) * call("F.elu", x, alpha)


@torch_op("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float, beta: float) -> Expr:
    if abs(alpha - 1 / 6) < 1e-7 and beta == 0.5:
        return call("F.hardsigmoid", x)
    return call(".clamp", Literal(alpha) * x + beta, 0, 1)


@torch_op("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float) -> Expr:
    return call("F.threshold", x, alpha, 0.0)


@torch_op("Shrink")
def shrink(x: Tensor, *, bias: float, lambd: float) -> Expr:
    if bias == 0 and lambd >= 0:
        return call("F.hardshrink", x, lambd)
    if bias == lambd and lambd >= 0:
        return call("F.softshrink", x, lambd)
    below = call("torch.where", Binary("<", x, Literal(-lambd)), x + bias, 0)
    return call("torch.where", Binary(">", x, Literal(lambd)), x - bias, below)


@torch_op("PRelu")
def prelu_layer(x: Tensor, slope: Weight) -> Expr:
    """PyTorch has one slope, or one for each channel."""
    shape = (1,) * (x.rank - slope.rank) + slope.shape
    features = [axis for axis in range(x.rank) if shape[axis] != 1]
    if slope.rank > x.rank or features not in ([], [1]) or slope.kind != "parameter":
        raise CannotBind("the slope is no parameter of the channels")
    count = shape[1] if features else 1
    return layer("nn.PReLU", num_parameters=count, weights={"weight": slope.reshaped(count)})(x)


@torch_op("PRelu")
def prelu(x: Tensor, slope: Tensor) -> Expr:
    return call("torch.where", Binary(">", x, Literal(0)), x, slope * x)


@torch_op("Softmax", "LogSoftmax", axes=["axis"])
def softmax(x: Tensor, *, op: str, axis: int) -> Expr:
    return call({"Softmax": "F.softmax", "LogSoftmax": "F.log_softmax"}[op], x, dim=axis)


@torch_op("Hardmax", axes=["axis"])
def hardmax(x: Tensor, *, axis: int) -> Expr:
    size = x.shape[axis]
    classes = Size(size) if isinstance(size, str) else size
    found: Expr = call("F.one_hot", call(".argmax", x, axis), classes)
    if axis % x.rank != x.rank - 1:
        found = call(".movedim", found, -1, axis)
    return cast_to(found, ir.DataType.INT64, x.dtype)
