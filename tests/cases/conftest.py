"""Precision of every case: Keras computes in float64, as torch does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from porter.runners.keras_forms import keras_precision


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with keras_precision("float64"):
        yield
