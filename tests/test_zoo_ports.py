"""Every PyTorch model of the zoo: ported, verified on both legs at sizes never traced, weights bit-identical."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import porter
from porter.converters import weights as wx
from porter.zoo import catalog

MODELS = [entry.name for entry in catalog.originals("torch")]


@pytest.fixture(scope="module", params=MODELS)
def ported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """(name, source model, example inputs, port) of one zoo model."""
    entry = catalog.find(request.param)
    model, inputs = entry.make(small=True), entry.inputs(small=True)
    out = tmp_path_factory.mktemp("ports") / entry.name
    return entry.name, model, inputs, porter.port(model, inputs, dynamic=entry.dynamic, name=entry.name, out=out)


def test_it_verifies(ported: tuple) -> None:
    _, model, inputs, port = ported
    report = porter.verify(model, port, inputs, draws=1)
    assert report.passed, "\n".join(report.lines())
    assert any("at " in difference.draw for difference in report.differences), (
        "no size was tried that the tracer never saw"
    )


def test_every_trainable_parameter_is_in_the_port_once(ported: tuple) -> None:
    _, model, _, port = ported
    trained = {source for entry in port.weight_map.values() if entry["trainable"] for source in _sources(entry)}
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained == names - set(port.manifest["unused"])
    sizes = sum(
        np.prod(wx.from_json(entry["expression"]).shape) for entry in port.weight_map.values() if entry["trainable"]
    )
    assert sizes == sum(p.numel() for name, p in model.named_parameters() if name in trained)


def test_weights_go_back_bit_for_bit(ported: tuple) -> None:
    from safetensors.numpy import load_file

    _, model, _, port = ported
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    restored: dict[str, np.ndarray] = {}
    for name, array in load_file(Path(port.path) / "weights.safetensors").items():
        if port.weight_map[name]["kind"] != "constant":
            wx.from_json(port.weight_map[name]["expression"]).restore(array, restored)
    assert restored
    for name, array in restored.items():
        np.testing.assert_array_equal(array, state[name], err_msg=name)


def _sources(entry: dict) -> list[str]:
    return list(wx.from_json(entry["expression"]).sources())
