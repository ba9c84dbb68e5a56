"""Every kind of reference, and what is said when one leads nowhere."""

import os
import pickle
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from porter import references
from porter.errors import InputError, PorterError, ReferenceError_, UnsupportedError

NET = """
import torch
from zoo.parts import Linear
from converters import SIZE

class Net(torch.nn.Module):
    def __init__(self, size=SIZE):
        super().__init__()
        self.linear = Linear(size, size)

    def forward(self, x):
        return self.linear(x)

class Sized(Net):
    def __init__(self, size):
        super().__init__(size)

net = Net()
number = 3

def make_net():
    return Net()

def make_with_inputs():
    return Net(), torch.zeros(2, SIZE)

def make_with_names():
    return Net(), {"x": torch.zeros(2, SIZE)}

def make_wrong():
    return 17

def make_failing():
    return torch.nn.Linear(3, "four")

def make_keras():
    import keras
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
"""
FAILING_LINE = NET.splitlines().index('    return torch.nn.Linear(3, "four")') + 1


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with packages of the names that porter's own folders have; it leaves no trace in the interpreter."""
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "__init__.py").write_text("")
    (tmp_path / "zoo" / "parts.py").write_text("from torch.nn import Linear\n")
    (tmp_path / "converters.py").write_text("SIZE = 4\n")
    (tmp_path / "zoo" / "nets.py").write_text(NET)
    (tmp_path / "broken.py").write_text("import math\n\nmath.sqrt(-1)\n")
    (tmp_path / "unfinished.py").write_text("def make(:\n")
    (tmp_path / "needy.py").write_text("import a_package_nobody_has\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in ("zoo", "converters")}
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
    for name in [name for name in sys.modules if name.split(".")[0] in ("zoo", "converters")]:
        del sys.modules[name]
    sys.modules.update(before)


def message(reference: str, to: str | None = None) -> str:
    with pytest.raises(PorterError) as caught:
        references.load(reference, to)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("name", ["make_net", "Net", "net"])
def test_a_factory_a_class_or_a_model(project: Path, name: str) -> None:
    loaded = references.load(f"torch:zoo.nets:{name}")
    assert type(loaded.model).__name__ == "Net" and not loaded.model.training
    assert (loaded.framework, loaded.name, loaded.inputs) == ("torch", name.lower(), None)


def test_a_factory_with_inputs(project: Path) -> None:
    positional = references.load("torch:zoo.nets:make_with_inputs").inputs
    assert isinstance(positional, tuple) and positional[0].shape == (2, 4)
    named = references.load("torch:zoo.nets:make_with_names").inputs
    assert isinstance(named, dict) and named["x"].shape == (2, 4)


def test_keras_factory(project: Path) -> None:
    loaded = references.load("keras:zoo.nets:make_keras")
    assert loaded.framework == "keras" and loaded.model.count_params() == 10


def test_tf_function_is_the_model_itself(project: Path) -> None:
    (project / "graphs.py").write_text("import tensorflow as tf\n\n@tf.function\ndef double(x):\n    return x * 2\n")
    loaded = references.load("tf:graphs:double")
    assert loaded.framework == "tensorflow" and float(loaded.model(np.float32(3))) == 6


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("torch:zoo.net:make_net", ["no module 'zoo.net'", "did you mean 'nets'"]),
        ("torch:brokn:make", ["no module 'brokn'", "did you mean 'broken'"]),
        ("torch:broken:make", ["'broken' raised ValueError", "broken.py:3"]),
        ("torch:unfinished:make", ["SyntaxError", "unfinished.py:1"]),
        ("torch:needy:make", ["'needy' needs 'a_package_nobody_has'", "needy.py:1"]),
        ("torch:zoo.nets:make_nets", ["'zoo.nets' has no 'make_nets'", "'make_net'"]),
        ("torch:zoo.nets:make_failing", ["TypeError", f"nets.py:{FAILING_LINE}"]),
        ("torch:zoo.nets:Sized", ["TypeError", "without arguments"]),
        ("torch:zoo.nets:make_wrong", ["make_wrong() returned a builtins.int", "nn.Module"]),
        ("torch:zoo.nets:make_keras", ["keras", "keras:… instead"]),
        ("torch:zoo.nets:number", ["'number' is of type int"]),
        ("torch:zoo.nets", ["write torch:PACKAGE.MODULE:FACTORY"]),
        ("zoo.nets:make_net", ["torch:zoo.nets:make_net"]),
        ("trch:zoo.nets:make_net", ["'trch'", "did you mean 'torch'"]),
        ("zoo:resnet51", ["resnet50"]),
        ("zoo:resnet50@huge", ["zoo:resnet50@small"]),
        ("resnet50", ["zoo:resnet50"]),
        ("brokn.pt2", ["no such file"]),
        ("zoo", ["a folder without port.json"]),
        ("broken.py", ["not '.py'"]),
    ],
)
def test_what_is_said_when_it_leads_nowhere(project: Path, reference: str, said: list[str]) -> None:
    text = message(reference)
    assert all(part in text for part in said), text
    assert reference in text and "\n" not in text


def test_the_zoo_gives_the_other_side(project: Path) -> None:
    assert references.load("zoo:mlp@small", to="onnx").framework == "torch"
    loaded = references.load("zoo:mlp@small")
    assert loaded.name == "mlp" and isinstance(loaded.inputs, dict)
    assert set(loaded.dynamic or {}) <= set(loaded.inputs)


@pytest.mark.slow
def test_the_zoo_towards_torch_is_the_keras_definition(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_require_front_end", lambda loaded: None)
    assert references.load("zoo:lstm_classifier@small", to="torch").framework == "keras"
    assert references.load("zoo:keras/lstm_classifier@small").framework == "keras"
    assert references.load("zoo:vgg16_sequential@small").framework == "keras"
    automaton = references.load("zoo:cellular_automaton@small", to="torch")
    assert (automaton.framework, automaton.name) == ("tensorflow", "cellular_automaton")


def test_exported_program(project: Path) -> None:
    import torch

    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.zeros(1, 3),)), project / "linear.pt2")
    loaded = references.load("linear.pt2")
    assert loaded.framework == "torch" and loaded.name == "linear"
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("exploded"),)


def test_an_exported_program_never_unpickles(project: Path) -> None:
    import torch

    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.zeros(1, 3),)), project / "good.pt2")
    with zipfile.ZipFile("good.pt2") as good, zipfile.ZipFile("bad.pt2", "w") as bad:
        for name in good.namelist():
            bad.writestr(name, good.read(name))
        bad.writestr("good/data/constants/opaque_obj_0", pickle.dumps(Bomb()))
    assert "pickled Python object" in message("bad.pt2")
    assert not Path("exploded").exists()


@pytest.mark.parametrize("what", ["state_dict", "module", "bomb"])
def test_a_torch_checkpoint_is_no_model(project: Path, what: str) -> None:
    import torch

    linear = torch.nn.Linear(3, 2)
    torch.save({"state_dict": linear.state_dict(), "module": linear, "bomb": Bomb()}[what], "weights.pth")
    text = message("weights.pth")
    assert "torch:PACKAGE.MODULE:FACTORY" in text
    assert ("2 entries" in text) == (what == "state_dict")
    assert not Path("exploded").exists()


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_keras_file(project: Path, suffix: str) -> None:
    import keras

    keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]).save(f"dense{suffix}")
    loaded = references.load(f"dense{suffix}")
    assert loaded.framework == "keras" and loaded.name == "dense" and loaded.model.count_params() == 10


def test_saved_model_and_frozen_graph(project: Path) -> None:
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    module = tf.Module()
    module.w = tf.Variable([[2.0], [3.0]])
    module.run = tf.function(lambda x: x @ module.w, input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    tf.saved_model.save(module, "saved", signatures=module.run)
    frozen = convert_variables_to_constants_v2(module.run.get_concrete_function())
    tf.io.write_graph(frozen.graph, ".", "frozen.pb", as_text=False)
    for reference in ("saved", "frozen.pb"):
        loaded = references.load(reference)
        (out,) = tf.nest.flatten(loaded.model(tf.constant([[1.0, 1.0]])))
        assert loaded.framework == "tensorflow" and float(out[0, 0]) == 5


def test_onnx_file_is_left_to_its_front_end(project: Path) -> None:
    import onnx.helper as h

    info = [h.make_tensor_value_info(name, 1, ["n"]) for name in "xy"]
    onnx_model = h.make_model(h.make_graph([h.make_node("Relu", ["x"], ["y"])], "g", info[:1], info[1:]))
    Path("relu.onnx").write_bytes(onnx_model.SerializeToString())
    loaded = references.load("relu.onnx")
    assert (loaded.model, loaded.framework) == (Path("relu.onnx"), "onnx")


@pytest.mark.parametrize("name", ["a.pt2", "a.keras", "a.h5", "a.onnx", "a.pb"])
def test_a_damaged_file(project: Path, name: str) -> None:
    Path(name).write_bytes(b"not a model")
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        references.load(name)


def test_port_directory(project: Path) -> None:
    Path("ported").mkdir()
    Path("ported/port.json").write_text('{"target": "torch"}')
    Path("ported/model.py").write_text("import torch\n\ndef build(weights=True):\n    return torch.nn.Linear(2, 2)\n")
    loaded = references.load("ported")
    assert loaded.framework == "torch" and loaded.model.in_features == 2
    Path("ported/port.json").write_text("{")
    with pytest.raises(InputError, match="--force"):
        references.load("ported")


def test_a_framework_without_front_end_says_so(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match="can't port torch graphs yet"):
        references.load("torch:zoo.nets:net", to="keras")


@pytest.mark.parametrize("hub", ["timm", "torchvision", "transformers"])
def test_a_hub_that_is_not_installed(project: Path, monkeypatch: pytest.MonkeyPatch, hub: str) -> None:
    monkeypatch.setitem(sys.modules, hub, None)
    assert f"pip install {hub}" in message(f"{hub}:anything")


def test_keras_applications(project: Path) -> None:
    assert "did you mean 'MobileNetV2'" in message("keras.applications:MobilNetV2")
    loaded = references.load("keras.applications:MobileNetV2")
    assert loaded.framework == "keras" and loaded.inputs[0].shape == (2, 224, 224, 3)


def test_reference_errors_are_usage_errors() -> None:
    assert ReferenceError_("x").exit_code == 2
