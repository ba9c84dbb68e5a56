"""Checkpoints through a port's weight map: both ways, bit for bit, and one clear error for each that does not fit."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch import nn

import porter
from porter import checkpoints, weights
from porter.errors import InputError, WeightsError
from porter.zoo import catalog

TARGETS = (".safetensors", ".weights.h5", ".keras")
SOURCES = (".pt", ".safetensors")


class Net(nn.Module):
    """Every kind of tensor: tied, unused, scalar, partly used, complex, buffers in a checkpoint or not."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.embedding = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7)
        self.head.weight = self.embedding.weight
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.packed = nn.Parameter(torch.randn(9, 4))
        self.filter = nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.unused = nn.Linear(2, 2)
        self.register_buffer("offset", torch.arange(4.0))
        self.register_buffer("hidden", torch.arange(4.0) + 1, persistent=False)

    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn(self.conv(x))).mean((2, 3)) * self.scale + self.offset * self.hidden
        y = y + torch.view_as_real(self.filter).sum(-1)
        y = nn.functional.linear(y, self.packed[:4])
        return self.head(y[:, None] + self.embedding(tokens))


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=(2, 3, 8, 8)).astype(np.float32), "tokens": rng.integers(0, 7, (2, 5))}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> porter.Port:
    torch.manual_seed(0)
    return porter.port(Net().eval(), inputs(), dynamic="none", out=tmp_path_factory.mktemp("weights") / "net")


def trained(seed: int = 1, like: nn.Module | None = None) -> dict[str, torch.Tensor]:
    """A state_dict whose tensors are all new."""
    torch.manual_seed(seed)
    state = (like or Net()).state_dict()
    for name, tensor in state.items():
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.copy_(torch.randn_like(tensor).abs() if "var" in name else torch.randn_like(tensor))
    return state


def bits(tensor: Any) -> tuple:
    array = checkpoints.as_array(tensor)
    return str(array.dtype), array.shape, np.asarray(array, order="C").tobytes()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_there_and_back(port: porter.Port, tmp_path: Path, target: str, source: str) -> None:
    state = trained()
    kept = {"bn.num_batches_tracked", "unused.weight", "unused.bias"}
    first, middle, last = tmp_path / "a.pt", tmp_path / f"b{target}", tmp_path / f"c{source}"
    torch.save(state, first)
    carried = weights.carry(port.path, first, middle)
    assert carried.tensors == len(port.weight_map) and carried.kept == ()
    carried = weights.carry(port.path, middle, last, reverse=True)
    found = torch.load(last, weights_only=True) if source == ".pt" else load_file(last)
    assert set(found) == set(state)
    assert set(carried.kept) == kept | {"packed"}
    for name in state.keys() - kept - {"packed"}:
        assert bits(found[name]) == bits(state[name]), name
    # What the port does not hold stands as it was when it was made.
    torch.manual_seed(0)
    original = Net().state_dict()
    for name in kept:
        assert bits(found[name]) == bits(original[name]), name
    both = checkpoints.as_array(found["packed"])
    np.testing.assert_array_equal(both[:4], state["packed"][:4])
    np.testing.assert_array_equal(both[4:], original["packed"][4:])
    assert any("num_batches" in line for line in carried.lines())
    if source == ".pt":
        assert list(found) == list(state)
        assert found["head.weight"].data_ptr() == found["embedding.weight"].data_ptr()
        Net().load_state_dict(found)


def test_the_ported_model_computes_with_what_was_carried(port: porter.Port, tmp_path: Path) -> None:
    net = Net().eval()
    net.load_state_dict(trained())
    torch.save(net.state_dict(), tmp_path / "a.pt")
    weights.carry(port.path, tmp_path / "a.pt", tmp_path / "a.weights.h5")
    model = port.load()
    model.load_weights(tmp_path / "a.weights.h5")
    with torch.no_grad():
        want = net(*(torch.from_numpy(array) for array in inputs().values())).numpy()
    got = np.asarray(model(*port.to_target(inputs()), training=False))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"epoch": 3, "state_dict": state},
        lambda state: {"model": state, "optimizer": {"lr": 0.1}},
        lambda state: {"model_state_dict": {f"module.{name}": item for name, item in state.items()}},
        lambda state: {f"module._orig_mod.{name}": item for name, item in state.items()},
    ],
    ids=["bare", "state_dict", "model", "data_parallel", "compiled"],
)
def test_what_training_scripts_save(port: porter.Port, tmp_path: Path, wrap: Any) -> None:
    state = trained()
    torch.save(wrap(state), tmp_path / "a.pt")
    weights.carry(port.path, tmp_path / "a.pt", tmp_path / "a.safetensors")
    want = weights.to_target(port, state)
    found = load_file(tmp_path / "a.safetensors")
    assert {name: bits(array) for name, array in found.items()} == {name: bits(array) for name, array in want.items()}


def test_every_misfit_is_named_at_once(port: porter.Port) -> None:
    state = trained()
    del state["conv.weight"], state["bn.bias"], state["head.weight"], state["unused.weight"]
    state["head.bias"] = torch.zeros(3)
    state["unused.bias"] = torch.zeros(5)
    state["extra.weight"] = torch.zeros(1)
    with pytest.raises(WeightsError) as caught:
        weights.to_target(port, state)
    told = str(caught.value)
    for line in (
        "5 tensor(s)",
        "missing: bn.bias",
        "missing: conv.weight",
        "shape: head.bias is [3], the port needs [7]",
        "shape: unused.bias is [5], the port needs [2]",
        "unexpected: extra.weight",
    ):
        assert line in told
    assert "unused.weight" not in told and "embedding" not in told


def test_any_name_of_a_tied_tensor_is_enough_but_they_must_agree(port: porter.Port) -> None:
    state = trained()
    want = weights.to_target(port, state)
    alone = {name: tensor for name, tensor in state.items() if name != "embedding.weight"}
    found = weights.to_target(port, alone)
    assert all(bits(found[name]) == bits(want[name]) for name in want)
    with pytest.raises(WeightsError, match=r"head\.weight is one tensor with embedding\.weight in the port"):
        weights.to_target(port, {**state, "head.weight": state["head.weight"] + 1})


def test_constants_are_those_of_the_port(port: porter.Port) -> None:
    arrays = weights.to_target(port, trained())
    own = load_file(port.path / "weights.safetensors")
    held = [name for name, entry in port.weight_map.items() if entry["expression"].get("source") == "hidden"]
    assert all(bits(arrays[name]) == bits(own[name]) for name in held)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_dtype_is_kept(port: porter.Port, tmp_path: Path, dtype: torch.dtype) -> None:
    state = {name: t.to(dtype) if t.is_floating_point() else t for name, t in trained().items()}
    state["filter"] = state["filter"].to(torch.complex128) if dtype == torch.float64 else state["filter"]
    torch.save(state, tmp_path / "a.pt")
    weights.carry(port.path, tmp_path / "a.pt", tmp_path / "a.safetensors")
    weights.carry(port.path, tmp_path / "a.safetensors", tmp_path / "b.pt", reverse=True)
    found = torch.load(tmp_path / "b.pt", weights_only=True)
    for name in ("conv.weight", "bn.running_var", "scale", "head.weight", "filter"):
        assert bits(found[name]) == bits(state[name]), name


def test_reversed_misfits_are_named(port: porter.Port) -> None:
    arrays = weights.to_target(port, trained())
    name, other, *_ = arrays
    with pytest.raises(WeightsError) as caught:
        weights.to_source(
            port, {**{k: v for k, v in arrays.items() if k != name}, other: np.zeros(1), "odd": np.ones(2)}
        )
    told = str(caught.value)
    assert f"missing: {name}" in told and f"shape: {other} is [1]" in told and "unexpected: odd" in told


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (os.mkdir, (str(self.path),))


def test_no_pickle_is_run(port: porter.Port, tmp_path: Path) -> None:
    for number, legacy in enumerate((False, True)):
        file = tmp_path / f"bomb{number}.pt"
        bomb = {"state_dict": trained(), "bomb": Bomb(tmp_path / "hit")}
        torch.save(bomb, file, _use_new_zipfile_serialization=not legacy)
        with pytest.raises(WeightsError, match=r"never runs what a checkpoint pickles: save model.state_dict\(\)"):
            weights.carry(port.path, file, tmp_path / "out.safetensors")
    (tmp_path / "raw.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "hit")))
    with pytest.raises(WeightsError):
        weights.carry(port.path, tmp_path / "raw.bin", tmp_path / "out.safetensors")
    assert not (tmp_path / "hit").exists() and not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize("suffix", [".pt", ".safetensors", ".weights.h5", ".keras"])
@pytest.mark.parametrize("damage", ["empty", "noise", "cut"])
def test_a_damaged_file_is_one_clear_error(port: porter.Port, tmp_path: Path, suffix: str, damage: str) -> None:
    good, bad = tmp_path / f"good{suffix}", tmp_path / f"bad{suffix}"
    reverse = suffix in (".weights.h5", ".keras")
    if reverse:
        checkpoints.write_keras(good, {}, port.load())
    elif suffix == ".pt":
        torch.save(trained(), good)
    else:
        save_file({name: t.clone() for name, t in trained().items()}, good)
    whole = good.read_bytes()
    bad.write_bytes({"empty": b"", "noise": os.urandom(500), "cut": whole[: len(whole) // 2]}[damage])
    with pytest.raises(WeightsError) as caught:
        weights.carry(port.path, bad, tmp_path / ("out.pt" if reverse else "out.safetensors"), reverse=reverse)
    assert str(bad) in str(caught.value) and len(str(caught.value)) < 700
    assert not list(tmp_path.glob("*out*"))


def test_files_of_another_kind(port: porter.Port, tmp_path: Path) -> None:
    torch.save({"epoch": 3, "note": "no tensors"}, tmp_path / "empty.pt")
    with pytest.raises(WeightsError, match=r"holds no state_dict \(its keys: epoch, note\)"):
        weights.carry(port.path, tmp_path / "empty.pt", tmp_path / "out.safetensors")
    torch.save([torch.zeros(1)], tmp_path / "list.pt")
    with pytest.raises(WeightsError, match="holds no state_dict"):
        weights.carry(port.path, tmp_path / "list.pt", tmp_path / "out.safetensors")
    for checkpoint, out in (("a.npz", "b.safetensors"), ("empty.pt", "b.pt")):
        (tmp_path / checkpoint).touch()
        with pytest.raises(InputError):
            weights.carry(port.path, tmp_path / checkpoint, tmp_path / out)
    with pytest.raises(InputError, match="there is no such checkpoint"):
        weights.carry(port.path, tmp_path / "nothing.pt", tmp_path / "out.safetensors")
    other = catalog.find("lenet").make(small=True)
    torch.save(other.state_dict(), tmp_path / "other.pt")
    with pytest.raises(WeightsError, match=r"unexpected: fc3\.bias"):
        weights.carry(port.path, tmp_path / "other.pt", tmp_path / "out.safetensors")


def test_an_interrupted_write_leaves_what_was_there(
    port: porter.Port, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save(trained(), tmp_path / "a.pt")
    out = tmp_path / "out.safetensors"
    out.write_text("before")

    def interrupted(arrays: Any, path: Path) -> None:
        Path(path).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr("safetensors.numpy.save_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        weights.carry(port.path, tmp_path / "a.pt", out)
    assert out.read_text() == "before" and sorted(p.name for p in tmp_path.iterdir()) == ["a.pt", "out.safetensors"]


def test_the_command(port: porter.Port, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "porter", "weights", str(port.path), *arguments], capture_output=True, text=True
        )

    torch.save(trained(), tmp_path / "a.pt")
    done = run(f"{tmp_path}/a.pt", "-o", f"{tmp_path}/b.safetensors")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"weights {tmp_path}/b.safetensors ({len(port.weight_map)} tensors)\n"
    done = run(f"{tmp_path}/b.safetensors", "-o", f"{tmp_path}/c.pt", "--reverse")
    assert done.returncode == 0 and "bn.num_batches_tracked" in done.stdout, done.stderr
    torch.save({"odd": torch.zeros(1)}, tmp_path / "odd.pt")
    done = run(f"{tmp_path}/odd.pt", "-o", f"{tmp_path}/d.safetensors")
    assert done.returncode == 2 and "unexpected: odd" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.sweep
@pytest.mark.parametrize("name", [entry.name for entry in catalog.originals("torch")])
def test_every_zoo_model_goes_there_and_back(name: str, tmp_path: Path) -> None:
    entry = catalog.find(name)
    model, example = entry.make(small=True), entry.inputs(small=True)
    port = porter.port(model, example, dynamic=entry.dynamic, name=name, out=tmp_path / name)
    torch.save(model.state_dict(), tmp_path / "a.pt")
    for target in TARGETS:
        weights.carry(port.path, tmp_path / "a.pt", tmp_path / f"b{target}")
        weights.carry(port.path, tmp_path / f"b{target}", tmp_path / "c.pt", reverse=True)
        found = torch.load(tmp_path / "c.pt", weights_only=True)
        assert list(found) == list(model.state_dict())
        for key, tensor in model.state_dict().items():
            assert bits(found[key]) == bits(tensor), (target, key)
