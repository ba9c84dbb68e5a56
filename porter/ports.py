"""A port: a directory with source, weights and a manifest, made in one go or not at all."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from porter.errors import InputError
from porter.signature import as_array, leaves, ordered
from porter.version import __version__

if TYPE_CHECKING:
    from porter.converters.frontends.torch import Converted
    from porter.converters.pipeline import Generated, ValueSpec

_TARGETS = {"keras": "keras", "tensorflow": "keras", "tf": "keras", "torch": "torch", "pytorch": "torch", "onnx": "onnx"}
_FORMAT = 1
_loaded = itertools.count()


class Port:
    """A port directory.

    Attributes:
        path: the directory.
        manifest: what `port.json` holds.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.manifest: dict[str, Any] = json.loads((self.path / "port.json").read_text("utf-8"))
        except FileNotFoundError as error:
            raise InputError(f"{self.path} is no port directory: it has no port.json") from error
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path / 'port.json'} cannot be read: {error}; port the model again") from error

    @property
    def source(self) -> str:
        """The text of `model.py`."""
        return (self.path / "model.py").read_text("utf-8")

    @property
    def weight_map(self) -> dict[str, Any]:
        """{target tensor: how it is made of source tensors}."""
        return self.manifest["weight_map"]

    def module(self) -> Any:
        """A fresh import of `model.py`."""
        name = f"porter_port_{next(_loaded)}_{self.path.name}"
        spec = importlib.util.spec_from_file_location(name, self.path / "model.py")
        if spec is None or spec.loader is None:
            raise InputError(f"{self.path / 'model.py'} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except FileNotFoundError as error:
            raise InputError(f"{self.path} has no model.py; port the model again") from error
        return module

    def load(self) -> Any:
        """The target model with its weights, in eval mode."""
        return self.module().build()

    def to_target(self, inputs: Any) -> tuple[np.ndarray, ...]:
        """Inputs as the source takes them (positional or by name, nested) as the port takes them: flat, its own axis order."""
        arrays = self.flat(inputs)
        return tuple(np.transpose(a, s["permutation"]) if s["permutation"] else a for a, s in zip(arrays, self.manifest["inputs"], strict=True))

    def to_source(self, outputs: Any) -> tuple[np.ndarray, ...]:
        """The port's outputs in the source's axis order, flat."""
        arrays = [as_array(leaf) for leaf in leaves(outputs)]
        specs = self.manifest["outputs"]
        if len(arrays) != len(specs):
            raise InputError(f"{len(arrays)} output(s) given, the port has {len(specs)}: {', '.join(s['name'] for s in specs)}")
        return tuple(np.transpose(a, np.argsort(s["permutation"])) if s["permutation"] else a for a, s in zip(arrays, specs, strict=True))

    def flat(self, inputs: Any) -> list[np.ndarray]:
        """Inputs as flat arrays in call order, the source's axis order.

        Raises:
            InputError: naming the input whose number, rank or dtype does not fit.
        """
        arrays = [as_array(leaf) for leaf in leaves(ordered(inputs, self.manifest["arguments"]))]
        specs = self.manifest["inputs"]
        if len(arrays) != len(specs):
            raise InputError(f"{len(arrays)} array(s) given, the port takes {len(specs)}: {', '.join(s['name'] for s in specs)}")
        for array, spec in zip(arrays, specs, strict=True):
            if array.ndim != len(spec["shape"]):
                raise InputError(f"the input {spec['name']!r} has shape {list(array.shape)}, the port takes {spec['shape']}")
            wrong = [axis for axis, size in enumerate(spec["shape"]) if isinstance(size, int) and size != array.shape[axis]]
            if wrong:
                raise InputError(f"the input {spec['name']!r} has shape {list(array.shape)}, the port takes {spec['shape']}: axis {wrong[0]} is fixed")
            if (array.dtype.kind == "f") != spec["dtype"].startswith(("float", "bfloat")):
                raise InputError(f"the input {spec['name']!r} is {array.dtype}, the port takes {spec['dtype']}")
        return arrays


def port(
    model: Any,
    inputs: Any = None,
    to: str = "keras",
    out: str | Path | None = None,
    dynamic: str | Mapping[str, Mapping[int, str]] = "auto",
    layout: str = "native",
    *,
    name: str | None = None,
    reference: str | None = None,
    rules: Sequence[str | Path] = (),
    keep_onnx: bool = False,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Port:
    """Move a model to another framework as source code with its weights.

    Args:
        model: an `nn.Module`, an `ExportedProgram`, or a reference or path that names a model.
        inputs: example inputs: a tuple of positional arguments or a dict of keyword arguments, of arrays or tensors.
        to: "keras" (also "tensorflow", "tf"), "torch" or "onnx".
        out: the port directory; a temporary one when left out.
        dynamic: "auto" (every size that can vary does), "none", or {input: {axis: name}}.
        layout: "native" (channels last in Keras) or "source" (inputs and outputs keep the source's axis order).
        name: the port's name; the model's class when left out.
        reference: what the manifest says that it was ported from.
        rules: Python files with rules of your own.
        keep_onnx: also write the structured ONNX.
        force: replace `out` if it exists.
        progress: called with the name of each stage.

    Raises:
        InputError: an argument does not fit.
        ExportError: the model cannot be traced, or its graph is not equal to it.
        UnsupportedError: operators without a rule, all of them named.
    """
    say = progress or (lambda stage: None)
    target = _TARGETS.get(to)
    if target is None:
        raise InputError(f"to={to!r}: porter ports to keras, torch or onnx")
    if layout not in ("native", "source"):
        raise InputError(f'layout={layout!r}: it is "native" or "source"')
    if isinstance(model, str | Path):
        from porter import references

        loaded = references.load(str(model), target)
        reference = reference or loaded.reference
        name = name or loaded.name
        model, inputs = loaded.model, loaded.inputs if inputs is None else inputs
        dynamic = loaded.dynamic if dynamic == "auto" and loaded.dynamic else dynamic
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="porter-")) / (name or "port")
    if folder.exists() and not force:
        raise InputError(f"{folder} exists; force=True (--force) replaces it")

    from porter.converters.frontends.torch import to_onnx

    say("trace")
    converted = to_onnx(model, inputs, dynamic, progress=say)
    name = name or converted.name
    with _written_whole(folder) as staging:
        sources = {key: value.const_value for key, value in converted.model.graph.initializers.items()}
        if keep_onnx or target == "onnx":
            _save_onnx(converted.model, staging / "model.onnx")
        if target == "onnx":
            _write_manifest(staging, _manifest(name, reference, target, converted, None))
            return Port(folder)
        from porter.converters.pipeline import generate

        say("write source")
        generated = generate(converted.model, target=target, native=layout == "native", name=name, rules=rules, doc=_doc(converted.name, reference))
        say("write weights")
        (staging / "model.py").write_text(generated.source, "utf-8")
        _save_weights(generated, sources, staging / "weights.safetensors")
        _save_extra(converted, generated, staging / "source_extra.safetensors")
        _write_manifest(staging, _manifest(name, reference, target, converted, generated))
    return Port(folder)


def _doc(name: str, reference: str | None) -> str:
    origin = f" ({reference})" if reference else ""
    return f"{name}, ported from PyTorch{origin} by porter {__version__}."


class _written_whole:  # noqa: N801 - reads as a function
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


def _save_onnx(model: Any, path: Path) -> None:
    import onnx_ir as ir

    large = sum(value.const_value.nbytes for value in model.graph.initializers.values()) > 1 << 30
    ir.save(model, path, external_data="model.onnx.data" if large else None)


def _save_weights(generated: Generated, sources: Mapping[str, Any], path: Path) -> None:
    """Arrays one by one from the source's own memory, so that no weight is held twice longer than it must be."""
    from safetensors.numpy import save_file

    arrays = {}
    for key, weight in generated.variables.items():
        needed = {name: sources[name].numpy() if weight.constant is None else weight.constant for name in weight.expr.sources()}
        arrays[key] = np.asarray(weight.expr.evaluate(needed), order="C")
    save_file(arrays, path)


def _save_extra(converted: Converted, generated: Generated, path: Path) -> None:
    """What the target has no variable for (batch counters, unused parameters), so that the way back is complete."""
    from safetensors.numpy import save_file

    held: dict[str, np.ndarray] = {}
    for weight in generated.variables.values():
        if weight.kind != "constant":
            weight.expr.restore(np.ones(weight.expr.shape, bool), held)
    complete = {name for name, cells in held.items() if cells.all()}
    extra = [name for name in converted.state if converted.tied.get(name, name) not in complete and name not in converted.tied]
    if extra:
        save_file({name: np.asarray(real(as_array(converted.state[name])), order="C") for name in extra}, path)


def real(array: np.ndarray) -> np.ndarray:
    """A complex array as one of real numbers with a last axis (real, imaginary): the form that ports hold."""
    if array.dtype.kind != "c":
        return array
    return np.ascontiguousarray(array)[..., None].view(array.real.dtype).reshape(*array.shape, 2)


def _spec(spec: ValueSpec) -> dict[str, Any]:
    moved = tuple(spec.permutation) != tuple(range(len(spec.permutation)))
    return {"name": spec.name, "dtype": spec.dtype, "shape": list(spec.shape), "permutation": list(spec.permutation) if moved else None}


def _manifest(name: str, reference: str | None, target: str, converted: Converted, generated: Generated | None) -> dict[str, Any]:
    manifest: dict[str, Any] = {
        "porter": __version__,
        "format": _FORMAT,
        "name": name,
        "source": {"framework": "torch", "class": converted.name, "reference": reference, "versions": converted.versions},
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
        "state": {name: {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")} for name, tensor in converted.state.items()},
        "modules": [
            {"path": path, "target": generated.modules[path], "class": facts["class"], "file": facts["file"], "line": facts["line"]}
            for path, facts in converted.modules.items()
            if path in generated.modules
        ],
    }
    return manifest


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    manifest["hashes"] = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}
    (folder / "port.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


