"""Pooling. Keras leaves its padding out of averages."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import each, rank, to_back, to_front
from porter.converters.frontends.keras.rules.conv import channels_last, padding_of
from porter.converters.frontends.keras.table import keras_layer, keras_operation

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
