"""A port trains on as its source does: the same steps, in float64, with BatchNorm in training mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from torch import nn

import porter
from porter import checkpoints, weights
from porter.runners.keras_forms import keras_precision
from porter.verification import source_call
from porter.zoo import catalog

STEPS, RATE, MOMENTUM = 5, 2.0**-7, 0.5
GENTLY = {"mlp": 2.0**-20}  # ill-conditioned on purpose: an ordinary step throws it out of every range
EVERYDAY = ("lenet", "resnet18", "gru_lm", "bert_tiny")
ZOO = [
    pytest.param(entry.name, marks=() if entry.name in EVERYDAY else pytest.mark.sweep)
    for entry in catalog.originals("torch")
]


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with keras_precision("float64"):
        yield


class ExpectedVariances:
    """What Keras' running variances must be: torch's steps, each with the biased variance of its batch.

    A batch of n numbers per channel moves torch's variance by momentum · var · n/(n-1), Keras' by momentum · var.
    """

    def __init__(self, model: nn.Module) -> None:
        self.names = {f"{path}.running_var": m for path, m in model.named_modules() if _is_batch_norm(m)}
        self.values = {name: module.running_var.clone() for name, module in self.names.items()}
        for name, module in self.names.items():
            module.register_forward_pre_hook(lambda m, args, name=name: self._before(m))
            module.register_forward_hook(lambda m, args, out, name=name: self._after(name, m, args[0]))

    def _before(self, module: nn.Module) -> None:
        self.before = module.running_var.clone()

    def _after(self, name: str, module: nn.Module, x: torch.Tensor) -> None:
        kept, n = 1 - module.momentum, x.numel() // x.shape[1]
        moved = module.running_var - kept * self.before
        self.values[name] = kept * self.values[name] + moved * (n - 1) / n


def _is_batch_norm(module: nn.Module) -> bool:
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats


def torch_steps(model: nn.Module, batches: list[Any], rate: float) -> ExpectedVariances:
    """Train in place with nothing but BatchNorm in training mode, so that Dropout is off."""
    model.double().eval()
    for module in model.modules():
        if _is_batch_norm(module):
            module.train()
    expected = ExpectedVariances(model)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate, momentum=MOMENTUM)
    for batch in batches:
        tensors = [torch.from_numpy(_double(array)) for array in batch.values()]
        outputs = torch.utils._pytree.tree_leaves(source_call(batch)(model, tensors))
        loss = sum(
            (1 + out**2).sqrt().mean() for out in outputs if isinstance(out, torch.Tensor) and out.is_floating_point()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return expected


def keras_steps(model: Any, batches: list[tuple[np.ndarray, ...]], rate: float) -> None:
    """The same steps; Dropout is off by its rate, for `training=True` is what BatchNorm needs."""
    for layer in model._flatten_layers():
        for attribute in ("rate", "dropout", "recurrent_dropout"):
            if isinstance(vars(layer).get(attribute), float):
                setattr(layer, attribute, 0.0)
    optimizer = keras.optimizers.SGD(rate, momentum=MOMENTUM)
    trains = "training" in model.call.__code__.co_varnames
    for batch in batches:
        with tf.GradientTape() as tape:
            outputs = keras.tree.flatten(model(*map(_double, batch), **({"training": True} if trains else {})))
            loss = sum(tf.reduce_mean(tf.sqrt(1 + out**2)) for out in outputs if out.dtype.is_floating)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def _double(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def batches_of(inputs: Any, count: int = STEPS) -> list[Any]:
    """Batches like the example: other numbers where the inputs are floats, the same where they are indices."""
    rng = np.random.default_rng(0)
    return [
        {k: rng.normal(size=a.shape).astype(a.dtype) if a.dtype.kind == "f" else a for k, a in inputs.items()}
        for _ in range(count)
    ]


def trained_pair(model: nn.Module, inputs: Any, port: porter.Port, rate: float = RATE) -> tuple[dict, dict, Any]:
    """(what the source must come to, what the port came to, the Keras model), by the source's names."""
    batches = batches_of(inputs)
    target = port.load()
    keras_steps(target, [port.to_target(batch) for batch in batches], rate)
    expected = torch_steps(model, batches, rate)
    state = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    state |= {name: value.numpy() for name, value in expected.values.items()}
    arrays = {n: keras.ops.convert_to_numpy(checkpoints.variable(target, n)) for n in port.weight_map}
    return state, weights.to_source(port, arrays), target


def assert_follows(want: dict[str, np.ndarray], got: dict[str, np.ndarray], start: dict[str, np.ndarray]) -> None:
    """Equal within float32 rounding, which in float64 leaves room for the literals in the source alone."""
    for name, array in want.items():
        if array.dtype.kind == "f" and not name.endswith("num_batches_tracked"):
            moved = np.abs(array - start[name]).max(initial=0)
            off = np.abs(array - got[name]).max(initial=0)
            assert off <= 1e-5 * moved + 1e-9 * np.abs(array).max(initial=0), f"{name}: off by {off}, moved by {moved}"


@pytest.mark.parametrize("name", ZOO)
def test_it_trains_as_its_source(name: str, tmp_path: Path) -> None:
    entry = catalog.find(name)
    model, inputs = entry.make(small=True), entry.inputs(small=True, batch=4)
    port = porter.port(model, inputs, dynamic=entry.dynamic, name=name, out=tmp_path / name)
    start = {key: tensor.double().numpy().copy() for key, tensor in model.state_dict().items() if _real(tensor)}
    want, got, target = trained_pair(model, inputs, port, GENTLY.get(name, RATE))
    want = {key: array for key, array in want.items() if key in start}
    assert_follows(want, got, start)
    moved = [key for key, p in model.named_parameters() if key in start and (want[key] != start[key]).any()]
    assert len(moved) > len(list(model.parameters())) / 2
    used = {n for n, p in model.named_parameters() if p.requires_grad} - set(port.manifest["unused"])
    count = sum(np.prod(variable.shape) for variable in target.trainable_variables)
    assert count == sum(_numbers(p) for n, p in model.named_parameters() if n in used)
    for path, module in model.named_modules():
        if _is_batch_norm(module):
            layer = checkpoints.variable(target, _layer_of(port, f"{path}.running_mean"))
            assert layer.momentum == pytest.approx(1 - module.momentum, abs=1e-12)


def _real(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def _numbers(parameter: torch.Tensor) -> int:
    return parameter.numel() * (2 if parameter.is_complex() else 1)


def _layer_of(port: porter.Port, source: str) -> str:
    """The attribute path of the layer that holds a tensor of the source."""
    found = [n for n, entry in port.weight_map.items() if entry["expression"].get("source") == source]
    return found[0].rpartition(".")[0]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.embedding(tokens)))


def test_tied_weights_are_one_variable_and_stay_tied(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, inputs = Tied(), {"tokens": np.array([[1, 2, 3], [0, 1, 6]])}
    port = porter.port(model, inputs, out=tmp_path / "tied")
    start = {name: tensor.double().numpy().copy() for name, tensor in model.state_dict().items()}
    want, got, target = trained_pair(model, inputs, port)
    assert len(target.trainable_variables) == 1
    assert set(got) == {"embedding.weight", "head.weight"}
    np.testing.assert_array_equal(got["embedding.weight"], got["head.weight"])
    assert_follows(want, got, start)


class Frozen(nn.Module):
    """Frozen: a whole branch, one bias, BatchNorm's scale, a parameter of the module's own, a layer of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.conv = nn.Conv2d(4, 4, 1)
        self.bn = nn.BatchNorm2d(4)
        self.shift = nn.Parameter(torch.randn(4), requires_grad=False)
        self.heads = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.backbone.requires_grad_(False)
        self.conv.bias.requires_grad_(False)
        self.bn.weight.requires_grad_(False)
        self.heads[1].requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.bn(self.conv(self.backbone(x))).mean((2, 3)) + self.shift
        for head in self.heads:
            x = torch.tanh(head(x))
        return x


@pytest.fixture
def frozen(tmp_path: Path) -> tuple[nn.Module, dict[str, np.ndarray], porter.Port]:
    torch.manual_seed(0)
    inputs = {"x": np.random.default_rng(0).normal(size=(4, 3, 6, 6)).astype(np.float32)}
    model = Frozen()
    return model, inputs, porter.port(model, inputs, out=tmp_path / "frozen")


def test_frozen_parameters_stay_frozen(frozen: tuple) -> None:
    model, inputs, port = frozen
    start = {name: tensor.double().numpy().copy() for name, tensor in model.state_dict().items()}
    want, got, target = trained_pair(model, inputs, port)
    assert_follows(want, got, start)
    for name, parameter in model.named_parameters():
        assert (got[name] == start[name]).all() != parameter.requires_grad, name
    # Frozen or not, BatchNorm keeps its statistics as torch does.
    assert (got["backbone.1.running_mean"] != start["backbone.1.running_mean"]).all()
    assert len(target.trainable_variables) == sum(p.requires_grad for p in model.parameters())


def test_frozen_parameters_are_named_shortly_and_survive_saving(frozen: tuple, tmp_path: Path) -> None:
    _, _, port = frozen
    tuple_ = re.search(r"^FROZEN = (\(.*?\))$", port.source, re.MULTILINE | re.DOTALL)
    assert tuple_ and set(eval(tuple_[1])) == {"backbone", "conv.bias", "bn.gamma", "heads.1"}
    model = port.load()
    trained = [variable.path for variable in model.trainable_variables]
    model.save(tmp_path / "frozen.keras")
    again = keras.saving.load_model(tmp_path / "frozen.keras")
    assert len(again.trainable_variables) == len(trained)


def test_nothing_is_said_of_freezing_where_nothing_is_frozen(tmp_path: Path) -> None:
    entry = catalog.find("lenet")
    port = porter.port(entry.make(small=True), entry.inputs(small=True), out=tmp_path / "lenet")
    assert "FROZEN" not in port.source and "trainable" not in port.source
