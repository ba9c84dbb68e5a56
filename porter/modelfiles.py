"""Reads a model from a path: .pt2, .keras, .h5, .onnx, a SavedModel, a graph of TensorFlow 1 or a port directory.

Reading never runs a pickle: what a file holds beyond tensors and graphs is refused. A port directory is source code,
and is run like any other module that the user names.
"""

import importlib.util
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from porter.errors import InputError, ReferenceError_
from porter.factories import call, suggestion

_CHECKPOINTS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".npz", ".weights.h5")


def load(path: Path, reference: str, signature: str | None = None) -> tuple[Any, str]:
    """(model, framework); for .onnx the model is the path itself, which the front end reads.

    `signature` chooses one of a SavedModel, or names a graph's tensors as "input,input->output".

    Raises ReferenceError_ when nothing is there or it is of no known kind, InputError when it can't be read.
    """
    if not path.exists():
        names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise ReferenceError_(f"{reference}: there is no such file or folder{suggestion(path.name, names)}")
    if path.is_dir():
        return _folder(path, reference, signature)
    if path.name.endswith(_CHECKPOINTS):
        raise ReferenceError_(f"{reference} {_checkpoint(path)}")
    if path.suffix in (".pb", ".meta"):
        from porter.converters.frontends.tensorflow import loading

        read = loading.frozen_graph if path.suffix == ".pb" else loading.meta_graph
        return read(path, signature), "tensorflow"
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join([*_READERS, ".pb", ".meta"])
        raise ReferenceError_(f"{reference}: porter reads {known}, SavedModel and port folders, not {path.suffix!r}")
    return reader(path, reference)


def is_port(path: Path) -> bool:
    """Whether `path` is a port directory."""
    return (path / "port.json").is_file()


def manifest(path: Path) -> dict[str, Any]:
    """The manifest of the port directory `path`; raises InputError when it is damaged."""
    try:
        return json.loads((path / "port.json").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path / 'port.json'} can't be read ({error}); port the model again with --force") from error


def _folder(path: Path, reference: str, signature: str | None) -> tuple[Any, str]:
    if is_port(path):
        return _port(path, reference)
    if (path / "saved_model.pb").is_file():
        from porter.converters.frontends.tensorflow import loading

        return loading.saved_model(path, signature), "tensorflow"
    raise ReferenceError_(
        f"{reference} is a folder without port.json or saved_model.pb: porter reads port directories and SavedModels; "
        f"for code, write torch:PACKAGE.MODULE:FACTORY or keras:PACKAGE.MODULE:FACTORY"
    )


def _port(path: Path, reference: str) -> tuple[Any, str]:
    framework = "torch" if manifest(path).get("target") == "torch" else "keras"
    source = path / "model.py"
    if not source.is_file():
        raise ReferenceError_(f"{reference}: the port has no model.py; port the model again with --force")
    name = f"porter_port_{abs(hash(source.resolve()))}"
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None and spec.loader is not None, "a .py path always has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    call(lambda: spec.loader.exec_module(module), reference)
    return call(module.build, reference), framework


def _exported(path: Path, reference: str) -> tuple[Any, str]:
    import torch

    _refuse_pickled_objects(path, reference)
    with _tensors_only():
        program = _read(lambda: torch.export.load(path), path, "an exported program (torch.export.save)")
    return program, "torch"


def _keras(path: Path, reference: str) -> tuple[Any, str]:
    import keras

    read = lambda: keras.models.load_model(path, compile=False, safe_mode=True)  # noqa: E731 - one call, named below
    return _read(read, path, "a Keras model", hint="a class of your own needs keras:PACKAGE.MODULE:FACTORY"), "keras"


def _onnx(path: Path, reference: str) -> tuple[Any, str]:
    import onnx

    _read(lambda: onnx.load(path, load_external_data=False).graph.node[0], path, "an ONNX model")
    return path, "onnx"


_READERS: dict[str, Callable[[Path, str], tuple[Any, str]]] = {
    ".pt2": _exported,
    ".keras": _keras,
    ".h5": _keras,
    ".hdf5": _keras,
    ".onnx": _onnx,
}


def _read(read: Callable[[], Any], path: Path, kind: str, hint: str = "") -> Any:
    try:
        return read()
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        advice = f"; {hint}" if hint else ""
        raise InputError(f"{path} can't be read as {kind}: {type(error).__name__}: {first[0]}{advice}") from error


def _checkpoint(path: Path) -> str:
    """Why a checkpoint is no model, and what it holds as far as that can be seen without running a pickle."""
    advice = (
        "weights have no architecture: name the class instead (torch:PACKAGE.MODULE:FACTORY, whose factory loads the "
        "checkpoint), or carry the weights into an existing port with `porter weights PORT_DIR CHECKPOINT`"
    )
    if path.suffix not in (".pt", ".pth", ".bin", ".ckpt"):
        return f"is a checkpoint, not a model; {advice}"
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(name.endswith("constants.pkl") for name in archive.namelist()):
                return "is TorchScript, which porter does not read; name the class: torch:PACKAGE.MODULE:FACTORY"
    import torch

    try:
        held = torch.load(path, map_location="meta", weights_only=True)
    except Exception:
        return f"is a pickle of Python objects, which porter never runs; {advice}"
    count = len(held) if isinstance(held, dict) else 1
    return f"is a checkpoint with {count} entries, not a model; {advice}"


def _refuse_pickled_objects(path: Path, reference: str) -> None:
    if not zipfile.is_zipfile(path):
        raise InputError(f"{reference} is not a .pt2 archive; write it with torch.export.save")
    from torch.export.pt2_archive.constants import CUSTOM_OBJ_FILENAME_PREFIX, OPAQUE_OBJ_FILENAME_PREFIX

    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if any(
                part.startswith((CUSTOM_OBJ_FILENAME_PREFIX, OPAQUE_OBJ_FILENAME_PREFIX)) for part in name.split("/")
            ):
                raise InputError(f"{reference} holds a pickled Python object ({name}), which porter never runs")


@contextmanager
def _tensors_only() -> Iterator[None]:
    """torch.export.load falls back to full unpickling by itself; this switch of torch's forbids it."""
    switch = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(switch)
    os.environ[switch] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before
