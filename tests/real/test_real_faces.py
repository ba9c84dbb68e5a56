"""A true pair: facenet-pytorch (PyTorch) and mtcnn (Keras) ship the same three networks, so a port of one is the other.

Both take images as (value - 127.5) / 128 and return boxes, landmarks and probabilities in this order. What differs:
some layers have other names; and where both read a 3 x 3 image column by column (a transpose before it is flattened, as
in the Caffe originals), the port reads it row by row, and the rows of the matrix behind it are in that order.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.real.models import FACES, ported

pytestmark = [pytest.mark.real]
# The port's name of a layer: mtcnn's, where they differ.
THEIR_NAMES = {
    "pnet": {"conv4_1": "conv4_2", "conv4_2": "conv4_1"},
    "rnet": {"dense4": "fc4", "dense5_1": "fc5_2", "dense5_2": "fc5_1"},
    "onet": {"dense5": "fc5", "dense6_1": "fc6_3", "dense6_2": "fc6_1", "dense6_3": "fc6_2"},
}
# The layer behind the flattened image.
FLATTENED = {"rnet": "dense4.kernel", "onet": "dense5.kernel"}


def _theirs(name: str) -> Any:
    """The network in the package mtcnn, with the weights that this package's own loader reads."""
    from mtcnn.utils.tensorflow import load_weights

    cls = {"pnet": "PNet", "rnet": "RNet", "onet": "ONet"}[name]
    network = getattr(importlib.import_module(f"mtcnn.network.{name}"), cls)()
    network.build()
    network.set_weights(load_weights(f"{name}.lz4"))
    return network


def _by_rows(matrix: np.ndarray) -> np.ndarray:
    """A matrix behind 3 x 3 images read by columns, its rows ordered as for images read by rows."""
    return matrix.reshape(3, 3, -1, matrix.shape[1]).swapaxes(0, 1).reshape(matrix.shape)


@pytest.fixture
def double() -> Iterator[None]:
    """Keras computes in float64."""
    policy, floatx = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)


def test_all_fifty_tensors_have_the_same_bits() -> None:
    """PyTorch's weights, carried by the weight map into Keras' layout, against mtcnn's own, layer by layer."""
    same = 0
    for name in FACES:
        theirs = _theirs(name)
        ours = load_file(ported(name).port.path / "weights.safetensors")
        assert len(ours) == len(theirs.weights)
        for path, array in ours.items():
            layer, variable = path.split(".")
            other = getattr(getattr(theirs, THEIR_NAMES[name].get(layer, layer)), variable).numpy()
            other = _by_rows(other) if path == FLATTENED.get(name) else other
            assert array.dtype == other.dtype and array.shape == other.shape, path
            assert array.tobytes() == other.tobytes(), path
            same += 1
    assert same == 50


IMAGES = [
    *[("pnet", (2, 36, 36, 3)), ("pnet", (1, 47, 64, 3)), ("pnet", (1, 64, 47, 3)), ("pnet", (3, 12, 12, 3))],
    *[("rnet", (5, 24, 24, 3)), ("onet", (4, 48, 48, 3))],
]


@pytest.mark.parametrize(("name", "shape"), IMAGES)
def test_the_port_gives_what_the_other_package_gives(name: str, shape: tuple[int, ...], double: None) -> None:
    """In float64, where nothing but a difference in meaning would be left."""
    images = (np.random.default_rng(1).integers(0, 256, size=shape) - 127.5) * 0.0078125
    ours, theirs = ported(name).port.load()(images), _theirs(name)(images)
    assert len(ours) == len(theirs) == (3 if name == "onet" else 2)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == "float64" and mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("name", "shape"), IMAGES)
def test_faces_are_found_as_in_the_source(name: str, shape: tuple[int, ...]) -> None:
    """In float32, as people run it: the same probabilities, boxes and landmarks as facenet-pytorch's."""
    images = ((np.random.default_rng(2).integers(0, 256, size=shape) - 127.5) * 0.0078125).astype(np.float32)
    ours = ported(name).port.load()(images)
    theirs = ported(name).source(images.transpose(0, 3, 1, 2).copy())
    for mine, other in zip(ours, theirs, strict=True):
        other = other.numpy()
        other = other.transpose(0, 2, 3, 1) if other.ndim == 4 else other
        np.testing.assert_allclose(mine, other, atol=4e-6)
