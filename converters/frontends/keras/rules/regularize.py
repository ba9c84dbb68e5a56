"""What does something in training alone, and says so in its facts."""

from __future__ import annotations

import json
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import rank, to_back, to_front
from porter.converters.frontends.keras.table import keras_layer
from porter.converters.opset import TRAINING

Value = ir.Value


def _dropped(op: Builder, x: Value, rate: float, facts: dict[str, Any]) -> Value:
    return op.Dropout(
        x,
        op.constant(float(rate), ir.DataType.FLOAT),
        facts={TRAINING: json.dumps(facts)} if facts else None,
    )


@keras_layer("Dropout")
def dropout(op: Builder, layer: Any, inputs: Value) -> Value:
    facts = {} if layer.noise_shape is None else {"noise_shape": list(layer.noise_shape)}
    return _dropped(op, inputs, layer.rate, facts)


@keras_layer("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D")
def spatial_dropout(op: Builder, layer: Any, inputs: Value) -> Value:
    """Whole channels fall out."""
    last = getattr(layer, "data_format", "channels_last") == "channels_last"
    y = _dropped(op, to_front(op, inputs, last), layer.rate, {"noise": "channel"})
    return to_back(op, y, last, rank(inputs))


@keras_layer("AlphaDropout")
def alpha_dropout(op: Builder, layer: Any, inputs: Value) -> Value:
    return _dropped(op, inputs, layer.rate, {"noise": "alpha"})


@keras_layer("GaussianDropout", "GaussianNoise")
def noise(op: Builder, layer: Any, inputs: Value) -> Value:
    """Nothing in inference; in training what the facts say."""
    facts = {"gaussian_dropout": layer.rate} if hasattr(layer, "rate") else {"gaussian_noise": layer.stddev}
    return op.Identity(inputs, facts={TRAINING: json.dumps(facts)})


@keras_layer("Identity", "ActivityRegularization")
def identity(op: Builder, layer: Any, inputs: Value) -> Value:
    return inputs
