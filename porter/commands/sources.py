"""From the arguments of a verb to what the Python API takes: models, their inputs, and the sides of a pair."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from porter import inputspec, modelfiles, references
from porter.errors import InputError
from porter.references import Loaded


def load(
    reference: str,
    input_specs: list[str],
    inputs_file: Path | None,
    *,
    to: str | None = None,
    signature: str | None = None,
) -> Loaded:
    """The model with the inputs of the command line, which win over those that its reference brings."""
    example = _example(input_specs, inputs_file)
    loaded = references.load(reference, to, signature)
    if example is None:
        return loaded
    return replace(loaded, inputs=example.inputs, dynamic=example.dynamic)


def load_pair(a: str, b: str | None, input_specs: list[str], inputs_file: Path | None) -> tuple[Loaded, Any]:
    """(source, target): the target is a port's path or a model.

    With one argument it is a port directory, whose manifest says what it was ported from.
    """
    if b is None:
        a, b = ported_from(Path(a)), a
    source = load(a, input_specs, inputs_file)
    target = Path(b) if modelfiles.is_port(Path(b)) else references.load(b).model
    return source, target


def ported_from(port: Path) -> str:
    """The reference that the port was made from; raises InputError when it does not say one."""
    if not modelfiles.is_port(port):
        raise InputError(f"{port} is not a port directory: name both models, as in `porter verify SOURCE {port}`")
    reference = modelfiles.manifest(port).get("source", {}).get("reference")
    if not reference:
        raise InputError(f"{port}: its manifest names no source; give it, as in `porter verify SOURCE {port}`")
    return reference


def _example(input_specs: list[str], inputs_file: Path | None) -> inputspec.Example | None:
    if input_specs and inputs_file is not None:
        raise InputError("give --input or --inputs, not both")
    if inputs_file is not None:
        return inputspec.from_npz(inputs_file)
    return inputspec.examples(input_specs) if input_specs else None
