"""To the other framework and back: the classes, the names and the bits of a direct port, and the same graph."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from safetensors.numpy import load_file

import porter
from porter.zoo import catalog

MODELS = ["torch/lenet", "torch/resnet18", "torch/mobilenet_v2", "torch/gpt_tiny", "keras/mobilenet_v2_functional"]
# What may differ between a port that came back and a direct one, line by line.
ALLOWED = (
    r'""".*, ported from (PyTorch|Keras)',  # the first line says where it came from
    r"(import|from) ",  # what the lines below need
    r"self\.(relu|gelu) = nn\.\w+\(.*\)",  # a function that the other side has no layer for stays a function
    r".*(self\.(relu|gelu)\(|F\.(relu|gelu)\().*",
    r".*\bdim=(-1|[0-9]+)\).*",  # an axis counted from the other end
    r".*\.mean\(\((-2, -1|2, 3)\)\)",
)


@pytest.fixture(scope="module", params=MODELS)
def trip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """(source model, direct port to its own framework, port that went to the other one and came back)."""
    framework, name = request.param.split("/")
    entry, folder = catalog.find(request.param), tmp_path_factory.mktemp(name)
    model, inputs = entry.make(small=True), entry.inputs(small=True)
    options: dict[str, Any] = {"name": name, "keep_onnx": True}
    direct = porter.port(model, inputs, to=framework, out=folder / "direct", dynamic=entry.dynamic, **options)
    other = {"torch": "keras", "keras": "torch"}[framework]
    there = porter.port(model, inputs, to=other, out=folder / "there", dynamic=entry.dynamic, **options)
    twin = there.load()
    call = twin.forward if other == "torch" else twin.call
    taken = [parameter for parameter in inspect.signature(call).parameters if parameter != "training"]
    dynamic = {}
    for argument, spec in zip(taken, there.manifest["inputs"], strict=True):
        order = spec["permutation"] or range(len(spec["shape"]))
        dynamic[argument] = {
            axis: spec["shape"][source]
            for axis, source in enumerate(order)
            if not isinstance(spec["shape"][source], int)
        }
    given = there.to_target(inputs)
    back = porter.port(twin, given, to=framework, out=folder / "back", dynamic=dynamic, **options)
    return model, direct, back


def test_classes_and_tensors_are_the_same(trip: tuple[Any, ...]) -> None:
    _, direct, back = trip
    assert _classes(back.source) == _classes(direct.source)
    wanted, found = (load_file(Path(port.path) / "weights.safetensors") for port in (direct, back))
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_the_state_dict_is_the_originals(trip: tuple[Any, ...]) -> None:
    model, _, back = trip
    if back.manifest["target"] != "torch":
        weights = [np.asarray(variable) for variable in model.weights]
        returned = [np.asarray(variable) for variable in back.load().weights]
        assert Counter(a.tobytes() for a in returned) == Counter(a.tobytes() for a in weights)
        return
    state, returned = model.state_dict(), back.load().state_dict()
    assert state.keys() >= set(back.weight_map)
    held = {state[name].data_ptr() for name in back.weight_map}
    missing = {name for name in state.keys() - returned.keys() if state[name].data_ptr() not in held}
    assert missing == set()  # a matrix that two modules share has one name
    for name in back.weight_map:
        np.testing.assert_array_equal(returned[name].numpy(), state[name].numpy(), err_msg=name)


def test_the_source_differs_in_nothing_that_matters(trip: tuple[Any, ...]) -> None:
    _, direct, back = trip
    lines = difflib.ndiff(_classes_alone(direct.source), _classes_alone(back.source))
    changed = [line[2:].strip() for line in lines if line.startswith(("+ ", "- "))]
    assert [line for line in changed if line and not any(re.match(form, line) for form in ALLOWED)] == []


def test_the_graph_is_the_same(trip: tuple[Any, ...]) -> None:
    """The same layers, as often and with the same settings."""
    _, direct, back = trip
    assert _layers_of(Path(direct.path)) == _layers_of(Path(back.path))


def _classes(source: str) -> list[str]:
    return re.findall(r"^class (\w+)", source, re.MULTILINE)


def _classes_alone(source: str) -> list[str]:
    """The text without `build` and how fresh weights are drawn, which is the framework's that it came from."""
    return re.split(r"^def build\(", source, flags=re.MULTILINE)[0].splitlines()


def _layers_of(folder: Path) -> Counter[str]:
    """How often each layer of the structured ONNX occurs, by operator and settings."""
    found: Counter[str] = Counter()
    for node in ir.load(folder / "model.onnx").graph:
        if node.op_type in ("Conv", "Gemm", "BatchNormalization", "LayerNormalization", "Relu", "Gelu", "Softmax"):
            named = {
                key: str(attribute.value)
                for key, attribute in node.attributes.items()
                if key in ("group", "strides", "dilations", "epsilon", "momentum", "approximate")
            }
            found[json.dumps([node.op_type, named], sort_keys=True)] += 1
    return found
