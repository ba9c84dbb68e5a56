"""The real models, each ported once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import porter
from porter.zoo import packages

MODELS: dict[str, Callable[[], Any]] = {
    "crepe_tiny": packages.crepe_tiny,
    "speaker_encoder": packages.speaker_encoder,
    "minilm": packages.minilm,
    "pnet": packages.pnet,
    "rnet": packages.rnet,
    "onet": packages.onet,
}
FACES = ("pnet", "rnet", "onet")


class Ported(NamedTuple):
    """A model out of its package, its example inputs and its port."""

    model: Any
    inputs: dict[str, np.ndarray]
    port: porter.Port

    def source(self, *arrays: np.ndarray) -> Any:
        """What the source gives, as PyTorch tensors."""
        import torch

        with torch.no_grad():
            return self.model(*[torch.from_numpy(array) for array in arrays])


@cache
def ported(name: str) -> Ported:
    """The model of that name; the folder of its port lives as long as the tests do."""
    model, inputs = MODELS[name]()
    folder = tempfile.TemporaryDirectory()
    port = porter.port(model, inputs, to="keras", out=Path(folder.name) / name)
    _FOLDERS.append(folder)
    return Ported(model, inputs, port)


_FOLDERS: list[tempfile.TemporaryDirectory] = []
