"""Weight files of both frameworks as named arrays. Reading one never runs a pickle; writing is whole or not at all."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from porter.converters.signature import as_array
from porter.errors import InputError, WeightsError

TORCH = (".pt", ".pth", ".bin", ".ckpt")
KERAS = (".weights.h5", ".keras")
_SAFETENSORS = ".safetensors"

# Where training scripts put the state_dict in what they save.
_NESTED = ("state_dict", "model_state_dict", "model", "module", "net", "weights")


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, or of a PyTorch checkpoint that is or holds a state_dict.

    Raises:
        InputError: the suffix is of no kind that is known, or there is no such file.
        WeightsError: the file is damaged or holds no tensors.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such checkpoint")
    if path.suffix == _SAFETENSORS:
        return _attempt(lambda: _safetensors(path), f"{path} cannot be read as safetensors")
    if path.suffix in TORCH:
        return _state(_torch(path), path)
    raise InputError(f"{path}: porter reads {', '.join((_SAFETENSORS, *TORCH))} here, not {path.suffix or path.name!r}")


def read_keras(path: Path, model: Any, names: list[str]) -> dict[str, np.ndarray]:
    """The arrays that a `.weights.h5` or `.keras` file gives to the variables `names` of `model`, which is changed.

    Only the file's arrays are read; the code that a `.keras` file may name is not.

    Raises:
        WeightsError: the file is damaged or of another model.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such checkpoint")
    _attempt(lambda: model.load_weights(path), f"{path} does not fit the port's model")
    import keras

    return {name: keras.ops.convert_to_numpy(variable(model, name)) for name in names}


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], tied: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file or a PyTorch state_dict, as the suffix asks.

    `tied` maps names to the name whose tensor they share.

    Raises:
        InputError: the suffix is of no kind that is known.
        WeightsError: safetensors has no such dtype.
    """
    if path.suffix == _SAFETENSORS:
        from safetensors.numpy import save_file

        whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        advice = "; a .pt file holds every dtype"
        _attempt(lambda: _written(path, lambda file: save_file(whole, file)), f"{path} cannot be written", advice)
    elif path.suffix in TORCH:
        import torch

        tensors = {name: _tensor(array) for name, array in arrays.items() if name not in (tied or {})}
        state = {name: tensors[(tied or {}).get(name, name)] for name in arrays}
        _written(path, lambda file: torch.save(state, file))
    else:
        raise InputError(f"{path}: porter writes {', '.join((_SAFETENSORS, *TORCH))} here, not {path.suffix!r}")


def write_keras(path: Path, arrays: Mapping[str, np.ndarray], model: Any) -> None:
    """Assign every array to the variable of that name and save `model` as `.weights.h5` or `.keras`."""
    for name, array in arrays.items():
        variable(model, name).assign(array)
    _written(path, model.save if path.suffix == ".keras" else model.save_weights)


def variable(model: Any, name: str) -> Any:
    """The variable of a Keras model at an attribute path whose numbers are places in a list or chain of layers."""
    from porter.runners.keras_paths import numbered

    part = model
    for step in name.split("."):
        part = numbered(getattr(part, "layers", part))[int(step)] if step.isdigit() else getattr(part, step)
    return part


def is_keras(path: Path) -> bool:
    """Whether the name of a file says that Keras wrote or is to write it."""
    return path.name.endswith(KERAS)


def _attempt(work: Callable[[], Any], problem: str, advice: str = "") -> Any:
    try:
        return work()
    except Exception as error:
        raise WeightsError(f"{problem}: {type(error).__name__}: {_summary(error)}{advice}") from error


def _summary(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _safetensors(path: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(path)


def _torch(path: Path) -> Any:
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path) or None)
    except Exception as error:
        raise WeightsError(
            f"{path} cannot be read as tensors alone: {type(error).__name__}: {_summary(error)}; porter never runs "
            "what a checkpoint pickles: save model.state_dict()"
        ) from error


def _state(held: Any, path: Path) -> dict[str, np.ndarray]:
    """The state_dict in what a training script saved."""
    import torch

    def tensors(value: Any) -> dict[str, np.ndarray]:
        items = value.items() if isinstance(value, Mapping) else ()
        return {key: as_array(item) for key, item in items if isinstance(key, str) and isinstance(item, torch.Tensor)}

    candidates = [held, *(held[key] for key in _NESTED if key in held)] if isinstance(held, Mapping) else [held]
    for candidate in candidates:
        found = tensors(candidate)
        if found:
            return found
    keys = f" (its keys: {', '.join(map(str, list(held)[:8]))})" if isinstance(held, Mapping) else ""
    raise WeightsError(f"{path} holds no state_dict{keys}; save model.state_dict()")


def _tensor(array: np.ndarray) -> Any:
    import torch

    array = np.array(array, order="C")  # torch shares memory, and read-only memory is not its to share
    if array.dtype.kind in "fciub" and array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    bits = torch.from_numpy(array.view(np.dtype(f"u{array.dtype.itemsize}")))
    return bits.view(getattr(torch, str(array.dtype)))


def _written(path: Path, write: Callable[[Path], None]) -> None:
    """Have `write` fill a file beside `path`, which takes its place when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    suffix = next((known for known in KERAS if path.name.endswith(known)), path.suffix)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=suffix, dir=path.parent)
    os.close(handle)
    try:
        write(Path(name))
        os.chmod(name, 0o644)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
