"""A port as its user meets it: fit, save, export, other backends, fresh weights, and names that mean harm."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from safetensors.numpy import load_file, save_file
from torch import nn

import porter
from porter.errors import InputError, UnsupportedError
from porter.zoo import catalog

BACKENDS = ("jax", "torch")


def ported(name: str, folder: Path) -> tuple[porter.Port, tuple[np.ndarray, ...]]:
    """(port of a small zoo model, its inputs as the port takes them)."""
    entry = catalog.find(name)
    inputs = entry.inputs(small=True, batch=4)
    port = porter.port(entry.make(small=True), inputs, dynamic=entry.dynamic, name=name, out=folder / "ported" / name)
    return port, port.to_target(inputs)


@pytest.fixture(scope="module")
def lenet(tmp_path_factory: pytest.TempPathFactory) -> tuple[porter.Port, tuple[np.ndarray, ...]]:
    return ported("lenet", tmp_path_factory.mktemp("lenet"))


def flat(outputs: Any) -> list[np.ndarray]:
    return [keras.ops.convert_to_numpy(tensor) for tensor in keras.tree.flatten(outputs)]


def close(got: list[np.ndarray], want: list[np.ndarray], rounding: float = 2e-6) -> None:
    """Equal but for the order of additions, relative to the largest output."""
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=rounding * max(1.0, np.abs(b).max()))


# ---- what Keras does with a model ----


@pytest.mark.parametrize("name", ["lenet", "bert_tiny", "dlrm"])
def test_fit_and_predict(name: str, tmp_path: Path) -> None:
    port, inputs = ported(name, tmp_path)
    model = port.load()
    given = inputs[0] if len(inputs) == 1 else list(inputs)
    outputs = flat(model.predict(given, verbose=0))
    close(outputs, flat(model(*inputs, training=False)))
    wanted = [np.zeros_like(array) for array in outputs]
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss=["mse"] * len(wanted))
    history = model.fit(given, wanted, epochs=5, batch_size=2, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]


@pytest.mark.parametrize("name", ["resnet18", "bert_tiny", "gru_lm", "dlrm", "gcn"])
def test_save_and_load_again(name: str, tmp_path: Path) -> None:
    port, inputs = ported(name, tmp_path)
    model = port.load()
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for got, want in zip(flat(again(*inputs)), flat(model(*inputs)), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["lenet", "bert_tiny", "gru_lm", "gcn"])
def test_export_serves_the_same_at_any_batch(name: str, tmp_path: Path) -> None:
    port, _ = ported(name, tmp_path)
    model = port.load()
    model.export(tmp_path / "saved", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "saved"))
    for batch in (1, 3):
        inputs = port.to_target(catalog.find(name).inputs(small=True, batch=batch, seed=batch))
        close(flat(served.serve(*inputs)), flat(model(*inputs, training=False)), rounding=1e-5)


# ---- the directory alone ----

_RUN = """
import sys
import numpy as np
sys.path.insert(0, {folder!r})
from ported.{name}.model import build
import keras
held = np.load({inputs!r})
outputs = build()(*(held[key] for key in sorted(held.files)))
np.savez({outputs!r}, *(keras.ops.convert_to_numpy(tensor) for tensor in keras.tree.flatten(outputs)))
print(keras.backend.backend(), *sorted({{"porter", "torch", "tensorflow"}} & set(sys.modules)))
"""


def run_alone(port: porter.Port, inputs: tuple[np.ndarray, ...], folder: Path, backend: str) -> tuple[list, list[str]]:
    """(outputs, [backend, libraries that were loaded]) of the port in a process of its own, elsewhere."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    files = {"inputs": str(folder / "inputs.npz"), "outputs": str(folder / f"{backend}.npz")}
    np.savez(files["inputs"], **{f"{number:02}": array for number, array in enumerate(inputs)})
    code = _RUN.format(folder=str(port.path.parents[1]), name=port.path.name, **files)
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=elsewhere, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    held = np.load(files["outputs"])
    return [held[key] for key in held.files], done.stdout.split()


def test_it_needs_neither_porter_nor_torch(lenet: tuple, tmp_path: Path) -> None:
    port, inputs = lenet
    outputs, loaded = run_alone(port, inputs, tmp_path, "tensorflow")
    assert loaded == ["tensorflow", "tensorflow"]
    close(outputs, flat(port.load()(*inputs)))


@pytest.mark.parametrize(
    "name", ["lenet", "gpt_tiny", *(pytest.param(n, marks=pytest.mark.slow) for n in ("resnet50", "mlp", "vit_tiny"))]
)
def test_every_backend_of_keras_computes_the_same(name: str, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    port, inputs = ported(name, tmp_path)
    want = flat(port.load()(*inputs))
    for backend in BACKENDS:
        got, loaded = run_alone(port, inputs, tmp_path, backend)
        assert loaded[0] == backend
        close(got, want)


# ---- on disk in one go ----


def test_an_existing_folder_is_refused(lenet: tuple) -> None:
    port, _ = lenet
    entry = catalog.find("lenet")
    before = {file: file.read_bytes() for file in port.path.iterdir()}
    with pytest.raises(InputError, match="exists; force=True"):
        porter.port(entry.make(small=True), entry.inputs(small=True), out=port.path)
    assert {file: file.read_bytes() for file in port.path.iterdir()} == before


@pytest.mark.parametrize("stage", ["trace", "translate", "write source", "write weights"])
@pytest.mark.parametrize("stands", [False, True], ids=["new", "forced"])
def test_an_interrupted_port_leaves_nothing_half_made(tmp_path: Path, stage: str, stands: bool) -> None:
    entry, out = catalog.find("lenet"), tmp_path / "out" / "lenet"
    if stands:
        out.mkdir(parents=True)
        (out / "port.json").write_text("{}")

    def interrupt(said: str) -> None:
        if said == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        porter.port(entry.make(small=True), entry.inputs(small=True), out=out, force=True, progress=interrupt)
    left = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    assert left == (["out/lenet/port.json"] if stands else [])


# ---- names are data ----

EVIL = [
    "''' + __import__('os').system('touch pwned') + '''",
    '"""\nimport os; os.mkdir("pwned")\n"""',
    "a\nraise SystemExit",
    "class",
    "None",
    "self",
    "__init__",
    "__class__",
    "build",
    "call",
    "layers",
    "print",
    "\uff45\uff58\uff45\uff43",  # full-width "exec", which Python reads as exec
    "\ufb01nd",  # "find" with a ligature
    "\u202eevil\u2066",  # letters that turn what follows them around
    "\u6570",
    "1st",
    "a-b",
    "",
]


def evil_net(name: str) -> nn.Module:
    """A model that bears `name` wherever a model has a name of its own."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return next(self.children())(x) * self.get_parameter("plain") + 1

    held = nn.Linear(3, 3)
    inner = type(name or "Inner", (nn.Module,), {"forward": lambda self, x: torch.relu(self.linear(x))})()
    inner.linear = held
    net = type(name or "Net", (nn.Module,), {"forward": forward})()
    try:
        net.add_module(name, inner)
    except KeyError:  # torch itself refuses dots, the empty name, and names that a module has
        net.child = inner
    net.plain = nn.Parameter(torch.ones(3))
    return net


@pytest.mark.parametrize("name", EVIL)
def test_names_cannot_become_code(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    net, x = evil_net(name).eval(), np.ones((2, 3), np.float32)
    port = porter.port(net, (x,), out=tmp_path / "evil", name=name or "evil", reference=f"torch:m:{name}")
    tree = ast.parse(port.source)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {"keras", "math"}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert all(word.isascii() for word in names | attributes)
    assert all(char.isprintable() or char == "\n" for char in port.source)
    assert not names & {"__import__", "exec", "eval", "print", "os", "SystemExit"}
    with torch.no_grad():
        close(flat(port.load()(x)), [net(torch.from_numpy(x)).numpy()])
    assert not (tmp_path / "pwned").exists()


# ---- fresh weights ----


class Layers(nn.Module):
    """Every kind of layer that torch and Keras initialise differently."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 64, 3)
        self.depthwise = nn.Conv2d(64, 64, 5, groups=64)
        self.up = nn.ConvTranspose2d(64, 48, 3)
        self.bn = nn.BatchNorm2d(48)
        self.embedding = nn.Embedding(50, 48)
        self.lstm = nn.LSTM(48, 64, batch_first=True)
        self.gru = nn.GRU(64, 64, batch_first=True)
        self.norm = nn.LayerNorm(64)
        self.fc = nn.Linear(64, 100)
        self.scale = nn.Parameter(torch.full((100,), 3.0))
        self.register_buffer("offset", torch.arange(100.0))

    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        y = self.bn(self.up(self.depthwise(self.conv(x)))).mean((2, 3))
        z = self.gru(self.lstm(self.embedding(tokens) + y[:, None])[0])[0]
        return self.fc(self.norm(z)) * self.scale + self.offset


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, porter.Port, dict[str, np.ndarray]]:
    """(the source, its port, the state_dict of the port's fresh weights)."""
    from porter import checkpoints, weights

    torch.manual_seed(0)
    net = Layers().eval()
    for parameter in net.parameters():
        nn.init.constant_(parameter, 7.0)  # so that nothing of the source's own values can pass for a draw
    inputs = {"x": np.ones((2, 4, 9, 9), np.float32), "tokens": np.zeros((2, 5), np.int64)}
    port = porter.port(net, inputs, out=tmp_path_factory.mktemp("fresh") / "layers")
    keras.utils.set_random_seed(0)
    model = port.module().build(weights=False)
    arrays = {n: keras.ops.convert_to_numpy(checkpoints.variable(model, n)) for n in port.weight_map}
    return net, port, weights.to_source(port, arrays)


@pytest.mark.parametrize(
    "name",
    [
        *(f"{layer}.{part}" for layer in ("conv", "depthwise", "up", "fc") for part in ("weight", "bias")),
        *(f"{cell}.{part}_l0" for cell in ("lstm", "gru") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")),
    ],
)
def test_fresh_kernels_are_uniform_as_torch_draws_them(fresh: tuple, name: str) -> None:
    _, _, state = fresh
    layers = Layers()
    owner, _, _ = name.partition(".")
    if owner in ("lstm", "gru"):
        bound = 64**-0.5
    else:
        fan_in, _ = nn.init._calculate_fan_in_and_fan_out(layers.get_submodule(owner).weight)
        bound = fan_in**-0.5
    drawn, torchs = state[name].ravel(), layers.get_parameter(name).detach().numpy().ravel()
    assert np.abs(torchs).max() <= bound * (1 + 1e-6), "torch draws from another distribution than this test thinks"
    assert np.abs(drawn).max() <= bound and np.abs(drawn).max() > 0.8 * bound
    # The variance of a uniform draw is bound²/3; its own standard error is √(4/5n) of that.
    assert np.var(drawn) == pytest.approx(bound**2 / 3, rel=5 * (0.8 / drawn.size) ** 0.5)
    assert abs(drawn.mean()) < 5 * bound / (3 * drawn.size) ** 0.5


def test_fresh_embeddings_are_normal(fresh: tuple) -> None:
    drawn = fresh[2]["embedding.weight"]
    assert drawn.mean() == pytest.approx(0, abs=0.1) and drawn.std() == pytest.approx(1, abs=0.1)


def test_fresh_norms_are_neutral_and_buffers_stand(fresh: tuple) -> None:
    _, _, state = fresh
    for norm in ("bn", "norm"):
        assert (state[f"{norm}.weight"] == 1).all() and (state[f"{norm}.bias"] == 0).all()
    assert (state["bn.running_mean"] == 0).all() and (state["bn.running_var"] == 1).all()
    assert (state["scale"] == 1).all()
    np.testing.assert_array_equal(state["offset"], np.arange(100.0))


def test_fresh_weights_differ_from_draw_to_draw_and_repeat_with_the_seed(lenet: tuple) -> None:
    port, _ = lenet
    module = port.module()

    def draw(seed: int) -> list[np.ndarray]:
        keras.utils.set_random_seed(seed)
        return [keras.ops.convert_to_numpy(v) for v in module.build(weights=False).variables]

    first, again, other = draw(1), draw(1), draw(2)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert all((a != b).any() for a, b in zip(first, other, strict=True))


def test_resnet50_stays_short(tmp_path: Path) -> None:
    port, _ = ported("resnet50", tmp_path)
    assert len(port.source.splitlines()) <= 130


def test_a_wrong_layer_behind_a_flattened_image_is_the_culprit(tmp_path: Path) -> None:
    """The port flattens in its own order: the layer's input differs as an array, and is right all the same."""
    entry = catalog.find("lenet")
    model, inputs = entry.make(small=True), entry.inputs(small=True)
    ported = porter.port(model, inputs, out=tmp_path / "lenet")
    file = ported.path / "weights.safetensors"
    arrays = load_file(file)
    arrays["fc1.kernel"] *= 1.01
    save_file(arrays, file)
    report = porter.verify(model, ported, inputs, draws=1)
    assert not report.passed and report.culprit.path == "fc1", report.culprit.line()


@pytest.mark.parametrize("to", ["keras", "torch"])
def test_one_tensor_as_two_examples_is_two_inputs(to: str, tmp_path: Path) -> None:
    """torch.export sees one input where one object is given twice, and the port read one of them for both."""

    class Difference(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, more: list[torch.Tensor]) -> torch.Tensor:
            return x - 2 * y + 3 * more[0]

    x = torch.randn(2, 3)
    port = porter.port(Difference(), (x, x, [x]), to=to, out=tmp_path / "port")
    assert len(port.manifest["inputs"]) == 3
    given = [torch.randn(2, 3) for _ in range(3)]
    report = porter.verify(Difference(), port, (given[0], given[1], [given[2]]), draws=1)
    assert report.passed, "\n".join(report.lines())


class _Reader(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.head = inner, nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.inner(x))


class _Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x) * torch.relu(self.b(x))


class _Several(nn.Module):
    """One module in the hands of several others."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.readers = nn.ModuleList(_Reader(inner) for _ in range(3))
        self.last = _Reader(inner)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [reader(x) for reader in self.readers] + [self.last(x)]


@pytest.mark.parametrize("to", ["keras", "torch"])
@pytest.mark.parametrize(
    "inner",
    [
        lambda: nn.Linear(6, 6),
        _Pair,
        lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 6)),
        lambda: nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 1, 3, padding=1), nn.ReLU(), nn.Flatten()),
    ],
)
def test_a_module_that_several_others_hold_is_one(to: str, inner: Any, tmp_path: Path) -> None:
    net, x = _Several(inner()), torch.randn(2, 6)
    port = porter.port(net, (x,), to=to, out=tmp_path / "port")
    report = porter.verify(net, port, (x,), draws=1)
    assert report.passed, "\n".join(report.lines())
    names = [name for entry in port.weight_map.values() for name in _names_in(entry["expression"])]
    assert len(set(names)) == len(names) == len(dict(net.named_parameters()))


def _names_in(expression: Any) -> set[str]:
    if isinstance(expression, dict):
        own = {expression["source"]} if "source" in expression else set()
        return own.union(*(_names_in(value) for value in expression.values()))
    return set().union(*map(_names_in, expression)) if isinstance(expression, list) else set()


class _Sequences(nn.Module):
    """A recurrent layer in two hands, whose bias Keras stores in another form than PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        rnn = nn.GRU(6, 4, batch_first=True, bidirectional=True)
        self.readers = nn.ModuleList(_RecurrentReader(rnn) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.readers[0](x) + self.readers[1](x.flip(1))


class _RecurrentReader(nn.Module):
    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn, self.head = rnn, nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])


def test_a_parameter_is_never_two_variables(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="would become two variables"):
        porter.port(_Sequences(), (torch.randn(2, 5, 6),), out=tmp_path / "port")
    assert not (tmp_path / "port").exists()


def test_a_recurrent_layer_is_one_however_its_calls_are_read(tmp_path: Path) -> None:
    """One call reads the sequence, another the states: the layer gives both to all."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(6, 4, batch_first=True)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.rnn(x)[0] + self.rnn(y)[1][0].transpose(0, 1)

    net, given = Net(), (torch.randn(2, 5, 6), torch.randn(2, 3, 6))
    port = porter.port(net, given, out=tmp_path / "port")
    report = porter.verify(net, port, given, draws=1)
    assert report.passed, "\n".join(report.lines())
    assert len({name.partition(".")[0] for name in port.weight_map}) == 1


@pytest.mark.parametrize("to", ["keras", "torch"])
def test_a_parameter_that_only_the_parent_reads(to: str, tmp_path: Path) -> None:
    class Child(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.gain = nn.Linear(4, 4), nn.Parameter(torch.randn(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x)

    class Parent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Child(), Child()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x) * self.a.gain) * self.b.gain

    net, x = Parent(), torch.randn(2, 4)
    report = porter.verify(net, porter.port(net, (x,), to=to, out=tmp_path / "port"), (x,), draws=1)
    assert report.passed, "\n".join(report.lines())


@pytest.mark.parametrize("to", ["keras", "torch"])
def test_a_module_that_is_called_without_any_tensor(to: str, tmp_path: Path) -> None:
    """The relative positions of a Swin transformer: Keras cannot call a layer that is given nothing."""

    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(5, 2))
            self.register_buffer("index", torch.tensor([[0, 1, 2], [1, 4, 3]]))

        def forward(self) -> torch.Tensor:
            return self.table[self.index.view(-1)].view(2, 3, 2).permute(2, 0, 1).unsqueeze(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.positions = Table()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.positions()

    net, x = Net(), torch.randn(2, 2, 2, 3)
    report = porter.verify(net, porter.port(net, (x,), to=to, out=tmp_path / "port"), (x,), draws=1)
    assert report.passed, "\n".join(report.lines())
