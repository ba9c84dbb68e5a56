"""Precision of the Keras side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def keras_double() -> Iterator[None]:
    """Keras computes in float64 for one test."""
    import keras

    policy, floatx = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)
