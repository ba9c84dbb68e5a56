"""Keras' preprocessing layers as PyTorch: what they give on bytes and on floats, to the last bit of every pixel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import torch
from keras import layers

from porter.converters.frontends.keras import to_onnx
from porter.converters.pipeline import generate
from tests.converters.targets.torch.nodes import listed, loaded

RNG = np.random.default_rng(17)
SIZES = [(30, 41), (24, 24), (48, 40), (100, 50), (240, 320), (7, 9)]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    keras.backend.clear_session()


def ported(model: keras.Model, example: np.ndarray) -> tuple[torch.nn.Module, Any]:
    converted = to_onnx(model, example)
    arrays = {name: value.const_value.numpy() for name, value in converted.model.graph.initializers.items()}
    generated = generate(converted.model, target="torch")
    return loaded(generated, arrays), generated


def run(port: torch.nn.Module, generated: Any, images: np.ndarray) -> np.ndarray:
    """What the port gives in the source's order of axes."""
    with torch.no_grad():
        moved = np.ascontiguousarray(images.transpose(generated.inputs[0].permutation))
        (found,) = listed(port(torch.from_numpy(moved)))
    return found.numpy().transpose(np.argsort(generated.outputs[0].permutation))


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("target", [(28, 28), (24, 36), (180, 180)])
def test_bytes_stay_the_same_bytes(target: tuple[int, int], *, double: bool) -> None:
    """Many samples lie halfway between two bytes: each of them becomes the byte that it does in Keras."""
    photos = keras.Input((None, None, 3), dtype="uint8")
    model = keras.Model(photos, layers.Resizing(*target)(photos))
    port, generated = ported(model, np.zeros((2, 20, 20, 3), np.uint8))
    port = port.double() if double else port.float()
    for height, width in SIZES:
        images = RNG.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
        wanted = np.asarray(model(images))
        found = run(port, generated, images)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, err_msg=f"{height} x {width}\n{generated.source}")


def test_bytes_in_half_precision() -> None:
    photos = keras.Input((None, None, 3), dtype="uint8")
    model = keras.Model(photos, layers.Conv2D(2, 1)(layers.Rescaling(1 / 255)(layers.Resizing(28, 28)(photos))))
    port, generated = ported(model, np.zeros((2, 20, 20, 3), np.uint8))
    images = RNG.integers(0, 256, (2, 31, 43, 3), dtype=np.uint8)
    found, wanted = run(port.half(), generated, images), np.asarray(model(images))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, wanted, atol=2**-9 * np.abs(wanted).max())


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("target", [(28, 20), (57, 61)])
def test_floats_are_interpolated(interpolation: str, target: tuple[int, int]) -> None:
    x = keras.Input((31, 43, 3))
    model = keras.Model(x, layers.Resizing(*target, interpolation=interpolation)(x))
    images = RNG.normal(size=(2, 31, 43, 3)).astype(np.float32)
    port, generated = ported(model, images)
    # TensorFlow looks the cubic kernel up in a table of 1024 places.
    tolerance = np.abs(images).max() * (2e-3 if interpolation == "bicubic" else 1e-5)
    found = run(port.float(), generated, images)
    np.testing.assert_allclose(found, np.asarray(model(images)), atol=tolerance)


CHAINS: list[list[Any]] = [
    [layers.Rescaling, {"scale": 1 / 127.5, "offset": -1.0}],
    [layers.Rescaling, {"scale": [0.5, 1.0, 2.0], "offset": [0.0, -1.0, 1.0]}],
    [layers.Normalization, {"mean": [1.0, 2.0, 3.0], "variance": [4.0, 0.25, 1.0]}],
    [layers.Normalization, {"mean": 1.0, "variance": 4.0, "invert": True}],
    [layers.CenterCrop, {"height": 5, "width": 8}],
    [layers.CenterCrop, {"height": 6, "width": 7}],
    [layers.ZeroPadding2D, {"padding": ((1, 2), (0, 3))}],
    [layers.Cropping2D, {"cropping": ((1, 2), (0, 3))}],
]


@pytest.mark.parametrize(("kind", "settings"), CHAINS, ids=lambda value: getattr(value, "__name__", None))
@pytest.mark.parametrize("channels", [3])
@pytest.mark.parametrize(("height", "width"), [(9, 12), (10, 11)])
def test_before_flatten_and_dense(kind: Any, settings: dict[str, Any], channels: int, height: int, width: int) -> None:
    """What they give, channels first, and flattened into a dense layer: its rows follow the order of the pixels."""
    x = keras.Input((height, width, channels))
    prepared = kind(**settings)(x)
    shown = layers.Conv2D(4, 3, padding="same", activation="relu")(prepared)
    model = keras.Model(x, [layers.Dense(5)(layers.Flatten()(shown)), layers.Dense(5)(layers.Flatten()(prepared))])
    images = RNG.normal(size=(2, height, width, channels)).astype(np.float32)
    port, generated = ported(model, images)
    moved = np.ascontiguousarray(images.transpose(generated.inputs[0].permutation))
    with torch.no_grad():
        found = listed(port.float()(torch.from_numpy(moved)))
    for got, right in zip(found, model(images), strict=True):
        np.testing.assert_allclose(got.numpy(), np.asarray(right), rtol=1e-4, atol=1e-5, err_msg=generated.source)


@pytest.mark.parametrize("side", [4, 6])
def test_all_sizes_equal(side: int) -> None:
    """Nothing tells the axes apart but their order."""
    x = keras.Input((side, side, side))
    normalized = layers.Normalization(mean=np.arange(side) / 2, variance=np.arange(side) + 1.0)(x)
    shown = layers.Conv2D(side, 3, padding="same")(layers.CenterCrop(side - 2, side - 2)(normalized))
    model = keras.Model(x, layers.Dense(side)(layers.Flatten()(shown)))
    images = RNG.normal(size=(side, side, side, side)).astype(np.float32)
    port, generated = ported(model, images)
    found = run(port.float(), generated, images)
    np.testing.assert_allclose(found, np.asarray(model(images)), rtol=1e-4, atol=1e-5, err_msg=generated.source)
