"""Real models, with the weights that people use: they port, verify, and still do what they are for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import porter
from porter.weights import carry
from porter.zoo import packages

pytestmark = pytest.mark.real
FACES = {"pnet": packages.pnet, "rnet": packages.rnet, "onet": packages.onet}
MODELS: dict[str, Callable[[], Any]] = {
    "crepe_tiny": packages.crepe_tiny,
    "speaker_encoder": packages.speaker_encoder,
    "minilm": packages.minilm,
    **FACES,
}


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, dict, porter.Port]]:
    """(source, example inputs, port) by name, each made once."""
    made: dict[str, tuple[Any, dict, porter.Port]] = {}

    def get(name: str) -> tuple[Any, dict, porter.Port]:
        if name not in made:
            model, inputs = MODELS[name]()
            made[name] = model, inputs, porter.port(model, inputs, out=tmp_path_factory.mktemp(name) / name)
        return made[name]

    return get


@pytest.mark.parametrize("name", MODELS)
def test_it_ports_and_verifies(name: str, ports: Callable) -> None:
    model, inputs, port = ports(name)
    report = porter.verify(model, port, inputs, draws=1)
    assert report.passed, report.lines()
    assert {d.leg for d in report.differences} == {"semantics", "precision"}
    assert "ops.transpose" not in port.source or name in ("minilm", "crepe_tiny"), port.source


@pytest.mark.parametrize("name", MODELS)
def test_its_weights_go_there_and_back(name: str, ports: Callable, tmp_path: Path) -> None:
    model, _, port = ports(name)
    back = tmp_path / "back.safetensors"
    carry(port.path, port.path / "weights.safetensors", back, reverse=True)
    found = load_file(back)
    for key, tensor in model.state_dict().items():
        np.testing.assert_array_equal(found[key], tensor.numpy(), err_msg=key)


@pytest.mark.parametrize("frequency", [110.0, 220.0, 329.63, 880.0])
def test_the_pitch_tracker_hears_the_same_pitch(frequency: float, ports: Callable) -> None:
    _, _, port = ports("crepe_tiny")
    heard = np.asarray(port.load()(packages.frames(packages.tone(frequency, 0.2)))).argmax(axis=1)
    cents = 20 * heard + 1997.3794084376191
    assert np.abs(1200 * np.log2(10 * 2 ** (cents / 1200) / frequency)).max() < 30


def test_the_voice_encoder_gives_the_same_voices(ports: Callable) -> None:
    model, inputs, port = ports("speaker_encoder")
    ours = np.asarray(port.load()(inputs["mels"]))
    with torch.no_grad():
        theirs = model(torch.from_numpy(inputs["mels"])).numpy()
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose((ours * theirs).sum(axis=1), 1, rtol=1e-6)


def test_sentences_of_one_meaning_are_near(ports: Callable) -> None:
    _, inputs, port = ports("minilm")
    hidden = np.asarray(port.load()(inputs["input_ids"], inputs["attention_mask"]))
    mask = inputs["attention_mask"][..., None]
    vectors = (hidden * mask).sum(axis=1) / mask.sum(axis=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    music, guitar_market, music_market = (float(vectors[a] @ vectors[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
    assert music > 0.5 > 0.2 > max(guitar_market, music_market)


def _theirs(name: str) -> Any:
    """The network of the same name in the package mtcnn, with that package's weights."""
    import importlib

    from mtcnn.utils.tensorflow import load_weights

    cls = {"pnet": "PNet", "rnet": "RNet", "onet": "ONet"}[name]
    network = getattr(importlib.import_module(f"mtcnn.network.{name}"), cls)()
    network.build()
    network.set_weights(load_weights(f"{name}.lz4"))
    return network


def test_the_two_face_detectors_have_the_same_fifty_tensors(ports: Callable) -> None:
    """facenet-pytorch and mtcnn were both converted from one Caffe model: after the weight map all bits are equal.

    mtcnn flattens an image column by column as Caffe did, the port row by row: the rows of the layer behind differ in
    order.
    """
    equal = 0
    for name in FACES:
        _, _, port = ports(name)
        theirs = {_by_rows(array).tobytes() for array in _theirs(name).get_weights()}
        ours = {array.tobytes() for array in load_file(port.path / "weights.safetensors").values()}
        assert ours == theirs
        equal += len(load_file(port.path / "weights.safetensors"))
    assert equal == 50


def _by_rows(array: np.ndarray) -> np.ndarray:
    """The matrix behind the flattened 3 x 3 images with its rows in the order of rows, columns, channels."""
    if array.ndim != 2 or array.shape[0] not in (576, 1152):
        return array
    return array.reshape(3, 3, -1, array.shape[1]).swapaxes(0, 1).reshape(array.shape)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *[("pnet", shape) for shape in ((2, 36, 36, 3), (1, 47, 64, 3), (3, 12, 12, 3))],
        ("rnet", (5, 24, 24, 3)),
        ("onet", (4, 48, 48, 3)),
    ],
)
def test_the_port_of_one_face_detector_is_the_other(name: str, shape: tuple[int, ...], ports: Callable) -> None:
    """Outputs in the same order (boxes, landmarks, faces), though the layers that make them are numbered otherwise."""
    _, _, port = ports(name)
    images = np.random.default_rng(1).uniform(-1, 1, size=shape).astype(np.float32)
    ours, theirs = port.load()(images), _theirs(name)(images)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(keras.ops.convert_to_numpy(mine), other.numpy(), rtol=2e-5, atol=2e-6)
