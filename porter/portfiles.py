"""What a port directory holds, written in one go or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from porter.converters.signature import as_array
from porter.version import __version__

if TYPE_CHECKING:
    from porter.converters.frontends.converted import Converted
    from porter.converters.pipeline import Generated, ValueSpec

_FORMAT = 1


class written_whole:
    """A staging folder beside `folder` that takes its place when everything in it is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Path:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.staging = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}-", dir=self.folder.parent))
        return self.staging

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            shutil.rmtree(self.staging, ignore_errors=True)
            return
        os.chmod(self.staging, 0o755)
        if self.folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}-old-", dir=self.folder.parent))
            os.replace(self.folder, old / "port")
            os.replace(self.staging, self.folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(self.staging, self.folder)


def save_onnx(model: Any, path: Path) -> None:
    import onnx_ir as ir

    large = sum(value.const_value.nbytes for value in model.graph.initializers.values()) > 1 << 30
    ir.save(model, path, external_data="model.onnx.data" if large else None)


def save_weights(generated: Generated, sources: Mapping[str, Any], path: Path) -> None:
    """Arrays one by one from the source's own memory, so that no weight is held twice longer than it must be."""
    from safetensors.numpy import save_file

    arrays = {}
    for key, weight in generated.variables.items():
        needed = {
            name: weight.constants[name] if name in weight.constants else sources[name].numpy()
            for name in weight.expr.sources()
        }
        arrays[key] = np.asarray(weight.expr.evaluate(needed), order="C")
    save_file(arrays, path)


def save_extra(converted: Converted, generated: Generated, path: Path) -> None:
    """What the target has no variable for (batch counters, unused parameters), so that the way back is complete."""
    from safetensors.numpy import save_file

    held: dict[str, np.ndarray] = {}
    for weight in generated.variables.values():
        if weight.kind != "constant":
            weight.expr.restore(np.ones(weight.expr.shape, bool), held)
    complete = {name for name, cells in held.items() if cells.all()}
    extra = [
        name
        for name in converted.state
        if converted.tied.get(name, name) not in complete and name not in converted.tied
    ]
    if extra:
        save_file({name: np.asarray(real(as_array(converted.state[name])), order="C") for name in extra}, path)


def real(array: np.ndarray) -> np.ndarray:
    """A complex array as one of real numbers with a last axis (real, imaginary): the form that ports hold."""
    if array.dtype.kind != "c":
        return array
    return np.ascontiguousarray(array)[..., None].view(array.real.dtype).reshape(*array.shape, 2)


def _spec(spec: ValueSpec) -> dict[str, Any]:
    moved = tuple(spec.permutation) != tuple(range(len(spec.permutation)))
    return {
        "name": spec.name,
        "dtype": spec.dtype,
        "shape": list(spec.shape),
        "permutation": list(spec.permutation) if moved else None,
    }


def make_manifest(
    name: str, reference: str | None, target: str, converted: Converted, generated: Generated | None
) -> dict[str, Any]:
    """What `port.json` says; `docs/weights.md` and `docs/architecture.md` describe its entries."""
    manifest: dict[str, Any] = {
        "porter": __version__,
        "format": _FORMAT,
        "name": name,
        "source": {
            "framework": converted.framework,
            "class": converted.name,
            "reference": reference,
            "versions": converted.versions,
        },
        "target": target,
        "arguments": converted.arguments,
        "seed": 0,
    }
    if generated is None:
        return manifest
    manifest |= {
        "class": generated.root,
        "classes": generated.classes,
        "inputs": [_spec(spec) for spec in generated.inputs],
        "outputs": [_spec(spec) for spec in generated.outputs],
        "weight_map": generated.weight_map(),
        "unused": sorted(set(converted.state) - {s for w in generated.variables.values() for s in w.expr.sources()}),
        "tied": converted.tied,
        "state": {
            name: {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
            for name, tensor in converted.state.items()
        },
        "modules": [
            {
                "path": path,
                "target": generated.modules[path],
                "class": facts["class"],
                "file": facts["file"],
                "line": facts["line"],
            }
            for path, facts in converted.modules.items()
            if path in generated.modules
        ],
    }
    return manifest


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """`port.json`, with the hashes of the files that stand beside it."""
    manifest["hashes"] = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}
    (folder / "port.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
