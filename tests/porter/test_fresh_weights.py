"""`build(weights=False)`: weights as the source's author draws them, judged by many draws of the source itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import torch
from torch import nn

import porter
from porter.converters.frontends.torch.drawn import draws, recording

WIDTH = 48


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(width)
        self.gamma = nn.Parameter(1e-6 * torch.ones(width, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.gamma * self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))


class Images(nn.Module):
    """Initialised as residual networks are: by class, some layers to zero, the last one on its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 5)
        self.blocks = nn.Sequential(Block(WIDTH), Block(WIDTH))
        self.depthwise = nn.Conv2d(WIDTH, WIDTH, 7, groups=WIDTH)
        self.up = nn.ConvTranspose2d(WIDTH, 64, 2, 2)
        self.position = nn.Parameter(torch.zeros(1, 64))
        self.hidden = nn.Linear(64, 80)
        self.head = nn.Linear(80, 90)
        nn.init.trunc_normal_(self.position, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, Block):
                nn.init.zeros_(module.bn2.weight)
        nn.init.normal_(self.head.weight, std=0.01)
        nn.init.constant_(self.head.bias, -math.log(99))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(self.depthwise(self.blocks(self.stem(x)))).mean((2, 3)) + self.position
        return self.head(torch.relu(self.hidden(y)))


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(70, 40)
        self.lstm = nn.LSTM(40, 60, batch_first=True)
        self.norm = nn.LayerNorm(60)
        self.head = nn.Linear(60, 70)
        for name, parameter in self.lstm.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(parameter)
            elif "weight" in name:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)
        with torch.no_grad():
            self.embedding.weight.normal_(0, 0.5).mul_(0.1)
            self.head.weight.uniform_(-0.03, 0.03)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.lstm(self.embedding(x))[0]))


class Usual(nn.Module):
    """Nothing is said: PyTorch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(16, 40, 5)
        self.gru = nn.GRU(40, 50, batch_first=True)
        self.head = nn.Linear(50, 30)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.conv(x).transpose(1, 2))[0])


def images() -> tuple[nn.Module, tuple]:
    return Images(), (torch.randn(2, 3, 20, 20),)


def language() -> tuple[nn.Module, tuple]:
    return Language(), (torch.randint(0, 70, (2, 5)),)


def usual() -> tuple[nn.Module, tuple]:
    return Usual(), (torch.randn(2, 16, 12),)


def _compare(ours: np.ndarray, theirs: np.ndarray, name: str) -> None:
    """Two samples of one distribution: mean, spread and shape."""
    noise = 6 / math.sqrt(ours.size)
    spread = theirs.std()
    if len(np.unique(theirs)) <= 2:  # no draw at all: zeros, ones, ones at the forget gate
        assert np.unique(ours).tolist() == np.unique(theirs).tolist(), name
        assert math.isclose(ours.mean(), theirs.mean(), rel_tol=1e-6), name
        return
    assert abs(ours.std() / spread - 1) < noise, name
    assert abs(ours.mean() - theirs.mean()) < noise * spread, name
    shape = np.abs(theirs - theirs.mean()).mean() / spread  # 0.87 of a uniform, 0.80 of a normal distribution
    assert abs(np.abs(ours - ours.mean()).mean() / ours.std() - shape) < noise, name


@pytest.mark.parametrize("factory", [images, language, usual])
def test_fresh_weights_are_drawn_as_in_the_source(factory: Callable, tmp_path: Path) -> None:
    port = porter.port(f"torch:{__name__}:{factory.__name__}", out=tmp_path / "port")
    torch.manual_seed(0)
    drawn: dict[str, list[np.ndarray]] = {}
    for _ in range(8):
        for name, parameter in factory()[0].named_parameters():
            drawn.setdefault(name, []).append(parameter.detach().numpy().copy())
    keras.utils.set_random_seed(0)
    model = port.module().build(weights=False)
    find = port.module().find
    compared = 0
    for target, entry in port.weight_map.items():
        names = [name for name in drawn if f"'{name}'" in str(entry["expression"])]
        if not names or entry["kind"] != "parameter":
            continue
        ours = np.asarray(find(model, target))
        theirs = np.concatenate([array.reshape(-1) for name in names for array in drawn[name]])
        _compare(ours, theirs, target)
        compared += 1
    assert compared >= len({id(p) for p in factory()[0].parameters()}) * 0.7


def test_an_orthogonal_matrix_is_orthogonal(tmp_path: Path) -> None:
    port = porter.port(f"torch:{__name__}:language", out=tmp_path / "port")
    kernel = np.asarray(port.module().find(port.module().build(weights=False), "lstm.cell.recurrent_kernel"))
    assert np.allclose(kernel @ kernel.T, np.eye(60), atol=1e-5)


def test_the_source_of_fresh_weights_reads_as_the_author_wrote_it(tmp_path: Path) -> None:
    source = porter.port(f"torch:{__name__}:images", out=tmp_path / "port").source
    for line in (
        'redraw(layer.kernel, keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal"))',
        'redraw(find(model, "head.kernel"), keras.initializers.RandomNormal(stddev=0.01))',
        'for path in ("blocks.0.bn2.gamma", "blocks.1.bn2.gamma"):',
        "redraw(layer.gamma, keras.initializers.Constant(1e-06))",
    ):
        assert line in source


def keras_images() -> keras.Model:
    scaled = keras.initializers.VarianceScaling
    return keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            keras.layers.Conv2D(32, 3, name="stem"),
            keras.layers.DepthwiseConv2D(
                5, depthwise_initializer=scaled(2.0, "fan_out", "truncated_normal"), name="deep"
            ),
            keras.layers.BatchNormalization(gamma_initializer="zeros", name="norm"),
            keras.layers.Conv2D(40, 1, kernel_initializer="he_normal", bias_initializer="ones", name="mix"),
            keras.layers.Conv2DTranspose(36, 2, kernel_initializer=scaled(0.5, "fan_avg", "uniform"), name="up"),
            keras.layers.GlobalAveragePooling2D(name="pool"),
            keras.layers.Dense(50, name="head"),
            keras.layers.Dense(60, kernel_initializer=keras.initializers.RandomNormal(stddev=0.01), name="last"),
        ]
    )


def keras_words() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            keras.layers.Embedding(50, 30, name="embedding"),
            keras.layers.LSTM(40, name="lstm"),
            keras.layers.Dense(30, name="head"),
        ]
    )


@pytest.mark.parametrize(
    ("make", "example"),
    [(keras_images, np.zeros((2, 12, 12, 3), "float32")), (keras_words, np.zeros((2, 6), "int32"))],
)
def test_fresh_weights_of_a_port_to_torch_are_drawn_as_in_the_source(
    make: Callable, example: np.ndarray, tmp_path: Path
) -> None:
    port = porter.port(make(), (example,), to="torch", out=tmp_path / "port")
    keras.utils.set_random_seed(0)
    drawn: dict[str, list[np.ndarray]] = {}
    for _ in range(8):
        model = make()
        for layer, made in ((layer, model.get_layer(layer.name)) for layer in model.layers):
            for variable in made.trainable_variables:
                drawn.setdefault(f"{layer.name}/{variable.path.partition(layer.name + '/')[2]}", []).append(
                    np.asarray(variable)
                )
    torch.manual_seed(0)
    parameters = dict(port.module().build(weights=False).named_parameters())
    compared = 0
    for target, entry in port.weight_map.items():
        names = [name for name in drawn if f"/{name}'" in str(entry["expression"])]
        if names and target in parameters:
            _compare(
                parameters[target].detach().numpy(), np.concatenate([a.reshape(-1) for a in drawn[names[0]]]), target
            )
            compared += 1
    assert compared == len(drawn)


def _recorded(make: Callable[[], torch.Tensor]) -> object:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parameter = nn.Parameter(make())

    with recording() as made:
        holder = Holder()
        made(holder)
    return draws(holder).get("parameter")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: torch.randn(9) * 0.02, ("normal", 0.0, 0.02)),
        (lambda: 0.5 + torch.rand(9) / 4, ("uniform", 0.5, 0.75)),
        (lambda: torch.full((9,), 3.0), ("constant", 3.0)),
        (lambda: nn.init.trunc_normal_(torch.empty(9), std=0.02), ("normal", 0.0, 0.02)),
        (lambda: nn.init.trunc_normal_(torch.empty(99), std=1.0), ("truncated_normal", 0.0, 1.0)),
        (lambda: nn.init.orthogonal_(torch.empty(3, 3), 2.0), ("orthogonal", 2.0)),
        (lambda: torch.empty(9).uniform_(-1, 1).erfinv_().mul_(math.sqrt(2) * 0.1), ("normal", 0.0, 0.1)),
        (lambda: torch.zeros(9).copy_(torch.ones(9)), ("constant", 0.0)),  # as a checkpoint does
    ],
)
def test_draws_are_seen_however_they_are_written(make: Callable, expected: tuple) -> None:
    found = _recorded(make)
    assert found is not None
    assert found.kind == expected[0] and np.allclose(found.numbers, expected[1:])


def _partly() -> torch.Tensor:
    tensor = torch.zeros(9)
    tensor[3:6] = 1.0
    return tensor


@pytest.mark.parametrize(
    "make",
    [
        _partly,
        lambda: torch.zeros(9)[2:].fill_(1.0),
        lambda: torch.log(torch.arange(1.0, 9.0)),
        lambda: torch.randn(9).exp_(),
        lambda: torch.randn(9) * torch.rand(9),
        lambda: torch.zeros(9).index_fill_(0, torch.tensor([1]), 2.0),
    ],
)
def test_what_has_no_name_is_unknown_and_never_guessed(make: Callable) -> None:
    assert _recorded(make) is None
