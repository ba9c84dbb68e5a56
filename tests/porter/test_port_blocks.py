"""The classes of a port as Keras layers of their own: trained through the whole, saved and loaded on their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from torch import nn

import porter
from porter.zoo import catalog


@pytest.fixture(scope="module")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> porter.Port:
    entry = catalog.find("mobilenet_v2")
    out = tmp_path_factory.mktemp("blocks") / entry.name
    inputs = entry.inputs(small=True, batch=4)
    return porter.port(entry.make(small=True), inputs, dynamic=entry.dynamic, name=entry.name, out=out)


def arrays(variables: list[Any]) -> list[np.ndarray]:
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


def test_fit_trains_every_layer_however_deep(mobilenet: porter.Port) -> None:
    """Keras tells the innermost layers that it trains: every running statistic moves, and dropout draws."""
    model = mobilenet.load()
    (x,) = mobilenet.to_target(catalog.find("mobilenet_v2").inputs(small=True, batch=4))
    running = [v for v in model.variables if v.name.startswith("moving_")]
    before = arrays(running)
    model.compile(optimizer=keras.optimizers.SGD(0.0), loss="mse")
    model.fit(x, np.zeros((4, 10), np.float32), epochs=1, batch_size=4, verbose=0)
    norms = [m for m in catalog.find("mobilenet_v2").make(small=True).modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(running) == 2 * len(norms)
    assert all((a != b).any() for a, b in zip(before, arrays(running), strict=True))
    first, second = (arrays([model(x, training=True)])[0] for _ in range(2))
    assert (first != second).any()


def test_predict_trains_nothing(mobilenet: porter.Port) -> None:
    model = mobilenet.load()
    (x,) = mobilenet.to_target(catalog.find("mobilenet_v2").inputs(small=True, batch=4))
    before = arrays(model.variables)
    model.predict(x, verbose=0)
    for kept, variable in zip(before, arrays(model.variables), strict=True):
        np.testing.assert_array_equal(kept, variable)


BLOCKS: dict[str, Callable[[Any], Any]] = {
    "a chain with arguments": lambda port: port.ConvBNReLU(8, kernel_size=3, strides=2),
    "a layer with arguments": lambda port: port.InvertedResidual(8, 1, conv_filters=12, use_residual=True),
}


@pytest.mark.parametrize("make", BLOCKS.values(), ids=BLOCKS)
def test_a_block_in_a_model_of_the_users_is_saved_with_it(
    mobilenet: porter.Port, make: Callable[[Any], Any], tmp_path: Path
) -> None:
    """By its constructor's arguments, which Keras keeps; twice, since a loaded layer is saved again."""
    inputs = keras.Input((16, 16, 8))
    model = keras.Model(inputs, make(mobilenet.module())(inputs))
    x = np.random.default_rng(0).standard_normal((2, 16, 16, 8), np.float32)
    want = model(x)
    for turn in range(2):
        model.save(tmp_path / f"{turn}.keras")
        model = keras.saving.load_model(tmp_path / f"{turn}.keras")
        np.testing.assert_array_equal(arrays([model(x)])[0], arrays([want])[0])
