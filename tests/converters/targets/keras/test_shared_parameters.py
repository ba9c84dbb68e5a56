"""A parameter that a model reads in several places is one variable; what torch cuts out of its gradients stays cut."""

from __future__ import annotations

from collections import Counter

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
import torch.nn.functional as F
from torch import nn

import porter
from porter.converters.weights import from_json
from porter.runners.keras_forms import keras_precision

INPUTS = (torch.randn(2, 3), torch.tensor([0, 5]))


class ReadBeforeCalled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(7, 3)

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x @ self.emb.weight.T, self.emb(i)


class ReadAfterCalled(ReadBeforeCalled):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = self.emb(i)
        return x @ self.emb.weight.T, rows


class NoLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(7, 3))

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.linear(x, self.table), F.embedding(i, self.table)


class Picking(nn.Module):
    """A product with a parameter of which something else is asked too; some come out as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 7))
        self.register_buffer("count", torch.arange(3))

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        best, _ = torch.topk(self.w, 2)
        return x @ self.w, best, self.w, self.w.T, self.count, torch.tensor(3.5)


class Regularised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.fc(x), self.fc.weight.square().sum(), self.fc.weight


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return self.b(torch.relu(self.a(x)))


class ThereAndBack(nn.Module):
    """An autoencoder's transposed convolution with the kernel of its convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1, bias=False)

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        image = x[:, :, None, None].expand(-1, -1, 4, 4)
        return F.conv_transpose2d(self.conv(image), self.conv.weight)


@pytest.mark.parametrize(
    "model", [ReadBeforeCalled, ReadAfterCalled, NoLayer, Picking, Regularised, Tied, ThereAndBack]
)
def test_each_parameter_is_one_variable(model: type[nn.Module]) -> None:
    source = model().eval()
    port = porter.port(source, INPUTS)
    read = Counter(name for entry in port.weight_map.values() for name in from_json(entry["expression"]).sources())
    names = {name for name, _ in source.named_parameters()}  # a tied one is named once
    assert read.keys() >= names and set(read.values()) == {1}, read
    report = porter.verify(source, port, INPUTS, draws=1)
    assert report.passed, report.lines()


class Distilled(nn.Module):
    """A student that must not move its own teacher."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            target = self.b(self.a(x))
        first = self.a(x)
        return (self.b(first.detach()) - target * 2) ** 2 + first * self.b.weight.detach().sum()


def test_gradients_stop_where_torch_stops_them() -> None:
    source = Distilled().double().eval()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    cotangent = torch.randn(4, 3, dtype=torch.float64)
    (source(x) * cotangent).sum().backward()
    with keras_precision("float64"):
        model = porter.port(Distilled().double().eval().requires_grad_(True), (x.detach(),)).load()
        for layer in ("a", "b"):
            theirs = getattr(source, layer)
            getattr(model, layer).set_weights([theirs.weight.detach().numpy().T, theirs.bias.detach().numpy()])
        given = tf.constant(x.detach().numpy())
        with tf.GradientTape() as tape:
            tape.watch(given)
            loss = keras.ops.sum(model(given) * cotangent.numpy())
        variables = [model.a.kernel, model.a.bias, model.b.kernel, model.b.bias]
        found = tape.gradient(loss, [given, *(v.value for v in variables)])
    wanted = [x.grad, source.a.weight.grad.T, source.a.bias.grad, source.b.weight.grad.T, source.b.bias.grad]
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)


class Constants(nn.Module):
    """Two tables that no checkpoint holds, and a third that only the code has."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positions", torch.arange(100.0), persistent=False)
        self.register_buffer("signs", torch.ones(100) * -1, persistent=False)
        self.lifted = torch.arange(100.0) * 3

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x[:, :1] * self.positions + x[:, 1:2] * self.signs + x[:, 2:] * self.lifted


class Alike(nn.Module):
    """Names that become the same attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.a_weight = nn.Parameter(torch.randn(3, 3))
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return self.b(x) @ (self.a_weight + self.a.weight) + self.a(x)


@pytest.mark.parametrize("model", [Constants, Alike])
def test_no_two_tensors_share_a_variable(model: type[nn.Module]) -> None:
    torch.manual_seed(3)
    source = model().eval()
    port = porter.port(source, INPUTS)
    report = porter.verify(source, port, INPUTS, draws=1)
    assert report.passed, (report.lines(), port.source)
    if model is Constants:
        assert "self.positions = " in port.source and "self.signs = " in port.source, port.source
