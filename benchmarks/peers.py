"""The other converters to Keras, on the small models of the zoo, each in a virtual environment of its own.

Their requirements exclude each other and porter's, so they are no extra of porter's: an environment for each is made
below `build/peers` with the packages named in PEERS. A tool that cannot be installed, fails, or takes too long is a row
that says so. Weights come from the same seed, so the errors are those of the same model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / "build" / "peers"
PEERS = {
    "nobuco": ("nobuco", "torch", "torchvision", "tensorflow==2.15.*", "keras==2.15.*", "numpy<2", "setuptools<81"),
    "onnx2tf": ("onnx2tf", "tensorflow", "tf_keras", "onnx", "onnxruntime", "onnx-graphsurgeon", "psutil", "sng4onnx"),
    "onnx2kerastl": ("onnx2kerastl", "tensorflow==2.15.*", "keras==2.15.*", "numpy<2", "onnx<1.17", "setuptools<81"),
    "onnx2keras": ("onnx2keras", "onnx", "setuptools<81"),
}
MODELS = ("lenet", "resnet18", "resnet50", "mobilenet_v2", "bert_tiny")
INSTALL_LIMIT, CONVERT_LIMIT = 1200, 300
SCRIPT = Path(__file__).with_name("peer_run.py")


def run(tools: tuple[str, ...] = ("porter", *PEERS)) -> list[dict[str, Any]]:
    """One row for each tool and model."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        prepared = {model: _prepare(model, Path(folder) / model) for model in MODELS}
        home = zoo_alone(Path(folder) / "home")
        for tool in tools:
            python, problem = environment(tool, PEERS)
            for model, place in prepared.items():
                found = {"failure": problem} if problem else convert(python, SCRIPT, tool, model, place, home)
                rows.append({"tool": tool, "model": model, **found})
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown."""
    heads = ("tool", "model", "CPU (s)", "transposes", "trainable parameters", "largest error")
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        if "failure" in row:
            cells = [f"failed: {row['failure']}", "", "", ""]
        else:
            error = "other shape" if row["error"] is None else f"{row['error']:.1e}"
            cells = [f"{row['cpu']:.1f}", str(row["transposes"]), str(row["trainable"]), error]
        lines.append("| " + " | ".join([row["tool"], row["model"], *cells]) + " |")
    return lines


def _prepare(model: str, folder: Path) -> Path:
    """The model as ONNX, with inputs and with what PyTorch makes of them."""
    import numpy as np
    import torch

    from porter.zoo import catalog

    folder.mkdir(parents=True)
    entry = catalog.find(model)
    module, inputs = entry.make(small=True), entry.inputs(small=True)
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    with torch.no_grad():
        found = module(**tensors)
    outputs = found if isinstance(found, list | tuple) else [found]
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "outputs.npz", **{f"output_{i}": y.numpy() for i, y in enumerate(outputs)})
    exported = torch.onnx.export(module, (), kwargs=tensors, dynamo=True, verbose=False)
    assert exported is not None
    exported.save(folder / "model.onnx")
    return folder


def zoo_alone(folder: Path) -> Path:
    """A folder to import `porter.zoo` from where porter is not installed."""
    package = folder / "porter"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "zoo").symlink_to(ROOT / "zoo", target_is_directory=True)
    return folder


def environment(tool: str, peers: dict[str, tuple[str, ...]]) -> tuple[Path, str | None]:
    """The interpreter of the tool's environment, made of the packages that `peers` names, and why there is none."""
    if tool == "porter":
        return Path(sys.executable), None
    folder = ENVIRONMENTS / tool
    python, done = folder / "bin" / "python", folder / ".installed"
    if done.exists():
        return python, None
    venv.create(folder, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", *peers[tool]]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return python, f"not installed after {INSTALL_LIMIT} s"
    if finished.returncode:
        return python, f"cannot be installed: {_last_line(finished.stderr)}"
    done.touch()
    return python, None


def convert(python: Path, script: Path, tool: str, model: str, place: Path, home: Path) -> dict[str, Any]:
    """What `script` says of one conversion; in an environment without porter the zoo is imported from `home`."""
    alone = {} if tool == "porter" else {"PYTHONPATH": str(home)}
    environment = {**os.environ, **alone, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    command = [str(python), str(script), tool, model, str(place)]
    try:
        finished = subprocess.run(
            command, capture_output=True, text=True, timeout=CONVERT_LIMIT, env=environment, cwd=place, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"not done after {CONVERT_LIMIT} s"}
    if finished.returncode:
        return {"failure": _last_line(finished.stderr)}
    return json.loads(finished.stdout.splitlines()[-1])


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:160].replace("|", "/") if lines else "no message"


if __name__ == "__main__":
    print("\n".join(table(run(tuple(sys.argv[1:]) or ("porter", *PEERS)))))
