"""What a port from Keras to PyTorch keeps of how the author wrote the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import torch
from keras import layers, ops
from safetensors.numpy import load_file

import porter
from tests.converters.targets.torch.nodes import listed

RNG = np.random.default_rng(2)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    keras.utils.set_random_seed(1)
    yield
    keras.backend.clear_session()


def ported(model: Any, *inputs: np.ndarray) -> tuple[porter.Port, Any]:
    """The port and what it gives, which is what Keras gives."""
    port = porter.port(model, inputs, to="torch")
    given = [torch.from_numpy(np.ascontiguousarray(array)) for array in port.to_target(inputs)]
    with torch.no_grad():
        found = port.load()(*given)
    wanted = keras.tree.flatten(model(list(inputs) if len(inputs) > 1 else inputs[0], training=False))
    returned = found if isinstance(found, dict) else listed(found)
    for got, right in zip(port.to_source(returned), _as_returned(found, model, inputs) or wanted, strict=True):
        np.testing.assert_allclose(got, np.asarray(right), rtol=1e-4, atol=1e-5, err_msg=port.source)
    return port, found


def _as_returned(found: Any, model: Any, inputs: tuple[np.ndarray, ...]) -> list[Any]:
    """Keras' outputs in the order of a dict's keys."""
    return [model(*inputs, training=False)[key] for key in found] if isinstance(found, dict) else []


def images(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def test_a_dict_keeps_its_keys_and_their_order() -> None:
    """Keras sorts keys when it flattens; the author did not."""
    x = keras.Input((6,))
    parts = {"zebra": layers.Dense(3)(x), "ape": layers.Dense(4)(x), "mouse": layers.Dense(3)(x)}
    port, found = ported(keras.Model(x, parts), images(2, 6))
    assert list(found) == ["zebra", "ape", "mouse"] == [spec["name"] for spec in port.manifest["outputs"]]


@pytest.mark.parametrize("channels", [5, 33])
@pytest.mark.parametrize(("scale", "center"), [(False, True), (True, False), (False, False)])
def test_norms_without_scale_or_shift(channels: int, *, scale: bool, center: bool) -> None:
    """PyTorch's layer has both or neither: the constant one is held, short or long, and not trained."""
    x = keras.Input((4, 4, channels))
    model = keras.Model(x, layers.BatchNormalization(scale=scale, center=center, name="norm")(x))
    port, _ = ported(model, images(2, 4, 4, channels))
    norm = port.load().norm
    held = {"weight": norm.weight, "bias": norm.bias}
    trained = {name for name, tensor in held.items() if tensor is not None and tensor.requires_grad}
    assert trained == {name for name, kept in (("weight", scale), ("bias", center)) if kept}
    assert set(load_file(Path(port.path) / "weights.safetensors")) == {
        name for name in port.load().state_dict() if "num_batches" not in name
    }


def test_a_chain_is_a_sequential() -> None:
    model = keras.Sequential([keras.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D()])
    model.add(keras.Sequential([layers.Flatten(), layers.Dense(5, activation="gelu")]))
    port, _ = ported(model, images(2, 8, 8, 3))
    assert list(port.weight_map) == ["0.weight", "0.bias", "3.1.weight", "3.1.bias"]
    assert "forward" not in port.source


def test_a_list_of_layers_is_a_list() -> None:
    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.steps = [layers.Dense(6, activation="tanh") for _ in range(3)]

        def call(self, x: Any) -> Any:
            for step in self.steps:
                x = x + step(x)
            return x

    port, _ = ported(Net(), images(2, 6))
    assert [name for name in port.weight_map if name.endswith("weight")] == [f"steps.{n}.weight" for n in range(3)]
    assert "for step in self.steps:" in port.source


def test_a_layer_of_the_authors_that_is_keras_own() -> None:
    class Projection(layers.Dense):
        def __init__(self, units: int) -> None:
            super().__init__(units, kernel_initializer="zeros", name="projection")

    x = keras.Input((6,))
    port, _ = ported(keras.Model(x, Projection(4)(x)), images(2, 6))
    assert "self.projection = nn.Linear(6, 4)" in port.source and "class Projection" not in port.source


def test_a_matrix_that_two_places_read_is_its_layers() -> None:
    class Tied(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.words = layers.Embedding(7, 5)

        def call(self, tokens: Any) -> Any:
            return ops.matmul(self.words(tokens), ops.transpose(self.words.embeddings))

    port, _ = ported(Tied(), np.array([[1, 2, 3]], np.int32))
    assert list(port.weight_map) == ["words.weight"] and "self.words.weight.t()" in port.source


@pytest.mark.parametrize(("rank", "op"), [(1, layers.Conv1D), (2, layers.Conv2D), (3, layers.Conv3D)])
@pytest.mark.parametrize("sides", [(1, 1), (2, 2), (1, 2)])
def test_zeros_before_a_convolution(rank: int, op: Any, sides: tuple[int, int]) -> None:
    """Even ones are the convolution's own padding, also beside SAME padding; uneven ones stay a step."""
    x = keras.Input((9,) * rank + (3,))
    zeros = {1: layers.ZeroPadding1D, 2: layers.ZeroPadding2D, 3: layers.ZeroPadding3D}[rank]
    padded = zeros(sides if rank == 1 else (sides,) * rank)(x)
    port, _ = ported(keras.Model(x, op(4, 3, strides=2)(padded)), images(2, *(9,) * rank, 3))
    even = sides[0] == sides[1]
    assert (f"padding={sides[0]}" in port.source) == even
    assert ("ZeroPad" in port.source) != even


@pytest.mark.parametrize("size", [3, 2])
@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_zeros_before_a_pool(size: int, activation: str) -> None:
    """They take part in Keras' maximum and not in that of a pool that pads: right for what is never below zero."""
    x = keras.Input((8, 8, 3))
    y = layers.ZeroPadding2D(1)(layers.Conv2D(4, 3, padding="same", activation=activation)(x))
    model = keras.Model(x, layers.MaxPooling2D(size, strides=2)(y))
    port, _ = ported(model, images(2, 8, 8, 3) - 1)
    assert ("ZeroPad" in port.source) == (activation == "linear")


def test_zeros_that_two_read() -> None:
    x = keras.Input((8, 8, 3))
    padded = layers.ZeroPadding2D(1, name="pad")(x)
    both = layers.Concatenate()([layers.Conv2D(4, 3)(padded), layers.AveragePooling2D(3, strides=1)(padded)])
    port, _ = ported(keras.Model(x, both), images(2, 8, 8, 3))
    assert "padding=1" not in port.source
