"""Turns what a user types for a model into the model.

    torch:PACKAGE.MODULE:FACTORY    keras:PACKAGE.MODULE:FACTORY    tf:PACKAGE.MODULE:FUNCTION
    zoo:[torch/|keras/|tensorflow/]NAME[@small]
    timm:NAME[@pretrained]  torchvision:NAME[@pretrained]  transformers:CLASS[@CHECKPOINT]  keras.applications:NAME
    a path: .pt2 .keras .h5 .onnx .pb .meta, a SavedModel folder, a port directory

A factory takes no argument and returns a model, or (model, inputs) with inputs as a tuple of positional arguments or a
dict of keyword arguments.
"""

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from porter import factories, hubs, modelfiles
from porter.errors import ReferenceError_, UnsupportedError

_CODE = {"torch": "torch", "keras": "keras", "tf": "tensorflow", "tensorflow": "tensorflow"}
_SCHEMES = (*_CODE, "zoo", *hubs.HUBS)


@dataclass(frozen=True)
class Loaded:
    """A model that is ready to run, in eval mode where the framework has one.

    `inputs` are example arguments (tuple or dict) when the reference brings any; `dynamic` is
    {argument: {axis: symbol}} when it says which axes may vary.
    """

    model: Any
    inputs: dict[str, Any] | tuple[Any, ...] | None
    dynamic: dict[str, dict[int, str]] | None
    name: str
    framework: str
    reference: str


def load(reference: str, to: str | None = None, signature: str | None = None) -> Loaded:
    """Load the model that `reference` names; `to` is the target when it is to be ported, `signature` chooses one
    of a SavedModel, or names a graph's tensors as "input,input->output".

    Raises ReferenceError_ when it leads nowhere, InputError when a file can't be read, and UnsupportedError when porter
    has no front end that could port it.
    """
    scheme, colon, rest = reference.partition(":")
    if not colon or scheme not in _SCHEMES:
        loaded = _from_path(reference, signature)
    elif scheme in _CODE:
        loaded = _from_code(scheme, rest, reference)
    elif scheme == "zoo":
        loaded = _from_zoo(rest, to, reference)
    else:
        model, inputs, framework = hubs.load(scheme, rest, reference)
        loaded = Loaded(model, inputs, None, _identifier(rest.partition("@")[0]), framework, reference)
    if loaded.framework == "keras":
        _require_tensorflow_backend(reference)
    if to is not None:
        _require_front_end(loaded)
    return loaded


def _from_path(reference: str, signature: str | None) -> Loaded:
    path = Path(reference)
    if not path.exists():
        _reject_mistyped(reference)
    model, framework = modelfiles.load(path, reference, signature)
    return Loaded(model, None, None, _identifier(path.resolve().stem), framework, reference)


def _reject_mistyped(reference: str) -> None:
    scheme, colon, rest = reference.partition(":")
    if colon and scheme.replace(".", "").isidentifier():
        if all(part.isidentifier() for part in rest.split(".")) and "." in scheme:
            raise ReferenceError_(f"{reference}: say which framework it is in: torch:{reference} or keras:{reference}")
        known = ", ".join(f"{name}:" for name in _SCHEMES)
        close = factories.suggestion(scheme, list(_SCHEMES))
        raise ReferenceError_(f"{reference}: no reference starts with {scheme!r}{close} (known: {known} or a path)")
    if not colon and reference.isidentifier():
        raise ReferenceError_(f"{reference}: there is no such file or folder; a model of the zoo is zoo:{reference}")


def _from_code(scheme: str, rest: str, reference: str) -> Loaded:
    module_name, colon, path = rest.partition(":")
    parts = [*module_name.split("."), *path.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise ReferenceError_(
            f"{reference}: write {scheme}:PACKAGE.MODULE:FACTORY, for example {scheme}:models.net:make"
        )
    framework = _CODE[scheme]
    module = factories.import_project_module(module_name, reference)
    found = factories.attribute(module, path, reference)
    if _is_model(found, framework):
        made, inputs = found, None
    elif callable(found):
        made, inputs = _split(factories.call(found, reference))
    else:
        raise ReferenceError_(
            f"{reference}: {path!r} is of type {type(found).__name__}, neither a model nor a function"
        )
    if not _is_model(made, framework):
        raise ReferenceError_(f"{reference}: {_wrong_type(path, made, framework)}")
    return Loaded(_in_eval_mode(made), inputs, None, _identifier(path.split(".")[-1]), framework, reference)


def _split(returned: Any) -> tuple[Any, dict[str, Any] | tuple[Any, ...] | None]:
    """(model, inputs) out of what a factory returned: a lone array counts as the one positional argument."""
    if not (isinstance(returned, tuple) and len(returned) == 2):
        return returned, None
    model, inputs = returned
    if isinstance(inputs, dict):
        return model, inputs
    return model, tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)


def _is_model(value: Any, framework: str) -> bool:
    if isinstance(value, type):
        return False
    if framework == "torch":
        import torch

        return isinstance(value, torch.nn.Module | torch.export.ExportedProgram)
    if framework == "keras":
        import keras

        return isinstance(value, keras.Layer)
    import tensorflow as tf

    return (
        isinstance(value, tf.Module) or hasattr(value, "get_concrete_function") or hasattr(value, "structured_outputs")
    )


def _wrong_type(path: str, made: Any, framework: str) -> str:
    wanted = {
        "torch": "an nn.Module",
        "keras": "a keras.Model",
        "tensorflow": "a tf.function, ConcreteFunction or tf.Module",
    }
    other = next((name for name in wanted if name != framework and _of_loaded_framework(made, name)), None)
    hint = f"; that is a {other} model: write {other}:… instead" if other else ""
    return f"{path}() returned a {type(made).__module__}.{type(made).__name__}, not {wanted[framework]}{hint}"


def _of_loaded_framework(made: Any, framework: str) -> bool:
    return any(cls.__module__.partition(".")[0] == framework for cls in type(made).__mro__)


def _in_eval_mode(model: Any) -> Any:
    """torch starts in training mode, where Dropout would make every comparison random; Keras starts out of it."""
    evaluate = getattr(model, "eval", None)
    if callable(evaluate) and hasattr(model, "named_parameters"):
        evaluate()
    return model


def _from_zoo(name: str, to: str | None, reference: str) -> Loaded:
    from porter.zoo import catalog

    name, at, variant = name.partition("@")
    if at and variant != "small":
        raise ReferenceError_(f"{reference}: {variant!r} is no variant; the zoo has zoo:{name} and zoo:{name}@small")
    try:
        entry = catalog.find(name, to=to)
    except (ValueError, LookupError) as error:
        raise ReferenceError_(f"{reference}: {error}") from error
    small = bool(at)
    inputs = entry.inputs(small=small)
    made = factories.call(lambda: entry.make(small=small), reference)
    return Loaded(made, inputs, entry.dynamic, entry.name, entry.framework, reference)


def _require_tensorflow_backend(reference: str) -> None:
    import keras

    if keras.backend.backend() != "tensorflow":
        raise UnsupportedError(
            f"{reference}: Keras runs on {keras.backend.backend()!r} here; porter ports Keras on TensorFlow: "
            f"set KERAS_BACKEND=tensorflow"
        )


def _require_front_end(loaded: Loaded) -> None:
    home = f"porter.converters.frontends.{loaded.framework}"
    if importlib.util.find_spec(home) is None:
        raise UnsupportedError(
            f"{loaded.reference}: porter can't port {loaded.framework} graphs yet (no {home}); "
            f"give the model as torch:PACKAGE.MODULE:FACTORY or keras:PACKAGE.MODULE:FACTORY"
        )


def _identifier(text: str) -> str:
    """`text` as a name for a folder and a module."""
    name = re.sub(r"\W+", "_", text).strip("_").lower()
    return f"model_{name}" if not name or name[0].isdigit() else name
