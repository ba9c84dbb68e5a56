"""Matrix products."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.table import tf_op

Value = ir.Value


def _flipped(op: Builder, x: Value, flip: bool) -> Value:
    rank = op.rank(x)
    return op.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2]) if flip else x


@tf_op("MatMul", ignored=["grad_a", "grad_b"])
def matmul(op: Builder, a: Value, b: Value, *, transpose_a: bool, transpose_b: bool) -> Value:
    return op.MatMul(_flipped(op, a, transpose_a), _flipped(op, b, transpose_b))


@tf_op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", ignored=["grad_x", "grad_y"])
def batch_matmul(op: Builder, x: Value, y: Value, *, adj_x: bool, adj_y: bool) -> Value:
    return op.MatMul(_flipped(op, x, adj_x), _flipped(op, y, adj_y))


@tf_op("Einsum")
def einsum(op: Builder, xs: list[Value], *, equation: str) -> Value:
    return op.Einsum(*xs, equation=equation.replace(" ", ""))


@tf_op("Cross")
def cross(op: Builder, a: Value, b: Value) -> Value:
    """The cross product along a last axis of three."""

    def turned(x: Value, order: list[int]) -> Value:
        return op.Gather(x, order, axis=-1)

    left = op.Mul(turned(a, [1, 2, 0]), turned(b, [2, 0, 1]))
    return op.Sub(left, op.Mul(turned(a, [2, 0, 1]), turned(b, [1, 2, 0])))


@tf_op("MatrixDeterminant")
def determinant(op: Builder, x: Value) -> Value:
    return op.Det(x)
