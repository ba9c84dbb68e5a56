"""Right ports pass at every draw; every planted mistake fails and is traced to its module."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import keras
import numpy as np
import pytest
import torch
from torch import nn

from porter.equivalence import verify_forward
from porter.equivalence.report import Report
from porter.errors import InconclusiveError, NotEqualError
from porter.runners.keras import KerasRunner
from porter.runners.torch import TorchRunner
from tests.porter import equivalence_pair as pair


def verify(bug: str | None = None, mode: str = "eager", seed: int = 0, **options: object) -> Report:
    source = pair.torch_net(seed)
    target = KerasRunner(lambda: pair.keras_net(source, bug), mode=mode, input_permutations=pair.INPUT_PERMUTATIONS)
    return verify_forward(TorchRunner(source), target, [pair.example()], **options)


@pytest.mark.parametrize("mode", ["eager", "function", "xla"])
@pytest.mark.parametrize("seed", [0, 1])
def test_right_port_passes_at_every_draw_and_size(mode: str, seed: int) -> None:
    report = verify(mode=mode, seed=seed, shapes=pair.SHAPES)
    assert report.passed, "\n".join(report.lines())
    assert not report.dropped
    draws = {d.draw for d in report.differences}
    assert {"example", "normal 0", "normal 1", "normal 2", "large", "small", "constant", "zeros"} < draws
    assert {"normal at batch=5, height=9, width=9", "normal at batch=1, height=16, width=16"} < draws
    assert {d.leg for d in report.differences} == {"semantics", "precision"}


@pytest.mark.parametrize(
    ("bug", "module"),
    [
        ("bn eps", "bn"),
        ("gelu tanh", "act"),
        ("ln eps", "ln"),
        ("one bias", "fc"),
        ("fp16 weights", "conv"),
        ("softmax axis", "softmax"),
        ("own code", ""),
        ("nan", ""),
        ("dtype", ""),
        ("shape", ""),
        ("swapped", ""),
        ("one output", ""),
    ],
)
def test_planted_mistake_fails_and_is_found(bug: str, module: str) -> None:
    report = verify(bug, seeds=(0,))
    assert not report.passed
    assert report.culprit is not None
    assert report.culprit.path == module
    with pytest.raises(NotEqualError, match="not equal"):
        report.raise_if_failed()


@pytest.mark.parametrize("bug", ["bn eps", "gelu tanh", "one bias"])
def test_planted_mistake_fails_in_a_compiled_function(bug: str) -> None:
    assert not verify(bug, mode="function", seeds=(0,)).passed


@pytest.mark.parametrize("bug", ["ln eps", "fp16 weights", "one bias"])
def test_precision_leg_alone_finds_what_float64_would(bug: str) -> None:
    source = pair.torch_net()
    live = pair.keras_net(source, bug)
    target = KerasRunner.from_model(live, input_permutations=pair.INPUT_PERMUTATIONS)
    target._build = _only_float32(live)
    report = verify_forward(TorchRunner(source), target, [pair.example()], seeds=(0,))
    assert not report.passed
    assert any("semantics not judged" in note for note in report.notes)


def test_reduced_precision_fails_the_precision_leg_only() -> None:
    report = verify("half kernel", seeds=(0,))
    failed = {d.leg for d in report.differences if not d.passed}
    assert failed == {"precision"}
    assert report.culprit is not None
    assert "before fc" in report.culprit.detail


def _only_float32(model: keras.Model):
    def build(dtype: str) -> keras.Model:
        if dtype == "float64":
            raise InconclusiveError("no float64 kernel")
        return model

    return build


def test_culprit_names_the_line_of_the_call() -> None:
    culprit = verify("gelu tanh", seeds=(0,)).culprit
    assert culprit is not None
    assert culprit.class_name == "GELU"
    assert culprit.source is not None
    assert culprit.target is not None
    file, _, line = culprit.source.rpartition(":")
    assert Path(file).name == "equivalence_pair.py"
    assert "self.act(self.bn(self.conv(x)))" in Path(file).read_text().splitlines()[int(line) - 1]


def test_the_ports_own_module_list_is_used() -> None:
    modules = [{"path": "bn", "class": "Norm", "file": "net.py", "line": 3, "output_permutations": [(0, 2, 3, 1)]}]
    culprit = verify("bn eps", seeds=(0,), modules=modules).culprit
    assert culprit is not None
    assert (culprit.path, culprit.class_name, culprit.source) == ("bn", "Norm", "net.py:3")


def test_a_target_that_raises_differs() -> None:
    report = verify("raises", seeds=(0,))
    assert not report.passed
    assert "no kernel for this" in report.lines()[0]


def test_keras_source_and_torch_target() -> None:
    net = pair.torch_net()
    source = KerasRunner(lambda: pair.keras_net(net))
    right = TorchRunner(net, input_permutations=[(0, 3, 1, 2)])
    images = pair.example().transpose(0, 2, 3, 1)
    assert verify_forward(source, right, [images], seeds=(0,)).passed
    wrong = pair.torch_net()
    wrong.bn.eps = 1e-3
    report = verify_forward(source, TorchRunner(wrong, input_permutations=[(0, 3, 1, 2)]), [images], seeds=(0,))
    assert report.culprit is not None
    assert report.culprit.path == "bn"


def test_reports(tmp_path: Path) -> None:
    report = verify("bn eps", seeds=(0,))
    data = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert data["passed"] is False
    assert data["culprit"]["path"] == "bn"
    assert data["versions"].keys() == {"torch", "keras", "tensorflow", "numpy"}
    assert data["thresholds"]["precision"] == 4.0
    suite = ElementTree.parse(report.to_junit(tmp_path / "junit.xml")).getroot()
    assert suite.attrib["tests"] == "4"
    assert suite.attrib["failures"] == "4"
    assert suite.find("testcase/failure") is not None
    page = report.to_html(tmp_path / "report.html").read_text()
    assert "Not equal" in page
    assert "BatchNorm2d" in page
    assert "normal 0" in page
    assert report.lines()[0].startswith("logits: semantics R=")
    assert "(floor " in report.lines()[0]


def test_import_loads_no_framework() -> None:
    code = (
        "import sys, porter.equivalence, porter.runners.torch, porter.runners.keras, porter.timing.frameworks;"
        "print([name for name in ('torch', 'tensorflow', 'keras') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


class Classify(nn.Module):
    """Integers in, integers and floats out."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.fc = nn.Linear(6, 4)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.fc(self.embed(ids)).masked_fill(~mask[..., None], 0.0).sum(dim=1)
        return x, x.argmax(dim=-1)


class KerasClassify(keras.Model):
    def __init__(self, source: Classify, *, shift: int = 0) -> None:
        super().__init__()
        self.embed = keras.layers.Embedding(11, 6)
        self.fc = keras.layers.Dense(4)
        self.shift = shift
        self.embed.build((None, None))
        self.fc.build((None, None, 6))
        self.embed.set_weights([source.embed.weight.detach().numpy()])
        self.fc.set_weights([source.fc.weight.detach().numpy().T, source.fc.bias.detach().numpy()])

    def call(self, ids, mask):
        x = self.fc(self.embed(ids))
        x = keras.ops.sum(keras.ops.where(mask[..., None], x, 0), axis=1)
        return x, keras.ops.argmax(x, axis=-1) + self.shift


def classify_inputs() -> list[np.ndarray]:
    ids = np.array([[1, 10, 3, 0], [4, 5, 6, 7], [0, 1, 2, 3]])
    return [ids, ids > 1]


def test_integers_and_masks() -> None:
    torch.manual_seed(0)
    source = Classify()
    shapes = [("batch", "length")] * 2
    runner = KerasRunner(lambda: KerasClassify(source), call=lambda m, x: m(*x))
    report = verify_forward(TorchRunner(source), runner, classify_inputs(), shapes)
    assert report.passed, "\n".join(report.lines())
    assert {"ends", "mask all true", "mask row false", "normal at batch=4, length=5"} < {
        d.draw for d in report.differences
    }
    wrong = KerasRunner(lambda: KerasClassify(source, shift=1), call=lambda m, x: m(*x))
    report = verify_forward(TorchRunner(source), wrong, classify_inputs())
    assert {d.output for d in report.differences if not d.passed} == {"output[1]"}


class Tables(nn.Module):
    """Two tables of different lengths, indexed by two columns of one input."""

    def __init__(self) -> None:
        super().__init__()
        self.long, self.short = nn.Embedding(50, 3), nn.Embedding(2, 3)

    def forward(self, ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.long(ids[:, 0]) + self.short(ids[:, 1]) * x


def test_refused_integers_fall_back_to_the_example() -> None:
    runner = TorchRunner(Tables())
    inputs = [np.array([[49, 1], [30, 0]] * 4), np.ones((8, 3), dtype=np.float32)]
    report = verify_forward(runner, runner, inputs, seeds=(0,))
    assert report.passed
    assert "normal 0, integers as in the example" in {d.draw for d in report.differences}
    assert list(report.dropped) == ["ends"]


class Windows(nn.Module):
    """Refuses odd heights."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], x.shape[1] // 2, -1)


class NotANumber(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * float("nan")


class HalfNotANumber(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"good": x, "bad": x * float("nan")}


def test_an_output_that_was_never_compared_is_noted() -> None:
    runner = TorchRunner(HalfNotANumber())
    report = verify_forward(runner, runner, [np.ones((2, 3), dtype=np.float32)], seeds=(0,))
    assert any(note.startswith("bad was compared at no draw") for note in report.notes)


class Noise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x)


class Raises(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("never runs")


def test_sizes_that_the_source_refuses_are_recorded() -> None:
    x = np.ones((2, 4, 3), dtype=np.float32)
    report = verify_forward(TorchRunner(Windows()), TorchRunner(Windows()), [x], [("b", "h", 3)])
    assert report.passed
    assert list(report.dropped) == ["normal at b=3, h=5"]
    assert "normal at b=3, h=12" in {d.draw for d in report.differences}


@pytest.mark.parametrize(
    ("module", "message"), [(NotANumber, "nothing is proved"), (Noise, "random"), (Raises, "none of the")]
)
def test_what_cannot_be_judged_is_no_pass(module: type[nn.Module], message: str) -> None:
    with pytest.raises(InconclusiveError, match=message):
        verify_forward(TorchRunner(module()), TorchRunner(module()), [np.ones((2, 3), dtype=np.float32)])
