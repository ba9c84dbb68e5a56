"""Every PyTorch model of the zoo through ONNX to PyTorch again: outputs in double precision, and every parameter."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from porter.converters.frontends.torch import to_onnx
from porter.converters.pipeline import generate
from porter.converters.signature import leaves
from porter.zoo import catalog
from tests.converters.targets.torch.nodes import doubles, listed, loaded

# One of each kind every day, all of them in a sweep.
EVERYDAY = {
    "lenet",
    "mobilenet_v2",
    "convnext_tiny",
    "unet",
    "gpt_tiny",
    "lstm_classifier",
    "transformer",
    "dlrm",
    "tcn",
}
MODELS = [
    pytest.param(entry.name, marks=[] if entry.name in EVERYDAY else pytest.mark.sweep)
    for entry in catalog.originals("torch")
]
# Parameters whose name or place differs, each for a reason that the port shows.
RENAMED = {
    # A head whose matrix is the embedding's is a product with that, and its bias is the model's own.
    "gru_lm": {"head_bias"},
    # A module of which two calls do different things has no class of its own.
    "t5_bias": {"relative_position_bias_embedding.weight"},
}


@pytest.fixture(scope="module", params=MODELS)
def round_trip(request: pytest.FixtureRequest) -> tuple[Any, ...]:
    """(name, model, its inputs, what was generated, its arrays) of one zoo model."""
    entry = catalog.find(request.param)
    model, inputs = entry.make(small=True).eval(), entry.inputs(small=True)
    converted = to_onnx(model, inputs, entry.dynamic)
    arrays = {k: v.const_value.numpy() for k, v in converted.model.graph.initializers.items()}
    return entry.name, model, inputs, generate(converted.model, target="torch", name=entry.name), arrays


def test_it_computes_the_same(round_trip: tuple[Any, ...]) -> None:
    _, model, inputs, generated, arrays = round_trip
    port = loaded(generated, arrays)
    given = [torch.as_tensor(np.asarray(leaf)) for leaf in leaves(tuple(inputs.values()))]
    given = [x.double() if x.is_floating_point() else x for x in given]
    with doubles(), torch.no_grad():
        wanted = copy.deepcopy(model).double()(**dict(zip(inputs, given, strict=True)))
        found = port(*given)
    flat = listed(list(wanted.values()) if isinstance(wanted, dict) else wanted)
    made = listed(list(found.values()) if isinstance(found, dict) else found)
    assert len(flat) == len(made)
    for got, right in zip(made, flat, strict=True):
        torch.testing.assert_close(got, right, rtol=1e-12, atol=1e-12)


def test_every_parameter_comes_back_bit_for_bit(round_trip: tuple[Any, ...]) -> None:
    name, model, _, generated, arrays = round_trip
    own, state = generated.arrays(arrays), model.state_dict()
    renamed = {key for key in own if key not in state}
    assert {key for key in renamed if not any(key.startswith(stem) for stem in RENAMED.get(name, ()))} == set()
    for key in own.keys() & state.keys():
        np.testing.assert_array_equal(own[key], state[key].numpy(), err_msg=key)
    if not renamed:
        loaded(generated, arrays).load_state_dict(_without_shared(state, own), strict=True)
    held = {source for weight in generated.variables.values() for source in weight.expr.sources()}
    trained = {key for key, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained <= held


def _without_shared(state: dict[str, torch.Tensor], own: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """A state dict in which a tensor that two modules share has one name."""
    held = {state[name].data_ptr() for name in own}
    shared = {name for name, tensor in state.items() if name not in own and tensor.data_ptr() in held}
    return {name: tensor for name, tensor in state.items() if name not in shared}


def test_its_classes_are_the_authors(round_trip: tuple[Any, ...]) -> None:
    _, model, _, generated, _ = round_trip
    own = {type(module).__name__ for module in model.modules()}
    assert set(generated.classes) <= own
    assert generated.root == type(model).__name__


def test_its_source_stands_alone(round_trip: tuple[Any, ...]) -> None:
    imported = {line for line in round_trip[3].source.splitlines() if line.startswith(("import", "from"))}
    allowed = {
        "import math", "from pathlib import Path", "import torch", "import torch.nn.functional as F",
        "from safetensors.torch import load_file", "from torch import nn",
    }  # fmt: skip
    assert imported <= allowed
