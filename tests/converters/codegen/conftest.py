"""The emitter is tested by what it writes: run beside the source, in double precision."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from porter.runners.keras_forms import keras_precision


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with keras_precision("float64"):
        yield
