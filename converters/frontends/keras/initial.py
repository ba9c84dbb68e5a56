"""What Keras' variables are drawn from: the initializers that layers were given, as numbers."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import initializers

from porter.converters.initial import CUT, Draw, fans

# Attributes of layers that hold initializers of variables that have another name.
_NAMED = {
    "kernel": ("kernel_initializer", "depthwise_initializer"),
    "recurrent_kernel": ("recurrent_initializer",),
    "depthwise_kernel": ("depthwise_initializer",),
    "pointwise_kernel": ("pointwise_initializer",),
}


def draws(model: keras.Layer) -> dict[int, Draw]:
    """{id of a variable: what it is drawn from}; those of initializers that have no name here are left out."""
    found: dict[int, Draw] = {}
    for layer in model._flatten_layers():
        for variable in layer._trainable_variables + layer._non_trainable_variables:
            draw = _draw(layer, variable)
            if draw is not None:
                found[id(variable)] = draw
    return found


def _draw(layer: Any, variable: Any) -> Draw | None:
    name = variable.name
    named = _NAMED.get(name, (f"{name}_initializer",))
    initializer = next((getattr(layer, each) for each in named if hasattr(layer, each)), None)
    if name == "bias" and getattr(layer, "unit_forget_bias", False):
        return Draw("unit_forget_bias") if isinstance(initializer, initializers.Zeros) else None
    return _of(initializer, tuple(variable.shape))


def _of(initializer: Any, shape: tuple[int, ...]) -> Draw | None:
    """The numbers that an initializer comes to for a shape."""
    match initializer:
        case initializers.Zeros():
            return Draw("constant", (0.0,))
        case initializers.Ones():
            return Draw("constant", (1.0,))
        case initializers.Constant():
            value = initializer.value
            return Draw("constant", (float(value),)) if isinstance(value, int | float) else None
        case initializers.RandomNormal():
            return Draw("normal", (float(initializer.mean), float(initializer.stddev)))
        case initializers.TruncatedNormal():
            return Draw("truncated_normal", (float(initializer.mean), float(initializer.stddev)))
        case initializers.RandomUniform():
            return Draw("uniform", (float(initializer.minval), float(initializer.maxval)))
        case initializers.VarianceScaling():
            return _scaled(initializer, shape)
        case initializers.Orthogonal():
            return Draw("orthogonal", (float(initializer.gain),))
    return None


def _scaled(initializer: Any, shape: tuple[int, ...]) -> Draw:
    variance = initializer.scale / max(1.0, fans(shape, channels_first=False)[initializer.mode])
    if initializer.distribution == "uniform":
        bound = math.sqrt(3 * variance)
        return Draw("uniform", (-bound, bound))
    if initializer.distribution == "untruncated_normal":
        return Draw("normal", (0.0, math.sqrt(variance)))
    return Draw("truncated_normal", (0.0, math.sqrt(variance) / CUT))
