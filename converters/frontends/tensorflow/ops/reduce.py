"""Reductions, running sums, the largest of many."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import tensorflow as tf

from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.table import data_type, tf_op

Value = ir.Value


def _reduce(op: Builder, kind: str, x: Value, axes: Value, keep: bool) -> Value:
    along = [op.axis(axis, x) for axis in op.ints(axes, "axes")]
    if not along:  # TensorFlow reduces nothing then, ONNX everything
        return op.Abs(x) if kind == "ReduceL2" else op.Identity(x)
    return getattr(op, kind)(x, sorted(along), keepdims=int(keep))


_REDUCTIONS = {
    "Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd",
    "All": "ReduceMin", "Any": "ReduceMax", "EuclideanNorm": "ReduceL2",
}  # fmt: skip


def _reduction(kind: str) -> Any:
    def rule(op: Builder, x: Value, axes: Value, *, keep_dims: bool) -> Value:
        return _reduce(op, kind, x, axes, keep_dims)

    rule.__module__ = __name__
    return rule


for _tf_name, _onnx_name in _REDUCTIONS.items():
    tf_op(_tf_name)(_reduction(_onnx_name))


@tf_op("ArgMax")
def arg_max(op: Builder, x: Value, axis: Value, *, output_type: tf.DType) -> Value:
    found = op.ArgMax(x, axis=op.axis(op.number(axis, "axis"), x), keepdims=0)
    return op.cast(found, data_type(output_type))


@tf_op("ArgMin")
def arg_min(op: Builder, x: Value, axis: Value, *, output_type: tf.DType) -> Value:
    found = op.ArgMin(x, axis=op.axis(op.number(axis, "axis"), x), keepdims=0)
    return op.cast(found, data_type(output_type))


@tf_op("Cumsum")
def cumsum(op: Builder, x: Value, axis: Value, *, exclusive: bool, reverse: bool) -> Value:
    along = op.axis(op.number(axis, "axis"), x)
    return op.CumSum(x, op.constant(along, ir.DataType.INT64), exclusive=int(exclusive), reverse=int(reverse))


@tf_op("TopKV2", ignored=["sorted"])
def top_k(op: Builder, x: Value, k: Value, *, index_type: tf.DType = tf.int32) -> tuple[Value, Value]:
    """Sorted always: the largest first."""
    content = op.content(k)
    count = op.dims(content) if content is not None else op.Reshape(op.cast(k, ir.DataType.INT64), [1])
    values, indices = op.TopK(x, count, axis=-1, largest=1, sorted=1, outputs=2)
    return values, op.cast(indices, data_type(index_type))


@tf_op("InTopKV2", "InTopK")
def in_top_k(op: Builder, predictions: Value, targets: Value, k: Any = None, **attributes: Any) -> Value:
    """Whether fewer than k classes have a higher score than the target."""
    target = op.GatherElements(predictions, op.Unsqueeze(op.cast(targets, ir.DataType.INT64), [1]), axis=1)
    higher = op.ReduceSum(op.cast(op.Greater(predictions, target), ir.DataType.INT32), [1], keepdims=0)
    return op.Less(higher, op.cast(k, ir.DataType.INT32))


def _segments(op: Builder, data: Value, ids: Value, count: Value, reduction: str, start: float) -> Value:
    shape = op.shape_of(data)
    rank = op.rank(ids)
    content = op.content(count)
    number = content[0] if content else op.cast(count, ir.DataType.INT64)
    rest = [
        size if size is not None else op.Squeeze(op.Shape(data, start=i, end=i + 1), [0])
        for i, size in enumerate(shape)
        if i >= rank
    ]
    base = op.Expand(op.like(start, data), op.dims([number, *rest]))
    where = op.Unsqueeze(op.cast(ids, ir.DataType.INT64), [-1])
    return op.ScatterND(base, where, data, reduction=reduction)


@tf_op("UnsortedSegmentSum")
def segment_sum(op: Builder, data: Value, ids: Value, count: Value) -> Value:
    return _segments(op, data, ids, count, "add", 0)


@tf_op("UnsortedSegmentProd")
def segment_prod(op: Builder, data: Value, ids: Value, count: Value) -> Value:
    return _segments(op, data, ids, count, "mul", 1)
