"""Keras' recurrent layers under masks as PyTorch: every mask, as in Keras in float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import torch
from keras import layers

from porter.converters.frontends.keras import to_onnx
from porter.converters.pipeline import generate
from porter.runners.keras_forms import float64_copy, keras_precision
from tests.converters.targets.torch.nodes import doubles, listed, loaded

RNG = np.random.default_rng(11)
TIME = 4
# Every mask of four steps: padded at the end, at the beginning, with holes, full and empty.
MASKS = np.array(list(itertools.product([False, True], repeat=TIME)))
KINDS = (layers.LSTM, layers.GRU, layers.SimpleRNN)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    keras.utils.set_random_seed(3)
    yield
    keras.backend.clear_session()


def check(model: keras.Model, tokens: np.ndarray, *others: np.ndarray) -> str:
    """Assert that the port gives what Keras does in float64, for any number of examples; its source."""
    for variable in model.weights:
        variable.assign(RNG.normal(0, 0.5, variable.shape))
    converted = to_onnx(model, (tokens[:2], *(other[:2] for other in others)))
    arrays = {name: value.const_value.numpy() for name, value in converted.model.graph.initializers.items()}
    generated = generate(converted.model, target="torch")
    port = loaded(generated, arrays)
    with keras_precision("float64"):
        doubled = float64_copy(model)
        given = [tokens, *(other.astype(np.float64) for other in others)]
        wanted = keras.tree.flatten(doubled(given if others else tokens, training=False))
    with doubles(), torch.no_grad():
        found = listed(port(*(torch.from_numpy(array) for array in given)))
    assert len(found) == len(wanted)
    for got, right in zip(found, wanted, strict=True):
        assert tuple(got.shape) == tuple(right.shape)
        np.testing.assert_allclose(got.numpy(), np.asarray(right), rtol=1e-12, atol=1e-12, err_msg=generated.source)
    return generated.source


def masked(layer: Any, time: int | None = None) -> keras.Model:
    tokens = keras.Input((time,), dtype="int32", name="tokens")
    embedded = layers.Embedding(9, 5, mask_zero=True)(tokens)
    return keras.Model(tokens, layer(embedded))


def tokens_of(masks: np.ndarray) -> np.ndarray:
    return np.where(masks, RNG.integers(1, 9, masks.shape), 0).astype(np.int32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("sequences", "states"), [(False, False), (True, False), (False, True), (True, True)])
def test_every_mask(kind: Any, backwards: bool, sequences: bool, states: bool) -> None:
    layer = kind(3, return_sequences=sequences, return_state=states, go_backwards=backwards)
    source = check(masked(layer), tokens_of(MASKS))
    name = {"SimpleRNN": "RNN"}.get(kind.__name__, kind.__name__)
    assert f"= Masked{name}(5, 3, batch_first=True" in source
    assert "top_k" not in source and ("ends=True" in source) == states


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("time", [TIME, None])
def test_zeros_where_masked(kind: Any, time: int | None) -> None:
    layer = kind(3, return_sequences=True, zero_output_for_mask=True)
    assert "zeros=True" in check(masked(layer, time), tokens_of(MASKS))


@pytest.mark.parametrize("mode", ["concat", "sum", "ave", "mul"])
@pytest.mark.parametrize("sequences", [False, True])
def test_both_directions(mode: str, sequences: bool) -> None:
    layer = layers.Bidirectional(layers.LSTM(3, return_sequences=sequences), merge_mode=mode)
    assert check(masked(layer), tokens_of(MASKS)).count("MaskedLSTM(5, 3") == 2


@pytest.mark.parametrize("kind", KINDS)
def test_initial_states(kind: Any) -> None:
    """An example without any step keeps the state that it is given."""
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    initial = [keras.Input((3,), name=f"state{i}") for i in range(2 if kind is layers.LSTM else 1)]
    embedded = layers.Embedding(9, 5, mask_zero=True)(tokens)
    outputs = kind(3, return_sequences=True, return_state=True)(embedded, initial_state=initial)
    states = [RNG.normal(size=(len(MASKS), 3)).astype(np.float32) for _ in initial]
    check(keras.Model([tokens, *initial], outputs), tokens_of(MASKS), *states)


def test_one_after_the_other() -> None:
    """The mask goes on from layer to layer."""
    inner = layers.GRU(4, return_sequences=True)
    outer = layers.LSTM(3)
    source = check(masked(lambda x: outer(inner(x))), tokens_of(MASKS))
    assert "MaskedGRU(5, 4" in source and "MaskedLSTM(4, 3" in source


def test_a_mask_layer() -> None:
    """Steps that hold one value throughout are masked."""
    x = keras.Input((None, 5))
    model = keras.Model(x, layers.LSTM(3, return_sequences=True)(layers.Masking(0.0)(x)))
    values = np.where(MASKS[..., None], RNG.normal(size=(*MASKS.shape, 5)), 0).astype(np.float32)
    assert "MaskedLSTM(5, 3" in check(model, values.astype(np.float64))
