"""Every Keras model of the zoo as PyTorch: verified on both legs at sizes never traced, its variables all there."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import torch

import porter
from porter.converters import weights as wx
from porter.zoo import catalog

LARGE = ("resnet50_functional", "efficientnet_b0_functional", "densenet40_12_functional")
MODELS = [
    pytest.param(entry.name, marks=pytest.mark.sweep if entry.name in LARGE else ())
    for entry in catalog.originals("keras")
]


@pytest.fixture(scope="module", params=MODELS)
def ported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """(entry, source model, example inputs, port) of one zoo model."""
    entry = catalog.find(f"keras/{request.param}")
    model, inputs = entry.make(small=True), entry.inputs(small=True)
    out = tmp_path_factory.mktemp("ports") / entry.name
    port = porter.port(model, inputs, to="torch", dynamic=entry.dynamic, name=entry.name, out=out)
    return entry, model, inputs, port


def test_it_verifies(ported: tuple[Any, ...]) -> None:
    _, model, inputs, port = ported
    report = porter.verify(model, port, inputs, draws=1)
    assert report.passed, "\n".join(report.lines())
    assert any("at " in difference.draw for difference in report.differences)


def test_every_variable_has_its_place(ported: tuple[Any, ...]) -> None:
    _, model, _, port = ported
    variables = {variable.path for variable in model.weights if "seed_generator" not in variable.path}
    held = {source for made in port.weight_map.values() for source in wx.from_json(made["expression"]).sources()}
    assert variables - set(port.manifest["unused"]) <= held
    state = {name: tensor for name, tensor in port.load().state_dict().items() if "num_batches" not in name}
    assert state.keys() == port.weight_map.keys()


def test_what_is_trained_is_trained(ported: tuple[Any, ...]) -> None:
    _, model, _, port = ported
    trained = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    assert sum(p.numel() for p in port.load().parameters() if p.requires_grad) == trained


def test_fresh_weights_run(ported: tuple[Any, ...]) -> None:
    _, _, inputs, port = ported
    model = port.module().build(weights=False)
    with torch.no_grad():
        found = model(*(torch.from_numpy(np.array(array)) for array in port.to_target(inputs)))
    tensors = keras.tree.flatten(found)
    assert tensors and all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
