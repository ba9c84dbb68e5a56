"""`porter inspect` and `porter ops`: the whole of a model, and all that is missing, whether it can be ported or not."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import porter
from porter.converters.opset import OPSET
from porter.converters.targets import coverage, keras, with_rules
from porter.errors import InputError, UnsupportedError
from porter.zoo import catalog


class Unportable(nn.Module):
    """Two operators that ONNX has no word for, in a child and in the model itself, between ones that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.inner = Inner()
        self.last = nn.Linear(4, 2, bias=False)
        self.last.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(torch.relu(self.first(x)))
        return self.last(y) + torch.linalg.eigh(x.mT @ x)[0].sum()


class Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.linalg.svdvals(x).sum() + torch.linalg.svdvals(x + 1).sum()


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) if x.sum() > 0 else x


def by_path(inspection: porter.Inspection) -> dict:
    return {module.path: module for module in inspection.modules}


def test_a_model_that_can_be_ported() -> None:
    entry = catalog.find("lenet")
    model = entry.make(small=True)
    inspection = porter.inspect_model(model, entry.inputs(small=True))
    assert inspection.problems == [] and inspection.name == "LeNet"
    assert inspection.parameters == inspection.trainable == sum(p.numel() for p in model.parameters())
    modules = by_path(inspection)
    assert list(modules) == [path for path, _ in model.named_modules()]
    assert sum(module.parameters for module in modules.values()) == inspection.parameters
    assert modules["conv1"].operators == {"aten.conv2d.default": 1} and modules["conv1"].onnx == {"Conv": 1}
    assert inspection.operators["aten.linear.default"] == 3
    assert inspection.lines()[-1] == "every operator can be written for keras"
    assert json.loads(json.dumps(inspection.to_json()))["portable"] is True


def test_tied_parameters_are_counted_once() -> None:
    entry = catalog.find("gru_lm")
    model = entry.make(small=True)
    inspection = porter.inspect_model(model, entry.inputs(small=True))
    assert (
        sum(m.parameters for m in inspection.modules)
        == inspection.parameters
        == sum(p.numel() for p in model.parameters())
    )


def test_everything_that_is_missing_is_named() -> None:
    inspection = porter.inspect_model(Unportable(), (np.ones((3, 4), np.float32),))
    found = [(p.stage, p.operator, p.module) for p in inspection.problems]
    assert found.count(("trace", "aten.linalg_svdvals.default", "inner")) == 2
    assert found.count(("trace", "aten.linalg_eigh.default", "")) == 1 and len(found) == 3
    assert all(p.line.partition(":")[0].endswith("test_inspection.py") for p in inspection.problems)
    assert inspection.parameters - inspection.trainable == 8
    told = "\n".join(inspection.lines())
    assert "3 node(s) cannot be ported" in told and "aten.linalg_svdvals.default (2x, no translation" in told
    assert by_path(inspection)["last"].onnx, "what comes after a missing operator is looked at as well"
    with pytest.raises(UnsupportedError):
        porter.port(Unportable(), (np.ones((3, 4), np.float32),))


def test_missing_rules_of_the_target_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = keras.load().rules
    for operator in ("Conv", "Tanh"):
        monkeypatch.delitem(rules, ("", operator))
    entry = catalog.find("lenet")
    inspection = porter.inspect_model(entry.make(small=True), entry.inputs(small=True))
    found = {(p.stage, p.operator, p.module) for p in inspection.problems}
    assert {("keras", "Conv", "conv1"), ("keras", "Conv", "conv2"), ("keras", "Tanh", "")} == found
    assert len(inspection.problems) == 6
    assert "no rule for keras" in "\n".join(inspection.lines())


def test_a_model_that_cannot_be_traced_still_has_modules() -> None:
    inspection = porter.inspect_model(Branching(), (np.ones((3, 4), np.float32),))
    assert [module.path for module in inspection.modules] == ["", "linear"] and inspection.parameters == 20
    assert "test_inspection.py" in inspection.lines()[-1] and not inspection.to_json()["portable"]


def test_an_exported_program_brings_its_inputs() -> None:
    entry = catalog.find("gru_lm")
    model, inputs = entry.make(small=True), entry.inputs(small=True)
    program = torch.export.export(model, (), {name: torch.from_numpy(array) for name, array in inputs.items()})
    inspection = porter.inspect_model(program)
    assert inspection.problems == []
    assert inspection.parameters == sum(p.numel() for p in model.parameters())
    assert "gru" in by_path(inspection)


def test_what_is_not_given_is_said() -> None:
    with pytest.raises(InputError, match="no example inputs"):
        porter.inspect_model(Unportable())
    with pytest.raises(InputError, match="inspects PyTorch models"):
        porter.inspect_model(object(), (np.ones(1),))


def test_coverage_is_read_from_the_rules() -> None:
    assert "keras" in with_rules()
    rows = {row["operator"]: row for row in coverage("keras")}
    assert set(rows) == {f"{domain}::{op}" if domain else op for domain, op in keras.load().rules}
    for name, row in rows.items():
        if "::" not in name:
            assert row["since"] == onnx.defs.get_schema(name, OPSET, "").since_version
    assert rows["Softmax"]["layout"] == "axes (axis)" and rows["Conv"]["layout"] == "spatial"
    assert {"strides", "group"} <= set(rows["Conv"]["attributes"]) and rows["Relu"]["layout"] == "any"
    with pytest.raises(UnsupportedError, match="there are no rules for 'cobol'"):
        coverage("cobol")


def test_the_commands() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "porter", *arguments], capture_output=True, text=True)

    done = run("inspect", "zoo:lenet@small")
    assert done.returncode == 0 and "every operator can be written for keras" in done.stdout, done.stderr
    done = run("ops", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["keras"]) == len(coverage("keras"))
