"""Matrix products."""

from __future__ import annotations

import math
import string
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import axes_of, promoted, rank
from porter.converters.frontends.keras.table import keras_layer, keras_operation

Value = ir.Value


@keras_layer("Dense", activates=True)
def dense(op: Builder, layer: Any, inputs: Value) -> Value:
    bias = layer.bias if layer.use_bias else None
    if rank(inputs) == 2:
        return op.Gemm(inputs, layer.kernel, bias)
    product = op.MatMul(inputs, layer.kernel)
    return product if bias is None else op.Add(product, bias)


@keras_layer("EinsumDense", activates=True)
def einsum_dense(op: Builder, layer: Any, inputs: Value) -> Value:
    """A projection of the last axes is a matrix product with reshaped ends: what attention layers are made of."""
    equation = _equation(layer.equation)
    count = _projected(equation, rank(inputs))
    if count is None:
        product = op.Einsum(inputs, layer.kernel, equation=equation)
        return product if layer.bias is None else op.Add(product, layer.bias)
    sizes = [int(size) for size in layer.kernel.shape]
    made, leading = sizes[count:], rank(inputs) - count
    x = inputs if count == 1 else op.Reshape(inputs, [0] * leading + [math.prod(sizes[:count])])
    matrix = layer.kernel
    if len(sizes) != 2:
        matrix = op.Reshape(matrix, [math.prod(sizes[:count]), math.prod(made)])
        matrix.shape = ir.Shape([math.prod(sizes[:count]), math.prod(made)])
    product = op.MatMul(x, matrix)
    bias, whole = layer.bias, False
    if bias is not None and list(bias.shape) == made:
        vector = bias if len(made) == 1 else op.Reshape(bias, [math.prod(made)])
        product, whole = op.Add(product, vector), True
    if len(made) != 1:
        product = op.Reshape(product, [0] * leading + made)
    return product if bias is None or whole else op.Add(product, bias)


def _projected(equation: str, n: int) -> int | None:
    """How many last axes of the input are summed with the first ones of the kernel, where that is all that happens."""
    inputs, _, output = equation.partition("->")
    first, _, kernel = inputs.partition(",")
    dots = "".join(chr(0x391 + axis) for axis in range(n - len(first) + 3))
    first, output = first.replace("...", dots), output.replace("...", dots)
    for count in range(1, min(len(first), len(kernel))):
        summed = first[-count:]
        if kernel[:count] == summed and output == first[:-count] + kernel[count:] and not set(summed) & set(output):
            return count
    return None


def _equation(equation: str) -> str:
    return equation.replace(" ", "")


@keras_operation("Matmul")
def matmul(op: Builder, x1: Any, x2: Any) -> Value:
    return op.MatMul(*promoted(op, x1, x2))


@keras_operation("Einsum")
def einsum(op: Builder, *operands: Any, subscripts: str, **kwargs: Any) -> Value:
    return op.Einsum(*promoted(op, *operands), equation=_equation(subscripts))


@keras_operation("Dot")
def dot(op: Builder, x1: Any, x2: Any) -> Value:
    """numpy's: over the last axis of one and the one before the last of the other, all others side by side."""
    a, b = promoted(op, x1, x2)
    if not rank(a) or not rank(b):
        return op.Mul(a, b)
    if rank(b) <= 2:
        return op.MatMul(a, b)
    return _contracted(op, a, b, [rank(a) - 1], [rank(b) - 2])


@keras_operation("Inner")
def inner(op: Builder, x1: Any, x2: Any) -> Value:
    a, b = promoted(op, x1, x2)
    if not rank(a) or not rank(b):
        return op.Mul(a, b)
    return _contracted(op, a, b, [rank(a) - 1], [rank(b) - 1])


@keras_operation("Vdot")
def vdot(op: Builder, x1: Any, x2: Any) -> Value:
    a, b = (op.Reshape(x, [-1]) for x in promoted(op, x1, x2))
    return op.MatMul(a, b)


@keras_operation("Outer")
def outer(op: Builder, x1: Any, x2: Any) -> Value:
    a, b = promoted(op, x1, x2)
    return op.Mul(op.Reshape(a, [-1, 1]), op.Reshape(b, [1, -1]))


@keras_operation("Tensordot")
def tensordot(op: Builder, x1: Any, x2: Any, *, axes: Any) -> Value:
    a, b = promoted(op, x1, x2)
    if isinstance(axes, int):
        return _contracted(op, a, b, list(range(rank(a) - axes, rank(a))), list(range(axes)))
    return _contracted(op, a, b, axes_of(a, axes[0]), axes_of(b, axes[1]))


def _contracted(op: Builder, a: Value, b: Value, over_a: list[int], over_b: list[int]) -> Value:
    """The sum over pairs of axes, the remaining axes of one before those of the other."""
    letters = iter(string.ascii_lowercase)
    first = [next(letters) for _ in range(rank(a))]
    second = [next(letters) for _ in range(rank(b))]
    for i, j in zip(over_a, over_b, strict=True):
        second[j] = first[i]
    left = [c for i, c in enumerate(first) if i not in over_a]
    right = [c for j, c in enumerate(second) if j not in over_b]
    return op.Einsum(a, b, equation=f"{''.join(first)},{''.join(second)}->{''.join(left + right)}")
