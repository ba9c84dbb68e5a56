"""Weights that a test can trust, for Keras: the counterpart of `porter.zoo.torch.seeding`."""

import math

import keras
import numpy as np

_TRANSPOSED = (keras.layers.Conv1DTranspose, keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose)


def seed_weights(model: keras.Model, seed: int = 0, *, gain: float = 1.0) -> keras.Model:
    """Fill every weight of a built model in place, none of them zero or one by default, and return the model.

    The distributions are those of the torch helper: kernels normal with variance `gain / fan_in`, scales and moving
    variances in [0.5, 1.5], biases and moving means N(0, 0.1). States of random generators are left alone, and so are
    the statistics of Normalization, which come from its `adapt`.

    Raises ValueError when the model has no weights yet: `Model.build` of a subclassed model makes none, a call does.
    """
    if not model.weights:
        raise ValueError(f"{type(model).__name__} has no weights yet: call it on a keras.Input first")
    rng = np.random.default_rng(seed)
    done: set[int] = set()  # tied weights and shared layers are met twice
    # Keras has no public walk that tells which layer owns a variable, and the fan-in depends on the layer's kind.
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Normalization):
            continue
        for variable in layer._trainable_variables + layer._non_trainable_variables:
            if id(variable) in done or not keras.backend.is_float_dtype(variable.dtype):
                continue
            done.add(id(variable))
            if variable.name in ("gamma", "moving_variance"):
                value = rng.random(variable.shape) + 0.5
            elif variable.name in ("beta", "bias", "moving_mean"):
                value = rng.standard_normal(variable.shape) * 0.1
            else:
                fan_in = _fan_in(layer, variable.name, tuple(variable.shape))
                value = rng.standard_normal(variable.shape) * math.sqrt(gain / fan_in)
            variable.assign(value)
    return model


def settle_statistics(model: keras.Model, *inputs: np.ndarray) -> keras.Model:
    """Give every BatchNormalization the statistics of one batch, `inputs`, and return the model.

    With statistics from nowhere the signal of a deep network grows from block to block, until a softmax at its end
    answers 0 and 1 whatever it is shown.
    """
    norms = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    dropped = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Dropout)]
    if not norms:
        return model
    momenta, rates = [layer.momentum for layer in norms], [layer.rate for layer in dropped]
    for layer in norms:
        layer.momentum = 0.0
    for layer in dropped:
        layer.rate = 0.0
    model(list(inputs) if len(inputs) > 1 else inputs[0], training=True)
    for layer, momentum in zip(norms, momenta, strict=True):
        layer.momentum = momentum
    for layer, rate in zip(dropped, rates, strict=True):
        layer.rate = rate
    for layer in norms:
        variance = layer.moving_variance.numpy()
        # A channel that is the same everywhere in this batch need not be so in the next one.
        layer.moving_variance.assign(_rounded(np.maximum(variance, 0.1 * variance.mean())))
        layer.moving_mean.assign(_rounded(layer.moving_mean.numpy()))
    return model


def _rounded(values: np.ndarray) -> np.ndarray:
    """To about three digits, so that the order of a machine's sums does not show in the weights."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 1024) / 1024, exponent)


def _fan_in(layer: keras.layers.Layer, name: str, shape: tuple[int, ...]) -> float:
    """How many products are summed into one output element."""
    if name == "depthwise_kernel" or isinstance(layer, keras.layers.DepthwiseConv1D | keras.layers.DepthwiseConv2D):
        return math.prod(shape[:-2])
    if isinstance(layer, _TRANSPOSED):
        # Stored (*kernel, out, in); each output sees only every stride-th tap of the kernel.
        return max(1.0, math.prod(shape[:-2]) * shape[-1] / math.prod(layer.strides))
    if isinstance(layer, keras.layers.Embedding):
        return shape[-1]
    if isinstance(layer, keras.layers.EinsumDense):
        terms, result = layer.equation.split("->")
        return math.prod(size for axis, size in zip(terms.split(",")[1], shape, strict=True) if axis not in result)
    return max(1, math.prod(shape[:-1]))
