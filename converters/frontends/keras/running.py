"""A Keras model run otherwise than its author runs it: in float64, without a part, or compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras
import numpy as np

from porter.converters.frontends.keras.internals import mapped

_NARROW = ("float32", "float16", "bfloat16")


@contextmanager
def doubled(model: Any) -> Iterator[None]:
    """The model with its variables in float64 and computing in it; everything is put back afterwards."""
    import tensorflow as tf

    with ExitStack() as stack:
        floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
        keras.config.set_floatx("float64")
        stack.callback(keras.config.set_dtype_policy, policy)  # Keras takes it from floatx when it is first asked for
        stack.callback(keras.config.set_floatx, floatx)
        for layer in model._flatten_layers():
            policy = layer.dtype_policy
            if policy.compute_dtype in _NARROW:
                _set(stack, layer, "dtype_policy", keras.dtype_policies.DTypePolicy("float64"))
            for variable in [*layer._trainable_variables, *layer._non_trainable_variables]:
                if variable.dtype in _NARROW:
                    value = tf.Variable(tf.cast(variable._value, "float64"), trainable=False)
                    _set(stack, variable, "_value", value)
                    _set(stack, variable, "_dtype", "float64")
        yield


@contextmanager
def with_array(layer: Any, name: str) -> Iterator[None]:
    """The layer with a list of numbers as an array."""
    with ExitStack() as stack:
        _set(stack, layer, name, np.asarray(getattr(layer, name)))
        yield


@contextmanager
def without_activation(layer: Any) -> Iterator[None]:
    """The layer without the function at its end."""
    with ExitStack() as stack:
        _set(stack, layer, "activation", None)
        yield


def _set(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    """Set an attribute past Keras' own `__setattr__`, which would track it."""
    before = getattr(owner, name)
    if getattr(owner, name, None) is value:
        return
    object.__setattr__(owner, name, value)
    stack.callback(object.__setattr__, owner, name, before)


def called_in_inference(model: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What the model gives outside training."""
    mode = {"training": False} if "training" in inspect.signature(model.call).parameters else {}
    return run(model, args, {**kwargs, **mode})


def run(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """`function(*args, **kwargs)` on TensorFlow, compiled by XLA where this processor has no kernel of its own.

    What has none in float64 either is computed in float32.
    """
    import tensorflow as tf

    try:
        return function(*args, **kwargs)
    except no_kernel() as error:
        if "attr 'T'" in str(error):
            return mapped(_widened, function(*mapped(_narrowed, args), **mapped(_narrowed, kwargs)))
    return tf.function(lambda: function(*args, **kwargs), jit_compile=True)()


def no_kernel() -> tuple[type[Exception], ...]:
    """What TensorFlow raises for an operation that this processor, or this dtype, has no kernel for."""
    import tensorflow as tf

    return tf.errors.InvalidArgumentError, tf.errors.NotFoundError, tf.errors.UnimplementedError


def _narrowed(leaf: Any) -> Any:
    return keras.ops.cast(leaf, "float32") if getattr(leaf, "dtype", None) == "float64" else leaf


def _widened(leaf: Any) -> Any:
    return keras.ops.cast(leaf, "float64") if getattr(leaf, "dtype", None) == "float32" else leaf


@contextmanager
def without_attention_dropout(layer: Any) -> Iterator[None]:
    """An attention layer that takes its way without Dropout, which is the same outside training."""
    with ExitStack() as stack:
        for name in ("_dropout", "dropout"):
            if isinstance(vars(layer).get(name), float | int):
                _set(stack, layer, name, 0.0)
        yield
