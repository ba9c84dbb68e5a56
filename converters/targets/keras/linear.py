"""Products with a matrix."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, Literal, Weight, call, layer
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Tensor


def _dense(x: Tensor, kernel: Weight, bias: Weight | None) -> Expr:
    """A Dense layer holds parameters only, and its input has features beside the batch."""
    if x.rank < 2 or kernel.rank != 2:
        raise CannotBind("a Dense layer multiplies a batch with a matrix")
    if any(weight.kind != "parameter" for weight in (kernel, bias) if weight is not None):
        raise CannotBind("the matrix or the bias is no parameter")
    if bias is not None and bias.shape != kernel.shape[1:]:
        raise CannotBind("the bias is no vector of the units")
    weights = {"kernel": kernel, "bias": bias}
    return layer("Dense", units=kernel.shape[1], use_bias=bias is not None, weights=weights)(x)


@keras_op("Linear", domain="porter", layout="fixed")
def linear(x: Tensor, w: Weight, b: Weight | None = None) -> Expr:
    return _dense(x, w, b)


@keras_op("Linear", domain="porter", layout="fixed")
def linear_computed(x: Tensor, w: Tensor, b: Tensor | None = None) -> Expr:
    product = call("ops.matmul", x, w)
    return product if b is None else product + b


@keras_op("MatMul", layout="fixed")
def matmul_dense(x: Tensor, w: Weight) -> Expr:
    return _dense(x, w, None)


@keras_op("MatMul", layout="fixed")
def matmul(x: Tensor, y: Tensor) -> Expr:
    return call("ops.matmul", x, y)


@keras_op("Gemm", layout="fixed")
def gemm_dense(
    x: Tensor, w: Weight, b: Weight | None = None, *, alpha: float, beta: float, transA: int, transB: int
) -> Expr:
    if transA or alpha != 1 or (b is not None and beta != 1):
        raise CannotBind("a Dense layer neither scales nor transposes its input")
    return _dense(x, w.transposed([1, 0]) if transB else w, b)


@keras_op("Gemm", layout="fixed")
def gemm(x: Tensor, y: Tensor, c: Tensor | None = None, *, alpha: float, beta: float, transA: int, transB: int) -> Expr:
    product: Expr = call(
        "ops.matmul", call("ops.transpose", x) if transA else x, call("ops.transpose", y) if transB else y
    )
    product = product if alpha == 1 else Literal(alpha) * product
    if c is None or beta == 0:
        return product
    return product + (c if beta == 1 else Literal(beta) * c)


@keras_op("Einsum", layout="fixed")
def einsum(*xs: Tensor, equation: str) -> Expr:
    return call("ops.einsum", equation.replace(" ", ""), *xs)
