"""A port: a directory with source, weights and a manifest, made in one go or not at all."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from porter import portfiles
from porter.converters.signature import as_array, leaves, ordered
from porter.errors import ExportError, InputError
from porter.version import __version__

if TYPE_CHECKING:
    from porter.converters.frontends.converted import Converted

_TARGETS = {
    "keras": "keras",
    "tensorflow": "keras",
    "tf": "keras",
    "torch": "torch",
    "pytorch": "torch",
    "onnx": "onnx",
}
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
        """Inputs as the source takes them (positional or named, nested) as the port does: flat, in its axis order."""
        arrays = self.flat(inputs)
        return tuple(
            np.transpose(a, s["permutation"]) if s["permutation"] else a
            for a, s in zip(arrays, self.manifest["inputs"], strict=True)
        )

    def to_source(self, outputs: Any) -> tuple[np.ndarray, ...]:
        """The port's outputs in the source's axis order, flat."""
        specs = self.manifest["outputs"]
        if isinstance(outputs, Mapping) and set(outputs) == {spec["name"] for spec in specs}:
            outputs = [outputs[spec["name"]] for spec in specs]  # Keras may hand them over in another order
        arrays = [as_array(leaf) for leaf in leaves(outputs)]
        if len(arrays) != len(specs):
            raise InputError(
                f"{len(arrays)} output(s) given, the port has {len(specs)}: {', '.join(s['name'] for s in specs)}"
            )
        return tuple(
            np.transpose(a, np.argsort(s["permutation"])) if s["permutation"] else a
            for a, s in zip(arrays, specs, strict=True)
        )

    def flat(self, inputs: Any) -> list[np.ndarray]:
        """Inputs as flat arrays in call order, the source's axis order.

        Raises:
            InputError: naming the input whose number, rank or dtype does not fit.
        """
        arrays = [as_array(leaf) for leaf in leaves(ordered(inputs, self.manifest["arguments"]))]
        specs = self.manifest["inputs"]
        if len(arrays) != len(specs):
            raise InputError(
                f"{len(arrays)} array(s) given, the port takes {len(specs)}: {', '.join(s['name'] for s in specs)}"
            )
        for array, spec in zip(arrays, specs, strict=True):
            if array.ndim != len(spec["shape"]):
                raise InputError(
                    f"the input {spec['name']!r} has shape {list(array.shape)}, the port takes {spec['shape']}"
                )
            wrong = [
                axis for axis, size in enumerate(spec["shape"]) if isinstance(size, int) and size != array.shape[axis]
            ]
            if wrong:
                raise InputError(
                    f"the input {spec['name']!r} has shape {list(array.shape)}, the port takes {spec['shape']}: "
                    f"axis {wrong[0]} is fixed"
                )
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
    signature: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Port:
    """Move a model to another framework as source code with its weights.

    Args:
        model: an `nn.Module`, an `ExportedProgram`, a Keras model, or a reference or path that names a model.
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
        signature: which signature of a SavedModel, or "input,input->output" of a graph that has none.
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

        loaded = references.load(str(model), target, signature)
        reference, name = reference or loaded.reference, name or loaded.name
        model, inputs = loaded.model, loaded.inputs if inputs is None else inputs
        dynamic = loaded.dynamic if dynamic == "auto" and loaded.dynamic else dynamic
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="porter-")) / (name or "port")
    if folder.exists() and not force:
        raise InputError(f"{folder} exists; force=True (--force) replaces it")

    from porter.converters.registry import rules_of

    say("trace")
    with rules_of(rules), portfiles.written_whole(folder) as staging:
        converted = _front_end(model)(model, inputs, dynamic, progress=say)
        name = name or converted.name
        sources = {key: value.const_value for key, value in converted.model.graph.initializers.items()}
        if keep_onnx or target == "onnx":
            portfiles.save_onnx(converted.model, staging / "model.onnx")
        generated = None
        if target != "onnx":
            from porter.converters.pipeline import generate

            say("write source")
            doc = _doc(converted, reference)
            native = layout == "native"
            generated = generate(converted.model, target=target, native=native, name=name, doc=doc)
            say("write weights")
            (staging / "model.py").write_text(generated.source, "utf-8")
            portfiles.save_weights(generated, sources, staging / "weights.safetensors")
            portfiles.save_extra(converted, generated, staging / "source_extra.safetensors")
        portfiles.write_manifest(staging, portfiles.make_manifest(name, reference, target, converted, generated))
    return Port(folder)


def _front_end(model: Any) -> Callable[..., Converted]:
    """`to_onnx` of the framework that the model is of."""
    if any(cls.__module__.partition(".")[0] == "keras" for cls in type(model).__mro__):
        return _of_keras
    if any(cls.__module__.partition(".")[0] == "torch" for cls in type(model).__mro__):
        from porter.converters.frontends import torch

        return torch.to_onnx
    from porter.converters.frontends import tensorflow

    return tensorflow.to_onnx


def _of_keras(model: Any, inputs: Any, dynamic: Any, *, progress: Callable[[str], None]) -> Converted:
    """Layer by layer; a model whose own code calls TensorFlow as a graph, in which known layers stay whole.

    Raises:
        ExportError: neither road can trace it; the message is that of the first.
    """
    from porter.converters.frontends import keras

    try:
        return keras.to_onnx(model, inputs, dynamic, progress=progress)
    except ExportError as error:
        from porter.converters.frontends import tensorflow

        try:
            return tensorflow.to_onnx(model, inputs, dynamic, progress=progress)
        except (ExportError, InputError):
            raise error from None


def _doc(converted: Converted, reference: str | None) -> str:
    origin = f" ({reference})" if reference else ""
    framework = {"torch": "PyTorch", "keras": "Keras", "tensorflow": "TensorFlow"}[converted.framework]
    return f"{converted.name}, ported from {framework}{origin} by porter {__version__}."
