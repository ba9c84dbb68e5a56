"""Antialiased interpolation with aligned corners, which ONNX's Resize does otherwise than torch.

torch puts the samples (in - 1) / (out - 1) apart and widens the kernel by that, but lets the first one be half a step
from the end, as without aligned corners. So it is a product with a matrix of weights along each axis.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from porter.converters.frontends.builder import Builder

Value = ir.Value


def aligned_antialiased(op: Builder, x: Value, sizes: Sequence[int | Value], a: float | None) -> Value:
    """(batch, channels, height, width) to new sizes, linearly or, by the constant `a`, cubically."""
    height, width = sizes
    x = op.MatMul(x, op.Transpose(_weights(op, x, 3, width, a), perm=[1, 0]))
    return op.MatMul(_weights(op, x, 2, height, a), x)


def _weights(op: Builder, x: Value, axis: int, size: int | Value, a: float | None) -> Value:
    """(samples, elements): what every element of an axis counts in every sample."""

    def number(value: float) -> Value:
        return op.constant(value, x)

    def counted(count: Value) -> Value:
        zero, one = (op.constant(value, ir.DataType.INT64) for value in (0, 1))
        return op.cast(op.Range(zero, count, one), x.dtype)

    old = op.Squeeze(op.Shape(x, start=axis, end=axis + 1), [0])
    new = op.constant(size, ir.DataType.INT64) if isinstance(size, int) else op.cast(size, ir.DataType.INT64)
    one = op.constant(1, ir.DataType.INT64)
    intervals = op.Max(op.Sub(new, one), one)
    step = op.Div(op.cast(op.Sub(old, one), x.dtype), op.cast(intervals, x.dtype))
    step = op.Where(op.Equal(new, one), number(0.0), step)
    position = op.Sub(op.Mul(op.Add(counted(new), number(0.5)), step), number(0.5))
    apart = op.Abs(op.Sub(op.Unsqueeze(position, [1]), counted(old)))
    distance = op.Div(apart, op.Max(step, number(1.0)))
    weights = op.Relu(op.Sub(number(1.0), distance)) if a is None else _cubic(op, distance, a)
    return op.Div(weights, op.ReduceSum(weights, [1], keepdims=1))


def _cubic(op: Builder, distance: Value, a: float) -> Value:
    """Keys' kernel."""

    def polynomial(*factors: float) -> Value:
        value = op.constant(factors[0], distance)
        for factor in factors[1:]:
            value = op.Mul(value, distance)
            value = op.Add(value, op.constant(factor, distance)) if factor else value
        return value

    one, two = op.constant(1.0, distance), op.constant(2.0, distance)
    far = op.Where(op.Less(distance, two), polynomial(a, -5 * a, 8 * a, -4 * a), op.constant(0.0, distance))
    return op.Where(op.LessOrEqual(distance, one), polynomial(a + 2, -(a + 3), 0.0, 1.0), far)
