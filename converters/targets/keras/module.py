"""The text around the classes of a Keras port: imports, helpers, `build`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from porter.converters.codegen.printer import literal
from porter.converters.targets.keras.fresh import initializer

_FIND = '''
def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
'''

_LOAD = '''
def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)
'''

_LOAD_SOME = '''
def load_weights(model, path, names=None):
    """Assign the arrays of a safetensors file (those in `names`) to the variables whose attribute paths are their names."""
    for name, array in load_file(path).items():
        if names is None or name in names:
            find(model, name).assign(array)
'''

_FREEZE = """
    for path in FROZEN:
        for part in keras.tree.flatten(find(model, path)):
            for variable in getattr(part, "trainable_variables", [part]):
                variable.trainable = False"""


@dataclass(frozen=True)
class InputSpec:
    """An input of the generated model in the target's own axis order; sizes that vary are None."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str


@dataclass(frozen=True)
class Fixed:
    """Variables by attribute path: `frozen` ones (or whole layers) get no gradient, `buffers` are not drawn afresh."""

    frozen: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()


def keras_input(spec: InputSpec) -> str:
    """`keras.Input(…)` for an input."""
    batched = len(spec.shape) > 0 and spec.shape[0] is None
    shape = f"{literal(spec.shape[1:])}" if batched else f"batch_shape={literal(spec.shape)}"
    dtype = "" if spec.dtype.startswith("float") else f", dtype={literal(spec.dtype)}"
    return f"keras.Input({shape}{dtype}, name={literal(spec.name)})"


def module_text(
    *,
    doc: str,
    classes: Sequence[str],
    helpers: Sequence[str],
    root: str,
    inputs: Sequence[InputSpec],
    fixed: Fixed = Fixed(),
) -> str:
    """The whole module, not yet formatted."""
    # Keras rebuilds a saved model from shapes alone, as if it took float inputs, and trains all of it.
    rebuilt = bool(fixed.frozen) or len(inputs) > 1 or not inputs[0].dtype.startswith("float")
    if rebuilt:
        method = "    def build_from_config(self, config):\n        create_variables(self)"
        classes = [*classes[:-1], f"{classes[-1].rstrip()}\n\n{method}"]
    body = "\n\n\n".join([*_constants(fixed), *helpers, *classes])
    drawn = initializer(body)
    functions = [
        _build(root, inputs, rebuilt=rebuilt, drawn=bool(drawn), buffers=bool(fixed.buffers)),
        *([_create(inputs, fixed)] if rebuilt else []),
        *([drawn] if drawn else []),
        _LOAD_SOME if fixed.buffers else _LOAD,
        _FIND,
    ]
    text = "\n\n\n".join([body, *(function.strip() for function in functions)]) + "\n"
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


def _constants(fixed: Fixed) -> list[str]:
    lines = []
    if fixed.frozen:
        lines.append(f"# Not trained by the source (requires_grad=False).\nFROZEN = {literal(fixed.frozen)}")
    if fixed.buffers:
        lines.append(f"# Neither trained nor drawn afresh.\nBUFFERS = {literal(fixed.buffers)}")
    return lines


def _build(root: str, inputs: Sequence[InputSpec], *, rebuilt: bool, drawn: bool, buffers: bool) -> str:
    create = "create_variables(model)" if rebuilt else f"model({_arguments(inputs)})"
    afresh = [
        *(["        initialize(model)"] if drawn else []),
        *(["        load_weights(model, path, BUFFERS)"] if buffers else []),
    ]
    lines = [
        "def build(weights=True):",
        '    """The model with the weights that lie beside this file, or with fresh ones."""',
        f"    model = {root}()",
        f"    {create}",
        '    path = Path(__file__).with_name("weights.safetensors")',
        "    if weights:",
        "        load_weights(model, path)",
        *(["    else:", *afresh] if afresh else []),
        "    return model",
    ]
    return "\n".join(lines)


def _create(inputs: Sequence[InputSpec], fixed: Fixed) -> str:
    says = "Call the model once on symbolic inputs, whose sizes may vary where they are None"
    says += "; freeze what the source does not train." if fixed.frozen else "."
    lines = ["def create_variables(model):", f'    """{says}"""', f"    model({_arguments(inputs)})"]
    return "\n".join(lines) + (_FREEZE if fixed.frozen else "")


def _arguments(inputs: Sequence[InputSpec]) -> str:
    return ", ".join(keras_input(spec) for spec in inputs)
