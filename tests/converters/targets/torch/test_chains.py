"""Keras' Sequential in PyTorch: a chain where the author named no layer, a class with the names that were given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import torch
from keras import layers
from torch import nn

import porter

IMAGES = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype("float32")


class Net(keras.Model):
    """As people write it: no get_config, parts that are chains."""

    def __init__(self) -> None:
        super().__init__()
        parts = [
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(2),
        ]
        self.features = keras.Sequential(parts)
        named = [
            layers.Conv2D(4, 1, activation="relu", name="squeeze"),
            layers.Dropout(0.3),
            layers.Conv2D(5, 3, name="grow"),
        ]
        self.head = keras.Sequential(named, name="head_block")
        self.pool, self.out = layers.GlobalAveragePooling2D(), layers.Dense(3)

    def call(self, x: Any, training: Any = None) -> Any:
        return self.out(self.pool(self.head(self.features(x, training=training), training=training)))


def _verified(model: keras.Model, folder: Path) -> porter.Port:
    port = porter.port(model, (IMAGES,), to="torch", out=folder / "port")
    report = porter.verify(model, port, (IMAGES,), draws=1)
    assert report.passed, "\n".join(report.lines())
    return port


def test_a_chain_without_names_is_a_chain(tmp_path: Path) -> None:
    parts = [layers.Conv2D(4, 3, activation="relu"), layers.Flatten(), layers.Dense(3, activation="softmax")]
    port = _verified(keras.Sequential([keras.Input((8, 8, 3)), *parts]), tmp_path)
    model = port.load()
    assert isinstance(model, nn.Sequential)
    kinds = [nn.Conv2d, nn.ReLU, nn.Flatten, nn.Linear, nn.Softmax]
    assert [type(part) for part in model] == kinds
    assert port.source.count("class ") == 1 and "def forward" not in port.source
    assert model.training is False and list(model.state_dict()) == list(port.weight_map)


def test_names_become_attributes(tmp_path: Path) -> None:
    parts = [layers.Conv2D(4, 3, activation="relu", name="block1_conv1"), layers.Flatten(), layers.Dense(3, name="out")]
    port = _verified(keras.Sequential([keras.Input((8, 8, 3)), *parts], name="small_vgg"), tmp_path)
    assert set(port.load().state_dict()) == {
        f"{layer}.{slot}" for layer in ("block1_conv1", "out") for slot in ("weight", "bias")
    }
    assert "class SmallVgg(nn.Module):" in port.source


def test_chains_inside_of_a_class(tmp_path: Path) -> None:
    model = Net()
    model(IMAGES)
    port = _verified(model, tmp_path)
    net = port.load()
    assert isinstance(net.features, nn.Sequential) and type(net.head).__name__ == "HeadBlock"
    assert {"features.0.weight", "head.squeeze.weight", "head.grow.bias", "out.weight"} <= set(net.state_dict())
    with torch.no_grad():
        net.train()
        assert net(torch.from_numpy(IMAGES).permute(0, 3, 1, 2)).shape == (2, 3)
