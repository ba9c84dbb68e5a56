"""Weights that a test can trust, for Keras: the counterpart of `porter.zoo.torch.seeding`."""

import math

import keras
import numpy as np

_TRANSPOSED = (keras.layers.Conv1DTranspose, keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose)


def seed_weights(model: keras.Model, seed: int = 0, *, gain: float = 1.0) -> keras.Model:
    """Fill every weight of a built model in place, none of them zero or one by default, and return the model.

    The distributions are those of the torch helper: kernels normal with variance `gain / fan_in`, scales and moving
    variances in [0.5, 1.5], biases and moving means N(0, 0.1). States of random generators are left alone.

    Raises ValueError when the model has no weights yet: `Model.build` of a subclassed model makes none, a call does.
    """
    if not model.weights:
        raise ValueError(f"{type(model).__name__} has no weights yet: call it on a keras.Input first")
    rng = np.random.default_rng(seed)
    done: set[int] = set()  # tied weights and shared layers are met twice
    # Keras has no public walk that tells which layer owns a variable, and the fan-in depends on the layer's kind.
    for layer in model._flatten_layers():
        for variable in layer._trainable_variables + layer._non_trainable_variables:
            if id(variable) in done or not keras.backend.is_float_dtype(variable.dtype):
                continue
            done.add(id(variable))
            if variable.name in ("gamma", "moving_variance"):
                value = rng.random(variable.shape) + 0.5
            elif variable.name in ("beta", "bias", "moving_mean"):
                value = rng.standard_normal(variable.shape) * 0.1
            else:
                value = rng.standard_normal(variable.shape) * math.sqrt(gain / _fan_in(layer, tuple(variable.shape)))
            variable.assign(value)
    return model


def _fan_in(layer: keras.layers.Layer, shape: tuple[int, ...]) -> float:
    """How many products are summed into one output element."""
    if isinstance(layer, keras.layers.DepthwiseConv1D | keras.layers.DepthwiseConv2D):
        return math.prod(shape[:-2])
    if isinstance(layer, _TRANSPOSED):
        # Stored (*kernel, out, in); each output sees only every stride-th tap of the kernel.
        return max(1.0, math.prod(shape[:-2]) * shape[-1] / math.prod(layer.strides))
    if isinstance(layer, keras.layers.Embedding):
        return shape[-1]
    return max(1, math.prod(shape[:-1]))
