"""What Keras' layers do in training alone: the port does it too, as strongly, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import torch
from keras import layers

import porter
from porter.errors import UnsupportedError

ONES = np.ones((64, 50, 6), "float32")


def _model(made: Callable[[Any], Any], steps: int | None = None) -> keras.Model:
    x = keras.Input((steps, 6))
    return keras.Model(x, made(x))


def _attended(x: Any) -> Any:
    return layers.MultiHeadAttention(2, 3, dropout=0.4, kernel_initializer="ones")(x, x)


@pytest.mark.parametrize(
    "made",
    [
        lambda x: layers.GaussianNoise(0.3)(x),
        lambda x: layers.GaussianDropout(0.3)(x),
        lambda x: layers.Dropout(0.3)(x),
        lambda x: layers.SpatialDropout1D(0.3)(x),
        _attended,
    ],
    ids=["GaussianNoise", "GaussianDropout", "Dropout", "SpatialDropout1D", "MultiHeadAttention"],
)
def test_noise_is_as_strong_as_in_keras(made: Callable[[Any], Any], tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    torch.manual_seed(0)
    model = _model(made)
    port = porter.port(model, (ONES[:2, :4],), to="torch", out=tmp_path / "port")
    net, x = port.load(), torch.from_numpy(ONES)
    still = np.asarray(model(ONES, training=False))
    with torch.no_grad():
        np.testing.assert_allclose(net(x).numpy(), still, rtol=1e-5)
        ours = net.train()(x).numpy()
    theirs = np.asarray(model(ONES, training=True))
    assert theirs.std() > 0.01 * abs(still).mean()
    assert abs(ours.std() / theirs.std() - 1) < 0.1
    assert abs(ours.mean() - theirs.mean()) < 0.1 * theirs.std()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda x: layers.LSTM(4, dropout=0.2)(x), r"LSTM\(dropout=0.2\)"),
        (lambda x: layers.GRU(4, recurrent_dropout=0.1)(x), r"GRU\(recurrent_dropout=0.1\)"),
        (lambda x: layers.Bidirectional(layers.LSTM(4, dropout=0.2))(x), r"LSTM\(dropout=0.2\)"),
        (lambda x: layers.RNN(layers.GRUCell(4, dropout=0.2))(x), r"GRUCell\(dropout=0.2\)"),
        (lambda x: layers.Attention(dropout=0.3)([x, x]), r"Attention\(dropout=0.3\)"),
        (lambda x: layers.Dropout(0.3, noise_shape=(None, 1, 6))(x), "noise_shape"),
    ],
)
def test_what_would_be_lost_is_refused(made: Callable[[Any], Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=says):
        porter.port(_model(made, steps=4), (ONES[:2, :4],), to="torch", out=tmp_path / "port")
    assert not (tmp_path / "port").exists()


def test_forget_biases_that_differ_from_layer_to_layer(tmp_path: Path) -> None:
    def made(x: Any) -> Any:
        x = layers.LSTM(4, return_sequences=True, name="first")(x)
        for name in ("second", "third"):
            x = layers.LSTM(5, unit_forget_bias=False, bias_initializer="ones", return_sequences=True, name=name)(x)
        return x

    port = porter.port(_model(made), (ONES[:2, :4],), to="torch", out=tmp_path / "port")
    state = port.module().build(weights=False).state_dict()
    assert state["first.bias_ih_l0"].tolist() == [0] * 4 + [1] * 4 + [0] * 8
    assert set(state["second.bias_ih_l0"].tolist()) == set(state["third.bias_ih_l0"].tolist()) == {1}
    assert all(not state[f"{name}.bias_hh_l0"].any() for name in ("first", "second", "third"))
