"""Several inputs and outputs as Keras people hand them over: lists, tuples, and dictionaries by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from torch import nn

import porter


class Scores(nn.Module):
    """Two inputs, of which one must be whole numbers, and a dictionary of results in no alphabetical order."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.fc, self.drop = nn.Embedding(8, 4), nn.Linear(4, 3), nn.Dropout(0.5)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        odd = ids & 1
        logits = self.fc(self.drop(dense + self.embedding(ids).mean(1)))
        return {"logits": logits, "count": odd.sum(1), "norm": logits.norm(dim=1)}


GIVEN: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
    "dict": dict,
    "dict in another order": lambda inputs: dict(reversed(inputs.items())),
    "list": lambda inputs: list(inputs.values()),
    "tuple": lambda inputs: tuple(inputs.values()),
}


@pytest.fixture(scope="module")
def scores(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[porter.Port, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(port, inputs, what the source gives)."""
    torch.manual_seed(0)
    module = Scores().eval()
    inputs = {"dense": torch.randn(6, 4), "ids": torch.randint(0, 8, (6, 5))}
    port = porter.port(module, inputs, out=tmp_path_factory.mktemp("dicts") / "scores")
    with torch.no_grad():
        outputs = module(**inputs)
    return port, {k: v.numpy() for k, v in inputs.items()}, {k: v.numpy() for k, v in outputs.items()}


def equal(outputs: dict[str, Any], want: dict[str, np.ndarray]) -> None:
    assert set(outputs) == set(want)
    for key, array in want.items():
        np.testing.assert_allclose(keras.ops.convert_to_numpy(outputs[key]), array, rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_predict_takes_all_inputs_as_one(scores: tuple, give: Callable[[Any], Any]) -> None:
    port, inputs, want = scores
    equal(port.load().predict(give(inputs), verbose=0), want)


@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_fit_takes_all_inputs_as_one_and_losses_by_name(scores: tuple, give: Callable[[Any], Any]) -> None:
    port, inputs, _ = scores
    model = port.load()
    before = keras.ops.convert_to_numpy(model.fc.kernel)
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss={"logits": "mse", "norm": "mae"})
    wanted = {"logits": np.zeros((6, 3), np.float32), "norm": np.zeros(6, np.float32)}
    history = model.fit(give(inputs), wanted, verbose=0).history
    assert {"logits_loss", "norm_loss"} <= set(history)
    assert (before != keras.ops.convert_to_numpy(model.fc.kernel)).any()


def test_the_port_calls_its_results_by_their_names(scores: tuple) -> None:
    port, inputs, want = scores
    model = port.load()
    equal(model(**inputs), want)
    equal(model(*inputs.values()), want)
    assert [spec["name"] for spec in port.manifest["outputs"]] == list(want)
    for array, expected in zip(port.to_source(model.predict(inputs, verbose=0)), want.values(), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


def test_it_is_loaded_and_served_with_whole_numbers(scores: tuple, tmp_path: Path) -> None:
    port, inputs, want = scores
    model = port.load()
    model.save(tmp_path / "model.keras")
    equal(keras.saving.load_model(tmp_path / "model.keras").predict(inputs, verbose=0), want)
    model.export(tmp_path / "saved", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "saved"))
    equal(served.serve(*inputs.values()), want)
    taken = served.signatures["serving_default"].structured_input_signature[1]
    assert {name: spec.dtype for name, spec in taken.items()} == {"dense": tf.float32, "ids": tf.int64}
