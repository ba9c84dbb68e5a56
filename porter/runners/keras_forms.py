"""The float64 form of a Keras model, and the setting under which it is built and run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from porter.errors import InconclusiveError
from porter.runners.base import Precision


@contextmanager
def keras_precision(dtype: Precision) -> Iterator[None]:
    """`floatx` and the global dtype policy in `dtype`, put back afterwards.

    Also needed while a model runs: `keras.ops` makes its constants in `floatx`.
    """
    import keras

    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)
    try:
        yield
    finally:
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)


def float64_copy(model: Any) -> Any:
    """A copy of a built Keras model that computes in float64, with the same weights.

    Raises:
        InconclusiveError: the model's configuration does not rebuild it.
    """
    import keras

    try:
        objects = {type(layer).__name__: type(layer) for layer in model._flatten_layers()}
        with keras_precision("float64"), keras.utils.custom_object_scope(objects):
            clone = type(model).from_config(_widened(model.get_config()))
            if not clone.built:
                clone.build_from_config(model.get_build_config())
    except Exception as error:
        raise InconclusiveError(_no_form(model, f"get_config and from_config do not rebuild it: {error}")) from error
    ours, theirs = [w.shape for w in clone.weights], [w.shape for w in model.weights]
    if ours != theirs:
        raise InconclusiveError(_no_form(model, f"its copy has {len(ours)} weights where it has {len(theirs)}"))
    assign_weights(clone, model.get_weights())
    return clone


def assign_weights(model: Any, weights: Sequence[np.ndarray]) -> None:
    """`model.set_weights`, and a Normalization that was adapted works with its new statistics."""
    import keras

    model.set_weights(weights)
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Normalization) and layer.input_mean is None:
            layer.finalize_state()


def _no_form(model: Any, reason: str) -> str:
    return (
        f"{type(model).__name__} has no float64 form: {reason}. Give KerasRunner a function that builds the model "
        "with its weights, or add get_config and build to the class."
    )


def _widened(config: Any) -> Any:
    """The configuration with every layer's dtype policy turned into float64."""
    if isinstance(config, list | tuple):
        return type(config)(_widened(item) for item in config)
    if not isinstance(config, dict):
        return config
    return {key: _policy(value) if key == "dtype" else _widened(value) for key, value in config.items()}


def _policy(value: Any) -> Any:
    narrow = {"float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"}
    if isinstance(value, dict):
        name = value.get("config", {}).get("name")
        return "float64" if name in narrow else value
    return "float64" if value in narrow else value
