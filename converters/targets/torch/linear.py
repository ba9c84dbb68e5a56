"""Products with a matrix."""

from __future__ import annotations

from porter.converters.codegen.nodes import Binary, Expr, Literal, Weight, call, layer
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.permute import permuted
from porter.converters.targets.types import Tensor


def _linear(x: Tensor, kernel: Weight, bias: Weight | None) -> Expr:
    """A Linear layer holds parameters only; `kernel` is (in, out)."""
    if kernel.rank != 2:
        raise CannotBind("a Linear layer multiplies with a matrix")
    if any(weight.kind != "parameter" for weight in (kernel, bias) if weight is not None):
        raise CannotBind("the matrix or the bias is no parameter")
    if bias is not None and bias.shape != kernel.shape[1:]:
        raise CannotBind("the bias is no vector of the features")
    weights = {"weight": kernel.transposed([1, 0]), "bias": bias}
    return layer(
        "nn.Linear",
        in_features=kernel.shape[0],
        out_features=kernel.shape[1],
        bias=bias is not None,
        weights=weights,
    )(x)


@torch_op("Linear", domain="porter", layout="fixed")
def linear(x: Tensor, w: Weight, b: Weight | None = None) -> Expr:
    return _linear(x, w, b)


@torch_op("Linear", domain="porter", layout="fixed")
def linear_computed(x: Tensor, w: Tensor, b: Tensor | None = None) -> Expr:
    product = Binary("@", x, w)
    return product if b is None else product + b


@torch_op("MatMul", layout="fixed")
def matmul_linear(x: Tensor, w: Weight) -> Expr:
    return _linear(x, w, None)


@torch_op("MatMul", layout="fixed")
def matmul(x: Tensor, y: Tensor) -> Expr:
    return Binary("@", x, y)


@torch_op("Gemm", layout="fixed")
def gemm_linear(
    x: Tensor, w: Weight, b: Weight | None = None, *, alpha: float, beta: float, transA: int, transB: int
) -> Expr:
    if transA or alpha != 1 or (b is not None and beta != 1):
        raise CannotBind("a Linear layer neither scales nor transposes its input")
    return _linear(x, w.transposed([1, 0]) if transB else w, b)


@torch_op("Gemm", layout="fixed")
def gemm(x: Tensor, y: Tensor, c: Tensor | None = None, *, alpha: float, beta: float, transA: int, transB: int) -> Expr:
    if transB and not transA and alpha == 1 and (c is None or (beta == 1 and c.rank == 1)):
        return call("F.linear", x, y, *([] if c is None else [c]))
    product: Expr = Binary("@", permuted(x, (1, 0)) if transA else x, permuted(y, (1, 0)) if transB else y)
    product = product if alpha == 1 else Literal(alpha) * product
    if c is None or beta == 0:
        return product
    return product + (c if beta == 1 else Literal(beta) * c)


@torch_op("Einsum", layout="fixed")
def einsum(*xs: Tensor, equation: str) -> Expr:
    return call("torch.einsum", equation.replace(" ", ""), *xs)
