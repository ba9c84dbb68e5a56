"""Matrix products."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten

Value = ir.Value


@aten("linear")
def linear(op: Builder, x: Value, weight: Value, bias: Value | None = None) -> Value:
    if len(x.shape) == 2:
        return op.Gemm(x, weight, bias, transB=1)
    product = op.MatMul(x, op.Transpose(weight, perm=[1, 0]) if len(weight.shape) == 2 else weight)
    return product if bias is None else op.Add(product, bias)


@aten("matmul", "mm", "bmm", "mv", "dot")
def matmul(op: Builder, x: Value, other: Value) -> Value:
    return op.MatMul(x, other)


@aten("addmm")
def addmm(op: Builder, bias: Value, x: Value, other: Value, beta: float = 1, alpha: float = 1) -> Value:
    return op.Gemm(x, other, bias, alpha=float(alpha), beta=float(beta))


@aten("baddbmm")
def baddbmm(op: Builder, bias: Value, x: Value, other: Value, beta: float = 1, alpha: float = 1) -> Value:
    product = op.MatMul(x, other)
    if alpha != 1:
        product = op.Mul(product, op.constant(alpha, x))
    if beta == 0:
        return product
    return op.Add(bias if beta == 1 else op.Mul(bias, op.constant(beta, x)), product)


@aten("outer")
def outer(op: Builder, x: Value, other: Value) -> Value:
    return op.Mul(op.Unsqueeze(x, [1]), op.Unsqueeze(other, [0]))


@aten("einsum")
def einsum(op: Builder, equation: str, tensors: list[Value], path: object = None) -> Value:
    return op.Einsum(*tensors, equation=equation.replace(" ", ""))


@aten("bilinear")
def bilinear(op: Builder, x: Value, other: Value, weight: Value, bias: Value | None = None) -> Value:
    product = op.Einsum(x, weight, other, equation="...i,kij,...j->...k")
    return product if bias is None else op.Add(product, bias)
