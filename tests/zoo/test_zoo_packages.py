"""Models out of packages: what is said when the package is missing, and what stands in for its unused libraries."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from porter.zoo import packages
from porter.zoo.standins import imported

FACTORIES = {
    "torchcrepe": packages.crepe_tiny,
    "resemblyzer": packages.speaker_encoder,
    "transformers": packages.minilm,
    "facenet_pytorch": packages.onet,
}
MODEL = """
import absent_images
import broken_operators.nms
from absent_audio.files import load
from broken_operators.boxes import clipped as clip
answer = 42
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(("package", "factory"), FACTORIES.items(), ids=FACTORIES)
def test_a_missing_package_is_named_with_the_extra(
    package: str, factory: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(ImportError, match=r"is not installed: pip install 'porter-ml\[zoo\]'"):
        factory()


def test_unused_libraries_may_be_missing_or_broken(folder: Path) -> None:
    (folder / "some_model.py").write_text(MODEL)
    (folder / "broken_operators").mkdir()
    (folder / "broken_operators" / "__init__.py").write_text("import broken_operators.nms\nraise RuntimeError('no')\n")
    (folder / "broken_operators" / "nms.py").write_text("real = True\n")
    unused = ("absent_audio", "absent_images", "broken_operators")
    module = imported("some_model", "some-model", unused=unused)
    assert module.answer == 42
    assert imported("some_model", "some-model", unused=unused) is module
    assert not [name for name in sys.modules if name.partition(".")[0] in unused], "a stand-in was left behind"
    with pytest.raises(RuntimeError, match=r"broken_operators\.boxes\.clipped is a stand-in"):
        module.clip()
    with pytest.raises(ImportError):
        importlib.import_module("absent_audio")


def test_a_library_that_loads_is_itself(folder: Path) -> None:
    (folder / "fine_library.py").write_text("number = 7\n")
    (folder / "other_model.py").write_text("import fine_library\nanswer = fine_library.number\n")
    assert imported("other_model", "other-model", unused=("fine_library",)).answer == 7
    assert "fine_library" in sys.modules


def test_a_library_that_is_needed_is_named(folder: Path) -> None:
    (folder / "needy_model.py").write_text("import absent_numbers\n")
    with pytest.raises(ImportError, match=r"needy-model cannot be imported \(No module named 'absent_numbers'\)"):
        imported("needy_model", "needy-model")


def test_inputs_are_sound() -> None:
    """Frames of a tone peak at its frequency; the mel band of a tone is the one that lies there."""
    frames = packages.frames(packages.tone(440.0, 0.2))
    assert frames.shape == (14, 1024)
    assert abs(int(abs(np.fft.rfft(frames[0])).argmax()) * packages.SAMPLE_RATE / 1024 - 440) < 16
    low, high = (packages.mels(audio) for audio in packages.VOICES)
    assert low.shape == high.shape == (161, 40) and (low >= 0).all()
    for frequency in (500.0, 1000.0, 4000.0):
        mel = packages.mels(packages.tone(frequency, 0.3)).sum(axis=0).argmax()
        # 42 corners evenly spaced up to mel 45.245 (8 kHz): 3 mels for every 200 Hz, and 27 for a factor of 6.4.
        wanted = 3 * frequency / 200 if frequency <= 1000 else 15 + 27 * np.log(frequency / 1000) / np.log(6.4)
        assert abs((mel + 1) * 45.245 / 41 - wanted) < 45.245 / 41
