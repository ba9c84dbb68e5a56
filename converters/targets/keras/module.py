"""The text around the classes of a Keras port: imports, helpers, `build`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from porter.converters.codegen.printer import literal

_LOAD = '''
def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        *owners, variable = name.split(".")
        layer = model
        for owner in owners:
            layer = getattr(layer, "layers", layer)[int(owner)] if owner.isdigit() else getattr(layer, owner)
        getattr(layer, variable).assign(array)
'''


@dataclass(frozen=True)
class InputSpec:
    """An input of the generated model in the target's own axis order; sizes that vary are None."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str


def keras_input(spec: InputSpec) -> str:
    """`keras.Input(…)` for an input."""
    batched = len(spec.shape) > 0 and spec.shape[0] is None
    shape = f"{literal(spec.shape[1:])}" if batched else f"batch_shape={literal(spec.shape)}"
    dtype = "" if spec.dtype.startswith("float") else f", dtype={literal(spec.dtype)}"
    return f"keras.Input({shape}{dtype}, name={literal(spec.name)})"


def module_text(*, doc: str, classes: Sequence[str], helpers: Sequence[str], root: str, inputs: Sequence[InputSpec]) -> str:
    """The whole module, not yet formatted."""
    body = "\n\n\n".join([*helpers, *classes])
    build = _build(root, inputs)
    text = f"{body}\n\n\n{build}\n\n{_LOAD}"
    imports = ["from pathlib import Path", ""]
    plain = ["import keras"]
    if re.search(r"\btf\.", text):
        plain.append("import tensorflow as tf")
    if re.search(r"\bmath\.", text):
        imports.insert(0, "import math")
    used = [name for name in ("layers", "ops") if re.search(rf"\b{name}\.", text)]
    if used:
        plain.insert(1, f"from keras import {', '.join(used)}")
    plain.append("from safetensors.numpy import load_file")
    ordered = [line for line in plain if line.startswith("import")] + [line for line in plain if line.startswith("from")]
    head = "\n".join([*imports, *ordered])
    return f'"""{doc}"""\n\n{head}\n\n\n{text}'


def _build(root: str, inputs: Sequence[InputSpec]) -> str:
    arguments = ", ".join(keras_input(spec) for spec in inputs)
    return f'''def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = {root}()
    model({arguments})
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    return model'''
