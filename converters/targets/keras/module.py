"""The text around the classes of a Keras port: imports, helpers, `build`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from porter.converters.codegen.module import Input, Module, docstring
from porter.converters.codegen.nodes import Apply, Expr, Ref, walk
from porter.converters.codegen.printer import literal
from porter.converters.targets.keras.fresh import classes_of, fresh

_FIND_NUMBERED = '''
def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a list or chain, paddings left out."""
    for step in path.split("."):
        if step.isdigit():
            parts = getattr(model, "layers", model)
            numbered = [part for part in parts if not isinstance(part, {added})]
            model = numbered[int(step)]
        else:
            model = getattr(model, step)
    return model
'''

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

_LOAD_FIXED = '''
def load_weights(model, path, trained=True):
    """Assign arrays to the variables whose attribute paths are their names: all, or only what is never trained."""
    for name, array in load_file(path).items():
        variable = find(model, name)
        if trained or not (variable.trainable or name.endswith(("moving_mean", "moving_variance"))):
            variable.assign(array)
'''

_REBUILD = """
    def build_from_config(self, config):
        {create}"""

_EXPORT = """
    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)"""

_FREEZE = """
    for path in FROZEN:
        for part in keras.tree.flatten(find(model, path)):
            for variable in getattr(part, "trainable_variables", [part]):
                variable.trainable = False"""


@dataclass(frozen=True)
class InputSpec:
    """An input of the generated model in the target's own axis order; sizes that vary are None.

    `counted` says that it must hold whole numbers even where only shapes are worked out: it is more than looked up in
    an Embedding, which takes floats for them.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    counted: bool = False


@dataclass(frozen=True)
class Fixed:
    """What is not trained: `frozen` variables of layers (or whole layers) by attribute path, and whether `any` is."""

    frozen: tuple[str, ...] = ()
    any: bool = False


def keras_input(spec: InputSpec) -> str:
    """`keras.Input(…)` for an input."""
    batched = len(spec.shape) > 0 and spec.shape[0] is None
    shape = f"{literal(spec.shape[1:])}" if batched else f"batch_shape={literal(spec.shape)}"
    dtype = "" if spec.dtype.startswith("float") else f", dtype={literal(spec.dtype)}"
    return f"keras.Input({shape}{dtype}, name={literal(spec.name)})"


def input_texts(inputs: Sequence[Input]) -> list[str]:
    """`keras.Input(…)` for each input."""
    return [keras_input(_taken(given)) for given in inputs]


def _taken(given: Input) -> InputSpec:
    counted = not given.dtype.startswith("float") and not _only_looked_up(given)
    return InputSpec(given.name, given.shape, given.dtype, counted)


def _only_looked_up(given: Input) -> bool:
    """Whether only Embedding layers read an input."""
    parts = [part for statement in given.readers for part in walk(statement.expr)]
    looked_up = [part.args[0] for part in parts if isinstance(part, Apply) and part.layer.cls == "Embedding"]
    return sum(_is(part, given) for part in looked_up) == sum(_is(part, given) for part in parts)


def _is(expr: Expr, given: Input) -> bool:
    return isinstance(expr, Ref) and expr.value is given.value


def module_text(
    module: Module, frozen: tuple[str, ...], statistics: Collection[str], qualified: Callable[[str], str]
) -> str:
    """The whole module, not yet formatted; `frozen` are the attribute paths of what the source froze."""
    inputs = [_taken(given) for given in module.inputs]
    fixed = Fixed(frozen, any(not v.weight.trainable and v.slot not in statistics for v in module.variables))
    classes = module.classes
    # Of a model's own class Keras knows shapes alone: it rebuilds and exports it as if it took floats.
    several = not module.chain and (len(inputs) > 1 or not inputs[0].dtype.startswith("float"))
    create = _creation(inputs, fixed, several=several)
    rebuilt = not module.chain and (bool(fixed.frozen) or any(spec.counted for spec in inputs))
    methods = [
        *([_REBUILD.format(create=create.format(model="self"))] if rebuilt else []),
        *([_EXPORT] if several else []),
    ]
    if methods:
        classes = [*classes[:-1], "\n".join([classes[-1].rstrip(), *methods])]
    listed = [f"# Not trained by the source (requires_grad=False).\nFROZEN = {literal(fixed.frozen)}"]
    body = "\n\n\n".join([*(listed if fixed.frozen else []), *module.helpers, *classes])
    made = module.chain or (f"model = {module.root}()", create.format(model="model"))
    drawn = fresh("\n".join([body, *made]), module, qualified)
    functions = [
        _build(made, drawn=drawn.statements, fixed=fixed.any),
        *([_create(inputs, several=several)] if fixed.frozen else []),
        *([_inputs(inputs)] if several else []),
        *drawn.functions,
        _LOAD_FIXED if fixed.any else _LOAD,
        _FIND_NUMBERED.format(added=classes_of(tuple(module.added))) if module.added else _FIND,
    ]
    text = "\n\n\n".join([*([body] if body else []), *(function.strip() for function in functions)]) + "\n"
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
    ordered = [line for line in plain if line.startswith("import")] + [
        line for line in plain if line.startswith("from")
    ]
    head = "\n".join([*imports, *ordered])
    return f"{docstring(module.doc)}\n\n{head}\n\n\n{text}"


def _creation(inputs: Sequence[InputSpec], fixed: Fixed, *, several: bool) -> str:
    """The statement that makes the variables of `{model}`."""
    if fixed.frozen:
        return "create_variables({model})"
    return f"{{model}}({_given(inputs, several=several)})"


def _given(inputs: Sequence[InputSpec], *, several: bool) -> str:
    """All inputs as fit() hands them over, so that Keras notes the shapes of all of them."""
    if not several:
        return _arguments(inputs)
    return "symbolic_inputs()" if len(inputs) > 1 else "*symbolic_inputs()"


def _build(made: Sequence[str], *, drawn: Sequence[str], fixed: bool) -> str:
    load = 'load_weights(model, Path(__file__).with_name("weights.safetensors")'
    lines = [
        "def build(weights=True):",
        '    """The model with the weights that lie beside this file, or with fresh ones."""',
        *(f"    {line}" for line in made),
    ]
    if fixed:
        lines += ["    if not weights:", *(f"        {line}" for line in drawn)] if drawn else []
        lines += [f"    {load}, trained=weights)"]
    else:
        lines += ["    if weights:", f"        {load})"]
        lines += ["    else:", *(f"        {line}" for line in drawn)] if drawn else []
    return "\n".join([*lines, "    return model"])


def _create(inputs: Sequence[InputSpec], *, several: bool) -> str:
    says = "Make the variables by one symbolic call, and freeze what the source froze."
    lines = ["def create_variables(model):", f'    """{says}"""', f"    model({_given(inputs, several=several)})"]
    return "\n".join(lines) + _FREEZE


def _inputs(inputs: Sequence[InputSpec]) -> str:
    says = "What the model takes; sizes that are None may vary."
    return f'def symbolic_inputs():\n    """{says}"""\n    return [{_arguments(inputs)}]'


def _arguments(inputs: Sequence[InputSpec]) -> str:
    return ", ".join(keras_input(spec) for spec in inputs)
