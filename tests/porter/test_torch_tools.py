"""Ports to PyTorch under PyTorch's own tools: compiled, exported, traced, in half precision, without storage."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch

import porter
from porter.zoo import catalog
from tests.converters.targets.torch.nodes import listed

MODELS = [
    "mobilenet_v2_functional",
    "vgg16_sequential",
    "photo_classifier",
    "lstm_sequential",
    "masked_lstm",
    "siamese",
]


@pytest.fixture(scope="module", params=MODELS)
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """(port, its model, its inputs, what it gives)."""
    entry = catalog.find(f"keras/{request.param}")
    inputs = entry.inputs(small=True)
    out = tmp_path_factory.mktemp("ports") / entry.name
    made = porter.port(entry.make(small=True), inputs, to="torch", dynamic=entry.dynamic, name=entry.name, out=out)
    given = tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in made.to_target(inputs))
    model = made.load()
    with torch.no_grad():
        return made, model, given, listed(model(*given))


def check(found: Any, wanted: list[torch.Tensor]) -> None:
    for got, right in zip(listed(found), wanted, strict=True):
        torch.testing.assert_close(got, right)


def test_compiled(port: tuple[Any, ...]) -> None:
    _, model, given, wanted = port
    torch.compiler.reset()
    whole = not any(isinstance(module, torch.nn.RNNBase) for module in model.modules())  # PyTorch compiles around those
    with torch.no_grad():
        check(torch.compile(model, backend="aot_eager", fullgraph=whole)(*given), wanted)


def test_exported(port: tuple[Any, ...]) -> None:
    _, model, given, wanted = port
    with torch.no_grad():
        check(torch.export.export(model, given).module()(*given), wanted)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_traced(port: tuple[Any, ...]) -> None:
    _, model, given, wanted = port
    saved = io.BytesIO()
    torch.jit.save(torch.jit.trace(model, given, check_trace=False), saved)
    saved.seek(0)
    with torch.no_grad():
        check(torch.jit.load(saved)(*given), wanted)


@pytest.mark.parametrize(("dtype", "unit"), [(torch.float16, 2.0**-11), (torch.bfloat16, 2.0**-8)])
def test_in_half_precision(port: tuple[Any, ...], dtype: torch.dtype, unit: float) -> None:
    """Inputs that are whole numbers are not cast by anybody but the model."""
    made, _, given, wanted = port
    model = made.module().build(dtype=dtype)
    cast = [x.to(dtype) if x.is_floating_point() else x for x in given]
    with torch.no_grad():
        for got, right in zip(listed(model(*cast)), wanted, strict=True):
            assert got.dtype == dtype
            error = (got.float() - right).abs().max() / right.abs().max()
            assert error < 64 * unit, error


def test_without_storage(port: tuple[Any, ...]) -> None:
    """Shapes alone, which need neither weights nor time."""
    made, _, given, wanted = port
    model = made.load().to(device="meta")
    found = listed(model(*(x.to("meta") for x in given)))
    assert [(x.shape, x.device.type) for x in found] == [(x.shape, "meta") for x in wanted]


def test_train_and_eval(port: tuple[Any, ...]) -> None:
    """Dropout and BatchNorm are the framework's own layers, and follow its switch."""
    _, model, given, wanted = port
    random = (torch.nn.Dropout, torch.nn.Dropout2d, torch.nn.BatchNorm2d)
    if any(isinstance(module, random) for module in model.modules()):
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model.train()
        assert any(not torch.allclose(a, b) for a, b in zip(listed(model(*given)), wanted, strict=True))
        model.load_state_dict(state)
    model.eval()
    with torch.no_grad():
        check(model(*given), wanted)
