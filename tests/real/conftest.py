"""The packages are installed without what only their audio and image code needs; stand-ins take its place on import."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

# They need builds of torch's that are not ours, or compilers; no model of these tests calls them.
_UNUSED = (
    "librosa", "resampy", "torchaudio", "torchvision", "torchvision.ops", "torchvision.ops.boxes",
    "torchvision.transforms", "webrtcvad",
)  # fmt: skip


class _StandIn(ModuleType):
    """Any attribute of it is another stand-in; calling one fails."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.__name__} is a stand-in")


@contextmanager
def _stand_ins() -> Iterator[None]:
    missing = [name for name in _UNUSED if importlib.util.find_spec(name.partition(".")[0]) is None]
    for name in missing:
        module = _StandIn(name)
        module.__path__ = []
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in missing:
            sys.modules.pop(name, None)


@pytest.fixture(scope="session", autouse=True)
def packages() -> None:
    """Import what is tested once, with the stand-ins out of the way afterwards: transformers asks for torchvision."""
    with _stand_ins():
        for name in ("facenet_pytorch.models.mtcnn", "resemblyzer.voice_encoder", "torchcrepe"):
            importlib.import_module(name)
