"""Each verb against a stand-in for the Python API: what it passes on, what it prints, and how it ends."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import porter
from porter.cli import app
from porter.errors import InconclusiveError, UnsupportedError

RUNNER = CliRunner()

PROJECT = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        print("noise of the user's own")
        return x

def make():
    print("noise of the user's own")
    return Net(), {"x": torch.zeros(2, 3)}
"""


class FakeReport:
    def __init__(self, passed: bool) -> None:
        self.passed = passed

    def lines(self) -> list[str]:
        return ["equal" if self.passed else "differs at layer1"]

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed}

    def to_html(self, path: Path) -> None:
        Path(path).write_text("<html></html>")


class Api:
    """Records the calls; `passed` and `error` say how they end."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.passed = True
        self.error: Exception | None = None

    def port(self, *args: Any, **kwargs: Any) -> str:
        self.calls.append(("port", args, kwargs))
        if self.error:
            raise self.error
        Path(kwargs["out"]).mkdir(parents=True, exist_ok=True)
        return "the port"

    def verify(self, *args: Any, **kwargs: Any) -> FakeReport:
        self.calls.append(("verify", args, kwargs))
        if self.error:
            raise self.error
        return FakeReport(self.passed)

    def benchmark(self, *args: Any, **kwargs: Any) -> FakeReport:
        self.calls.append(("benchmark", args, kwargs))
        return FakeReport(True)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Api:
    fake = Api()
    for name in ("port", "verify", "benchmark"):
        monkeypatch.setattr(porter, name, getattr(fake, name), raising=False)
    (tmp_path / "clinet.py").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "clinet", raising=False)
    monkeypatch.setattr("porter.references._require_front_end", lambda loaded: None)
    return fake


def run(*arguments: str) -> Any:
    return RUNNER.invoke(app, list(arguments))


def test_port_passes_everything_on(api: Api) -> None:
    Path("mine.py").write_text("")
    done = run("port", "torch:clinet:make", "--to", "keras", "--layout", "source", "--rules", "mine.py", "--keep-onnx")
    assert done.exit_code == 0, done.output
    _, (model, inputs), settings = api.calls[0]
    assert type(model).__name__ == "Net" and not model.training and set(inputs) == {"x"}
    assert settings["to"] == "keras" and settings["layout"] == "source" and settings["keep_onnx"]
    assert settings["rules"] == (Path("mine.py"),) and settings["out"] == Path("ported/make")
    assert settings["dynamic"] == "auto" and settings["reference"] == "torch:clinet:make"
    assert "source  ported/make/model.py" in done.output


@pytest.mark.parametrize(
    ("options", "dynamic"),
    [
        (["--input", "x:float32[batch,3]"], {"x": {0: "batch"}}),
        (["--input", "x:float32[2,3]"], "auto"),
        (["--input", "x:float32[batch,3]", "--static"], "none"),
    ],
)
def test_inputs_of_the_command_line_win(api: Api, options: list[str], dynamic: Any) -> None:
    assert run("port", "torch:clinet:make", "--to", "keras", *options).exit_code == 0
    _, (_, inputs), settings = api.calls[0]
    assert inputs["x"].shape == (2, 3) and settings["dynamic"] == dynamic


def test_port_and_verify(api: Api) -> None:
    done = run("port", "torch:clinet:make", "--to", "keras", "-o", "out", "--verify", "gradients")
    assert done.exit_code == 0 and Path("out/report.html").exists()
    assert [name for name, _, _ in api.calls] == ["port", "verify"]
    assert api.calls[1][1][1] == "the port" and api.calls[1][2]["level"] == "gradients"
    assert "equal\nreport  out/report.html" in done.output


def test_a_port_that_differs_exits_1(api: Api) -> None:
    api.passed = False
    done = run("port", "torch:clinet:make", "--to", "keras", "--verify", "forward")
    assert done.exit_code == 1 and "differs at layer1" in done.output


def test_json_alone_is_on_standard_output(api: Api) -> None:
    done = run("port", "torch:clinet:make", "--to", "keras", "--verify", "forward", "--json")
    assert json.loads(done.stdout)["report"] == {"passed": True}
    assert "noise of the user's own" in done.stderr


def test_an_existing_output_is_refused_before_the_work(api: Api) -> None:
    Path("out").mkdir()
    done = run("port", "torch:clinet:make", "--to", "keras", "-o", "out")
    assert done.exit_code == 2 and "--force" in done.stderr and api.calls == []
    assert run("port", "torch:clinet:make", "--to", "keras", "-o", "out", "--force").exit_code == 0


@pytest.mark.parametrize(("error", "code"), [(UnsupportedError("no rule for Foo"), 2), (InconclusiveError("NaN"), 3)])
def test_a_porter_error_is_one_message(api: Api, error: Exception, code: int) -> None:
    api.error = error
    done = run("port", "torch:clinet:make", "--to", "keras")
    assert done.exit_code == code and done.stderr == f"porter: {error}\n"


def test_a_bug_shows_its_traceback_and_exits_3(api: Api) -> None:
    api.error = KeyError("boom")
    done = run("port", "torch:clinet:make", "--to", "keras")
    assert done.exit_code == 3 and "Traceback" in done.stderr


def test_verify_takes_models_ports_and_a_port_alone(api: Api) -> None:
    Path("out").mkdir()
    Path("out/port.json").write_text(json.dumps({"source": {"reference": "torch:clinet:make"}}))
    assert run("verify", "torch:clinet:make", "torch:clinet:make", "--level", "modules").exit_code == 0
    assert run("verify", "torch:clinet:make", "out").exit_code == 0
    assert run("verify", "out", "--html", "page.html").exit_code == 0
    targets = [args[1] for _, args, _ in api.calls]
    assert type(targets[0]).__name__ == "Net" and targets[1:] == [Path("out"), Path("out")]
    assert Path("page.html").exists()
    api.passed = False
    assert run("verify", "out", "--json").exit_code == 1
    assert run("verify", "torch:clinet:make").exit_code == 2


def test_bench_keeps_the_numbers(api: Api) -> None:
    assert run("bench", "torch:clinet:make", "torch:clinet:make", "-o", "bench.json").exit_code == 0
    assert json.loads(Path("bench.json").read_text()) == {"passed": True}


def test_weights(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    carried = []
    module = types.ModuleType("porter.weights")

    def carry(*args: Any, **kwargs: Any) -> Any:
        carried.append((args, kwargs))
        return types.SimpleNamespace(lines=lambda: ["weights new.safetensors"], tensors=1, kept=())

    monkeypatch.setattr(module, "carry", carry, raising=False)
    monkeypatch.setitem(sys.modules, "porter.weights", module)
    assert run("weights", "nowhere", "new.pt", "-o", "new.safetensors").exit_code == 2
    Path("out").mkdir()
    Path("out/port.json").write_text("{}")
    assert "no such checkpoint" in run("weights", "out", "new.pt", "-o", "new.safetensors").stderr
    Path("new.pt").write_text("")
    assert run("weights", "out", "new.pt", "-o", "new.safetensors", "--reverse").exit_code == 0
    assert carried == [((Path("out"), Path("new.pt"), Path("new.safetensors")), {"reverse": True})]


def test_a_sweep_goes_on_after_a_failure(api: Api) -> None:
    done = run("zoo", "port", "mlp", "nosuch", "--to", "keras", "--small", "--json")
    rows = json.loads(done.stdout)
    assert done.exit_code == 2 and [row["exit_code"] for row in rows] == [0, 2]
    assert rows[0]["reference"] == "zoo:mlp@small" and "nosuch" in rows[1]["error"]


def test_a_sweep_that_finds_a_difference_exits_1(api: Api) -> None:
    api.passed = False
    done = run("zoo", "verify", "nosuch", "mlp", "--to", "keras", "--small")
    assert done.exit_code == 1 and "0 of 2 passed" in done.stdout
