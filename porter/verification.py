"""`porter.verify`: two models, whatever they are, as runners of one verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from porter.converters.library import is_library
from porter.converters.signature import as_array, filled, leaves
from porter.errors import InputError, UnsupportedError
from porter.ports import Port


def verify(
    source: Any, target_or_port: Any, inputs: Any = None, level: str = "forward", *, shapes: Any = None, draws: int = 3
) -> Any:
    """Judge whether a target model is the source model; see `docs/verification.md`.

    Args:
        source: the model that is right by definition: an `nn.Module`, a Keras model, or a reference or path to one.
        target_or_port: a `Port`, a port directory, a Keras model or an `nn.Module`.
        inputs: example inputs as the source takes them.
        level: "forward".
        shapes: per flat input its symbolic shape, to try sizes that were never traced; a port brings its own.
        draws: how many ordinary random inputs, beside the large, small, constant and zero ones.

    Raises:
        InputError, ReferenceError_: an argument does not fit.
        InconclusiveError: nothing could be compared.
    """
    if level != "forward":
        raise UnsupportedError(f"level={level!r} is not there yet; forward is")
    from porter.equivalence.forward import verify_forward

    source, inputs, _ = _source(source, inputs)
    pair = target_or_port
    if isinstance(pair, str | Path):
        pair = Port(pair) if (Path(pair) / "port.json").is_file() else _referenced(pair)
    examples = pair.flat(inputs) if isinstance(pair, Port) else [as_array(leaf) for leaf in leaves(inputs)]
    modules = None
    if isinstance(pair, Port):
        shapes = shapes or [spec["shape"] for spec in pair.manifest["inputs"]]
        modules = _comparable(pair.manifest["modules"])
    return verify_forward(
        _runner(source, inputs),
        _port_runner(pair) if isinstance(pair, Port) else _runner(pair, inputs),
        examples,
        _named(shapes),
        modules=modules,
        seeds=range(draws),
    )


def _source(source: Any, inputs: Any) -> tuple[Any, Any, str | None]:
    reference = None
    if isinstance(source, str | Path):
        from porter import references

        loaded = references.load(str(source))
        source, inputs, reference = loaded.model, loaded.inputs if inputs is None else inputs, loaded.reference
    if inputs is None and hasattr(source, "example_inputs"):
        from porter.converters.frontends.torch.export import program_inputs

        inputs = program_inputs(source)
    if inputs is None:
        raise InputError("no example inputs: give a tuple of positional arguments or a dict of keyword arguments")
    return source, inputs, reference


def _referenced(reference: str | Path) -> Any:
    from porter import references

    return references.load(str(reference)).model


def _is_torch(model: Any) -> bool:
    return any(cls.__module__.partition(".")[0] == "torch" for cls in type(model).__mro__)


def _is_keras(model: Any) -> bool:
    return any(cls.__module__.partition(".")[0] == "keras" for cls in type(model).__mro__)


def source_call(inputs: Any) -> Any:
    """A call that puts flat tensors back into the nesting of `inputs`."""

    def call(module: Any, tensors: Any) -> Any:
        nested = filled(inputs, iter(tensors))
        if isinstance(nested, dict):
            return module(**nested)
        return module(*nested) if isinstance(nested, tuple | list) else module(nested)

    return call


def _runner(model: Any, inputs: Any) -> Any:
    """A runner that calls a model as `inputs` are nested."""
    if hasattr(model, "example_inputs"):
        model = model.module()
    if _is_torch(model):
        from porter.runners.torch import TorchRunner

        return TorchRunner(model, call=source_call(inputs))
    if _is_keras(model):
        from porter.runners.keras import KerasRunner

        names = list(inputs) if isinstance(inputs, dict) else None
        return KerasRunner.from_model(model, input_names=names)
    raise UnsupportedError(f"a model of type {type(model).__name__}: this version verifies PyTorch and Keras models")


def _port_runner(port: Port) -> Any:
    manifest = port.manifest
    options: dict[str, Any] = {
        "name": f"port {port.path}",
        "call": lambda model, tensors: model(*tensors),
        "input_permutations": [spec["permutation"] for spec in manifest["inputs"]],
        "output_permutations": [spec["permutation"] for spec in manifest["outputs"]],
    }
    if manifest["target"] == "torch":
        from porter.runners.torch import TorchRunner

        return TorchRunner(port.load(), precise=True, **options)
    from porter.runners.keras import KerasRunner

    return KerasRunner(port.load, mode="function", **options)


def _comparable(modules: list[dict[str, Any]]) -> list[Any]:
    """The modules that have the same path on both sides; a library's own layer is placed where it is called."""
    same = [entry for entry in modules if entry["path"] and entry["path"] == entry["target"]]
    places = ("file", "line")
    return [
        {k: v for k, v in entry.items() if k not in places} if is_library(entry["class"]) else entry for entry in same
    ]


def _named(shapes: Any) -> Any:
    """Shapes whose symbolic entries are plain names; a derived size is no size of its own to choose."""
    if shapes is None:
        return None
    return [
        [size if isinstance(size, int) or str(size).isidentifier() else _fail(size) for size in shape]
        for shape in shapes
    ]


def _fail(size: Any) -> int:
    raise InputError(f"the symbolic size {size!r} is an expression; name each size of an input")
