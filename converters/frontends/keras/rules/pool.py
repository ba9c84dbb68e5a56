"""Pooling. Keras leaves its padding out of averages."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import each, rank, to_back, to_front
from porter.converters.frontends.keras.rules.conv import channels_last, padding_of
from porter.converters.frontends.keras.table import keras_layer, keras_operation
from porter.errors import UnsupportedError

Value = ir.Value


def _pool(op: Builder, onnx: str, x: Value, size: Any, strides: Any, padding: str, data_format: str | None) -> Value:
    count = rank(x) - 2
    kernel = each(size, count)
    strides = each(strides if strides is not None else size, count)
    last = channels_last(data_format)
    front = to_front(op, x, last)
    pads = padding_of(padding, list(front.shape)[2:], kernel, strides, [1] * count)
    return to_back(op, getattr(op, onnx)(front, kernel_shape=kernel, strides=strides, **pads), last, rank(x))


@keras_layer("MaxPooling1D", "MaxPooling2D", "MaxPooling3D")
def max_pool(op: Builder, layer: Any, inputs: Value) -> Value:
    return _pool(op, "MaxPool", inputs, layer.pool_size, layer.strides, layer.padding, layer.data_format)


@keras_layer("AveragePooling1D", "AveragePooling2D", "AveragePooling3D")
def average_pool(op: Builder, layer: Any, inputs: Value) -> Value:
    return _pool(op, "AveragePool", inputs, layer.pool_size, layer.strides, layer.padding, layer.data_format)


@keras_operation("MaxPool", "AveragePool")
def pool(
    op: Builder,
    inputs: Value,
    *,
    pool_size: Any,
    strides: Any,
    padding: str,
    data_format: str | None,
    operation: Any,
) -> Value:
    return _pool(op, type(operation).__name__, inputs, pool_size, strides, padding, data_format)


@keras_layer(*(f"Adaptive{kind}Pooling{count}D" for kind in ("Average", "Max") for count in (1, 2, 3)))
def adaptive_layer(op: Builder, layer: Any, inputs: Value) -> Value:
    kind = "Max" if "Max" in type(layer._layer).__name__ else "Mean"
    return _adaptive(op, kind, inputs, layer.output_size, layer.data_format)


@keras_operation("AdaptiveAveragePool", "AdaptiveMaxPool")
def adaptive(op: Builder, inputs: Value, *, output_size: Any, data_format: str | None, operation: Any) -> Value:
    kind = "Max" if type(operation).__name__ == "AdaptiveMaxPool" else "Mean"
    return _adaptive(op, kind, inputs, output_size, data_format)


def _adaptive(op: Builder, kind: str, x: Value, output_size: Any, data_format: str | None) -> Value:
    """Bin i of an axis covers floor(i·in/out) … ceil((i+1)·in/out); axes one after the other."""
    count = rank(x) - 2
    first = 1 if channels_last(data_format) else 2
    sizes = each(output_size, count)
    spatial = list(x.shape)[first : first + count]
    y = x
    for axis, (size, wanted) in enumerate(zip(spatial, sizes, strict=True), first):
        if not isinstance(size, int):
            raise UnsupportedError(f"adaptive pooling of an axis that varies to {wanted}; fix that axis with --static")
        bins = [(i * size // wanted, -(-(i + 1) * size // wanted)) for i in range(wanted)]
        parts = [op.Slice(y, [start], [end], [axis], [1]) for start, end in bins]
        y = op.Concat(*(getattr(op, f"Reduce{kind}")(part, [axis], keepdims=1) for part in parts), axis=axis)
    return y
