"""A new checkpoint through the weight map of a port, in either direction, without porting again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from porter import checkpoints
from porter.converters.signature import as_array
from porter.converters.weights import WeightExpr, from_json
from porter.errors import InputError, WeightsError
from porter.portfiles import real
from porter.ports import Port

_PREFIXES = ("module.", "_orig_mod.")


@dataclass(frozen=True)
class Carried:
    """What was carried, and which tensors of the source keep the values of the time of porting."""

    out: Path
    tensors: int
    kept: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """For people."""
        said = [f"weights {self.out} ({self.tensors} tensors)"]
        if self.kept:
            names = ", ".join(self.kept[:4]) + (", …" if len(self.kept) > 4 else "")
            said.append(
                f"kept    {len(self.kept)} that the port has no place for, as they were when it was made: {names}"
            )
        return said


def carry(port_dir: str | Path, checkpoint: str | Path, out: str | Path, *, reverse: bool = False) -> Carried:
    """Carry a checkpoint of the source to the target, or with `reverse` of the target to the source.

    Forward it reads `.pt`, `.pth`, `.bin`, `.ckpt` or `.safetensors` and writes `.safetensors` in the port's names,
    `.weights.h5` or `.keras`; in reverse it is the other way round. Numbers and their dtype stay as they are, but
    a Keras file holds its variables' own dtype. `out` is replaced if it exists.

    Raises:
        WeightsError: the checkpoint is damaged, or does not fit; the message names every tensor that does not.
        InputError: a file's suffix is not known, or a path leads nowhere.
    """
    port, checkpoint, out = Port(port_dir), Path(checkpoint), Path(out)
    if reverse:
        _suffix(out, ".safetensors", *checkpoints.TORCH)
        if checkpoints.is_keras(checkpoint):
            arrays = checkpoints.read_keras(checkpoint, port.module().build(weights=False), list(port.weight_map))
        else:
            _suffix(checkpoint, ".safetensors", *checkpoints.KERAS)
            arrays = checkpoints.read_arrays(checkpoint)
        state = to_source(port, arrays)
        checkpoints.write_arrays(out, state, port.manifest["tied"])
        return Carried(out, len(state), tuple(_extra(port)))
    _suffix(out, ".safetensors", *checkpoints.KERAS)
    arrays = to_target(port, checkpoints.read_arrays(checkpoint))
    if checkpoints.is_keras(out):
        checkpoints.write_keras(out, arrays, port.module().build(weights=False))
    else:
        checkpoints.write_arrays(out, arrays)
    return Carried(out, len(arrays))


def to_target(port: Port, state_dict: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The port's arrays from a state_dict of its source, of tensors or arrays.

    Of a tensor with several names any one is enough; tensors that the port has no variable for may be absent.

    Raises:
        WeightsError: naming every tensor that is missing, unexpected or of another shape.
    """
    state, tied, map_ = _state(port), port.manifest["tied"], _expressions(port)
    state_dict = _unprefixed(state_dict, state)
    given: dict[str, np.ndarray] = {}
    problems = [f"unexpected: {name}" for name in state_dict if name not in state]
    for name in [name for name in state if name in state_dict]:
        array, shape = as_array(state_dict[name]), tuple(state[name]["shape"])
        owner = tied.get(name, name)
        if array.shape != shape:
            problems.append(f"shape: {name} is {list(array.shape)}, the port needs {list(shape)}")
        elif owner in given and not _same(given[owner], real(array)):
            problems.append(f"differs: {name} is one tensor with {owner} in the port, but not in the checkpoint")
        else:
            given[owner] = real(array)
    known = {*state, *tied.values()}
    needed = {name for expr in map_.values() for name in expr.sources() if name in known}
    present = {tied.get(name, name) for name in state_dict}
    problems += [f"missing: {name}" for name in sorted(needed - present)]
    if problems:
        raise WeightsError(_report("the checkpoint does not fit the port", problems))
    # Constants of the model are no part of a checkpoint: those of the port are right.
    own = {key for key, expr in map_.items() if not expr.sources().keys() <= given.keys()}
    constants = checkpoints.read_arrays(port.path / "weights.safetensors") if own else {}
    return {
        key: constants[key] if key in own else np.asarray(expr.evaluate(given), order="C") for key, expr in map_.items()
    }


def to_source(port: Port, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The source's state_dict from the port's arrays, with all its names; see `Carried.kept` for what is not in them.

    Raises:
        WeightsError: naming every tensor that is missing, unexpected or of another shape, or that stands for the same
            tensor of the source as another one and holds other values.
    """
    state, tied, map_ = _state(port), port.manifest["tied"], _expressions(port)
    held = {name: as_array(array) for name, array in arrays.items()}
    problems = [f"unexpected: {name}" for name in held if name not in map_]
    problems += [f"missing: {name}" for name in map_ if name not in held]
    for name, expr in map_.items():
        if name in held and held[name].shape != expr.shape:
            problems.append(f"shape: {name} is {list(held[name].shape)}, the port needs {list(expr.shape)}")
    if problems:
        raise WeightsError(_report("the weights do not fit the port", problems))
    found = _extra(port)
    for name, expr in map_.items():
        for part in expr.sources().keys() & found.keys():
            found[part] = np.array(found[part], held[name].dtype)
        expr.restore(held[name], found)
    torn = [name for name, expr in map_.items() if not _same(expr.evaluate(found), held[name])]
    if torn:
        problems = [f"differs: {name}, from {', '.join(map_[name].sources())}" for name in torn]
        raise WeightsError(_report("several tensors stand for one of the source and hold different values", problems))
    lost = [name for name in state if tied.get(name, name) not in found]
    if lost:
        raise WeightsError(_report(f"{port.path} lacks tensors of its source; port the model again", lost))
    return {name: _as_declared(found[tied.get(name, name)], facts["dtype"]) for name, facts in state.items()}


def _state(port: Port) -> dict[str, dict[str, Any]]:
    if "state" not in port.manifest or "weight_map" not in port.manifest:
        raise WeightsError(f"{port.path}: its port.json does not list the source's tensors; port the model again")
    return port.manifest["state"]


def _unprefixed(state_dict: Mapping[str, Any], state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without what DataParallel and torch.compile put before every name."""
    for prefix in _PREFIXES:
        if state_dict and not state_dict.keys() & state.keys() and all(name.startswith(prefix) for name in state_dict):
            return _unprefixed({name.removeprefix(prefix): item for name, item in state_dict.items()}, state)
    return state_dict


def _expressions(port: Port) -> dict[str, WeightExpr]:
    return {name: from_json(entry["expression"]) for name, entry in port.weight_map.items()}


def _extra(port: Port) -> dict[str, np.ndarray]:
    path = port.path / "source_extra.safetensors"
    return checkpoints.read_arrays(path) if path.is_file() else {}


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays hold the same values; NaN equals NaN."""
    return a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _as_declared(array: np.ndarray, dtype: str) -> np.ndarray:
    """Pairs of real numbers become complex again where the source has complex ones."""
    if not dtype.startswith("complex"):
        return array
    return np.asarray(array, order="C").view(np.dtype(f"c{2 * array.dtype.itemsize}"))[..., 0]


def _suffix(path: Path, *allowed: str) -> None:
    if not path.name.endswith(allowed):
        raise InputError(f"{path}: expected a name that ends in {', '.join(allowed)}")


def _report(what: str, problems: list[str]) -> str:
    return "\n".join([f"{what}: {len(problems)} tensor(s)", *(f"  {problem}" for problem in problems)])
