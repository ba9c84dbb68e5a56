"""Ports with branches and loops as people use them: trained, saved, exported, run on another backend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops import scan, while_loop

import porter

START = torch.zeros((), dtype=torch.int64)


class Expert(nn.Module):
    """A branch that trains: statistics, dropout and weights of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.norm(self.conv(x)).relu())


class Gated(nn.Module):
    """One of two branches by the image."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.deep, self.shallow = nn.Conv2d(3, 4, 1, bias=False), Expert(), nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = torch.cond(x.sum() > 0, lambda x: self.deep(x) + x, lambda x: self.shallow(x), (x,))
        return self.head(x.mean((2, 3)))


class Halting(nn.Module):
    """Turns until the data say that it is enough."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        def step(i: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, torch.tanh(self.cell(h)) + h * 0.5

        h = while_loop(lambda i, h: (i < 8) & (h.abs().mean() > 0.2), step, (START, x))[1]
        return self.out(h)


class Recurrent(nn.Module):
    """A cell of one's own over time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        def step(h: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
            h = torch.tanh(self.cell(h) + t)
            return h, self.out(h)

        return scan(step, x.new_zeros(x.shape[0], 6), x, dim=1)[1].mean(1)


def _image() -> Tensor:
    return torch.rand(4, 3, 6, 6, generator=torch.Generator().manual_seed(3))


MODELS: dict[str, tuple[type[nn.Module], Tensor]] = {
    "gated": (Gated, _image()),
    "halting": (Halting, torch.randn(4, 6, generator=torch.Generator().manual_seed(3))),
    "recurrent": (Recurrent, torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(3))),
}


@pytest.fixture(scope="module", params=MODELS)
def ported(request: Any, tmp_path_factory: Any) -> tuple[nn.Module, list[Tensor], porter.Port]:
    """A model, inputs that take each of its ways, and its port."""
    torch.manual_seed(0)
    kind, x = MODELS[request.param]
    model = kind().eval()
    out = tmp_path_factory.mktemp("ports") / request.param
    return model, [x, -x, x * 1e-3], porter.port(model, (x,), out=out)


def _arrays(port: porter.Port, xs: list[Tensor]) -> list[np.ndarray]:
    return [port.to_target((x,))[0] for x in xs]


def _right(model: nn.Module, x: Tensor) -> np.ndarray:
    with torch.no_grad():
        return model(x).numpy()


def _same(found: Any, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)


Ported = tuple[nn.Module, list[Tensor], porter.Port]


def test_both_branches_train(ported: Ported) -> None:
    """`fit` moves every trained variable that the batches reach, and the statistics of the branch that is taken."""
    _, xs, port = ported
    net = port.load()
    before = {variable.path: np.asarray(variable) for variable in net.variables}
    net.compile(optimizer="sgd", loss="mse")
    for x in _arrays(port, xs[:2]):
        net.fit(x, np.ones((len(x), 2), np.float32), batch_size=4, epochs=2, verbose=0)
    still = [v.path for v in net.variables if np.array_equal(np.asarray(v), before[v.path])]
    assert not still, still
    assert net.predict(_arrays(port, xs)[0], verbose=0).shape == (4, 2)


def test_ports_are_saved_and_exported(ported: Ported, tmp_path: Path) -> None:
    import keras
    import tensorflow as tf

    model, xs, port = ported
    net = port.load()
    net.save(tmp_path / "net.keras")
    again = keras.models.load_model(tmp_path / "net.keras")
    net.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(tmp_path / "served")
    for x, array in zip(xs, _arrays(port, xs), strict=True):
        wanted = _right(model, x)
        for found in (net(array), net.predict(array, verbose=0), again(array), served.serve(array)):
            _same(found, wanted)


RUN = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import keras, model
assert keras.backend.backend() == "jax"
net, data = model.build(), np.load(sys.argv[2])
for name in data.files:
    if name.startswith("in"):
        np.testing.assert_allclose(np.asarray(net(data[name])), data["out" + name[2:]], rtol=1e-5, atol=1e-6)
print("equal")
"""


def test_ports_run_on_jax(ported: Ported, tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="jax is an optional dependency")
    model, xs, port = ported
    arrays = {f"in{i}": array for i, array in enumerate(_arrays(port, xs))}
    np.savez(tmp_path / "data.npz", **arrays, **{f"out{i}": _right(model, x) for i, x in enumerate(xs)})
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(port.path), str(tmp_path / "data.npz")],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip().endswith("equal"), done.stderr[-2000:]


def test_loops_are_not_compiled_on_tensorflow(ported: Ported) -> None:
    """Keras compiles by itself where there is a GPU, and XLA cannot differentiate them."""
    from keras.src.trainers.trainer import model_supports_jit

    model, _, port = ported
    assert model_supports_jit(port.load()) == isinstance(model, Gated)


def test_inspection_looks_into_branches() -> None:
    found = porter.inspect_model(Gated().eval(), (_image(),))
    modules = {module.path: module for module in found.modules}
    assert not found.problems
    assert modules["deep.conv"].onnx == {"Conv": 1} and modules["shallow"].onnx == {"Conv": 1}


def _refused(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda x: torch.lgamma(x), lambda x: x + 1, (x,))


def test_inspection_lists_what_is_missing_inside() -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return _refused(x)

    found = porter.inspect_model(Model(), (torch.rand(3, 4),))
    assert [problem.operator for problem in found.problems] == ["aten.lgamma.default"]


@pytest.mark.parametrize("kind", ["gated", "halting", "recurrent"])
def test_verification_looks_into_branches_and_loops(kind: str, tmp_path: Path) -> None:
    """A port is equal, and one whose layer inside is wrong is found there."""
    from safetensors.numpy import load_file, save_file

    torch.manual_seed(0)
    model_class, x = MODELS[kind]
    model, file, inside = model_class().eval(), tmp_path / "port" / "weights.safetensors", "cell"
    if kind == "gated":
        inside, x = "shallow", -x
    port = porter.port(model, (x,), out=tmp_path / "port")
    assert porter.verify(model, port, (x,), draws=2).passed
    weights = load_file(file)
    save_file({name: array * 1.1 if name == f"{inside}.kernel" else array for name, array in weights.items()}, file)
    report = porter.verify(model, port, (x,), draws=2)
    assert not report.passed and report.culprit is not None and report.culprit.path == inside
