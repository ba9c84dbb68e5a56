"""What people have of a TensorFlow model as a program: functions, modules, SavedModels, checkpoints, frozen graphs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from porter.converters.frontends.tensorflow.marking import Marks, described, is_keras
from porter.converters.frontends.tensorflow.program import Input, Output, Program, Variable, build
from porter.errors import InputError, UnsupportedError

_REFUSED_DTYPES = {tf.string: "strings", tf.variant: "ragged tensors or lists", tf.resource: "a resource"}


@dataclass(frozen=True)
class SavedGraph:
    """A graph of TensorFlow 1 as a file holds it, with what runs it and where its variables are.

    `checkpoint` is the common prefix of a checkpoint's files, or None where the graph holds its own numbers.
    """

    name: str
    graph_def: Any
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    checkpoint: Path | None
    trainable: frozenset[str] | None = None
    weights: Mapping[str, Variable] = field(default_factory=dict)  # of a frozen graph, by their nodes

    def __call__(self, *tensors: Any, **named: Any) -> dict[str, Any]:
        """The outputs by name, for tensors by position or by name, as a signature of TensorFlow 2 gives them."""
        program = of_graph(self)
        definition = program.graph_def()
        wrapped = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
        names = [each.name for each in program.inputs]
        given = {**dict(zip(names, tensors, strict=False)), **named}
        feeds = {each.tensor: given[each.name] for each in program.inputs}
        feeds |= {ref: tf.constant(variable.array) for ref, variable in program.variables.items()}
        results = wrapped.prune(list(feeds), [output.tensor for output in program.outputs])(*feeds.values())
        return dict(zip([output.name for output in program.outputs], results, strict=True))


def of_function(function: Any, name: str, root: Any = None, marks: Marks | None = None) -> Program:
    """A program of a ConcreteFunction; `root` is the module or loaded object that holds its variables.

    `marks` is what was recorded while it was traced.

    Raises:
        InputError: an input or output is no plain tensor.
        UnsupportedError: it reads a resource that is no variable, or changes a variable.
    """
    names = variable_names(root, function)
    named = {id(variable): _described(variable, names[id(variable)], root) for variable in function.graph.variables}
    held = {}
    for outside, inside in function.graph.captures:
        held[inside.op.name] = _captured(outside, inside, function, names, named)
    captured = {inside.name for _, inside in function.graph.captures}
    placeholders = [tensor for tensor in function.inputs if tensor.name not in captured]
    labels = _input_names(function, placeholders)
    inputs = [
        Input(label, tensor.name, tensor.dtype, _shape(tensor, f"the input {label!r}"))
        for label, tensor in zip(labels, placeholders, strict=True)
    ]
    outputs = _outputs(function)
    for each in inputs:
        refuse_dtype(each.dtype, f"the input {each.name!r}")
    also = [operation.name for operation in function.graph.control_outputs]
    program = build(name, function.graph.as_graph_def(), inputs, outputs, held, also=also)
    program.named = named
    if marks is not None:
        program.layers = marks.layers
        program.modules = described(root)
    return program


def _described(variable: Any, name: str, root: Any) -> Variable:
    """A variable with what training does to it; Keras says so itself."""
    trained = trainable = bool(variable.trainable)
    if is_keras(root):
        from porter.converters.frontends.keras import internals

        nature = internals.trained_by_nature(root)
        for each in root.variables:
            if each.value is variable:
                trained, trainable = id(each) in nature, bool(each.trainable)
    return Variable(name, variable.numpy(), trainable, "parameter" if trained else "buffer")


def _shape(tensor: Any, what: str) -> tuple[int | None, ...]:
    if tensor.shape.rank is None:
        raise InputError(f"{what} has no known number of axes; give it one in the signature (tf.TensorSpec)")
    return tuple(tensor.shape.as_list())


def refuse_dtype(dtype: tf.DType, what: str) -> None:
    """Raise InputError for tensors that hold no numbers."""
    if dtype in _REFUSED_DTYPES:
        raise InputError(
            f"{what} holds {_REFUSED_DTYPES[dtype]}: porter ports functions of numbers; port the part of the model "
            "that takes dense tensors"
        )


def _captured(outside: Any, inside: Any, function: Any, names: dict[int, str], named: dict[int, Variable]) -> Variable:
    """What a placeholder of a traced function stands for."""
    for variable in function.graph.variables:
        if variable.handle is outside:
            return named[id(variable)]
    if outside.dtype == tf.resource or outside.dtype == tf.variant:
        raise UnsupportedError(
            f"the graph reads the resource {inside.name!r}, which is no variable: look-up tables and other resources "
            "have no counterpart; look up before the model"
        )
    refuse_dtype(outside.dtype, f"the constant {inside.name!r}")
    return Variable(names.get(id(outside), inside.op.name), outside.numpy(), False, "constant")


def _input_names(function: Any, placeholders: Sequence[Any]) -> list[str]:
    """The author's names of the arguments, else those of the placeholders."""
    given = function.structured_input_signature
    positional, keywords = given if given is not None else ((), {})
    leaves = [spec for spec in tf.nest.flatten((positional, keywords)) if isinstance(spec, tf.TypeSpec)]
    for spec in leaves:
        if not isinstance(spec, tf.TensorSpec):
            raise InputError(
                f"the input {getattr(spec, 'name', None) or spec!r} is a {type(spec).__name__.removesuffix('Spec')}: "
                "porter ports dense tensors; convert before the model"
            )
    return [
        identifier(tensor.op.get_attr("_user_specified_name").decode())
        if _has_name(tensor)
        else identifier(tensor.op.name)
        for tensor in placeholders
    ]


def _has_name(tensor: Any) -> bool:
    return "_user_specified_name" in tensor.op.node_def.attr


def identifier(text: str) -> str:
    """A name of a graph as one of Python."""
    name = re.sub(r"\W+", "_", text).strip("_") or "input"
    return f"input_{name}" if name[0].isdigit() else name


def _outputs(function: Any) -> list[Output]:
    structure = function.structured_outputs
    leaves = tf.nest.flatten(structure, expand_composites=False)
    for leaf in leaves:
        if leaf is not None and not isinstance(leaf, tf.TensorSpec | tf.Tensor):
            raise InputError(f"an output is a {type(leaf).__name__.removesuffix('Spec')}: return dense tensors")
    tensors = [tensor for tensor in function.outputs if tensor.dtype != tf.resource]
    names = list(_leaf_names(structure))
    found = []
    for number, tensor in enumerate(tensors):
        label = names[number] if len(names) == len(tensors) and names[number] else f"output_{number}"
        refuse_dtype(tensor.dtype, f"the output {label!r}")
        found.append(Output(identifier(label), tensor.name))
    if not found:
        raise InputError("the function returns no tensor")
    return found


def _leaf_names(structure: Any, name: str = "") -> Iterator[str]:
    if isinstance(structure, dict):
        for key in sorted(structure):
            yield from _leaf_names(structure[key], str(key))
    elif isinstance(structure, list | tuple):
        for item in structure:
            yield from _leaf_names(item)
    elif structure is not None:
        yield name


# ---- names of variables ----

_NUMBERED = re.compile(r"(^|\.)(_all_variables|variables|trainable_variables|non_trainable_variables)\.\d+$")


def variable_names(root: Any, function: Any) -> dict[int, str]:
    """{id of a variable or of a tensor that the model holds: its name}.

    The attribute path from `root` where one leads there; where an exporter left only numbers, the variable's own name.
    """
    paths: dict[int, str] = {}
    if is_keras(root):
        from porter.converters.frontends.keras.paths import variable_names as keras_names

        known = keras_names(root)
        paths = {id(variable.value): known[id(variable)] for variable in root.variables}
    elif root is not None:
        for path, found in _walk(root):
            if id(found) not in paths or _NUMBERED.search(paths[id(found)]):
                paths[id(found)] = path
    names: dict[int, str] = {}
    taken: set[str] = set()
    for variable in function.graph.variables:
        path = paths.get(id(variable), "")
        label = path if path and not _NUMBERED.search(path) else variable.name.split(":")[0]
        names[id(variable)] = _unique(label, taken)
    for key, path in paths.items():
        names.setdefault(key, path)
    return names


def _unique(name: str, taken: set[str]) -> str:
    label, number = name, 1
    while label in taken:
        number += 1
        label = f"{name}_{number}"
    taken.add(label)
    return label


def _walk(root: Any) -> Iterator[tuple[str, Any]]:
    """(attribute path, variable or tensor) of everything that an object tracks, the shortest paths first."""
    waiting = [("", root)]
    seen = {id(root)}
    view = tf.train.TrackableView(root)
    while waiting:
        path, owner = waiting.pop(0)
        children = dict(view.children(owner))
        for key, value in getattr(owner, "__dict__", {}).items():
            if isinstance(value, tf.Tensor) and not isinstance(value, tf.Variable):
                yield f"{path}.{key}" if path else key, value
        for key, child in children.items():
            step = f"{path}.{key}" if path else str(key)
            if isinstance(child, tf.Variable) or hasattr(child, "handle"):
                yield step, child
            elif id(child) not in seen and key not in ("signatures", "keras_api"):
                seen.add(id(child))
                waiting.append((step, child))


# ---- graphs of TensorFlow 1 ----


def of_graph(saved: SavedGraph) -> Program:
    """A program of a saved graph.

    Raises:
        InputError: the checkpoint lacks a variable, or holds it in another size.
    """
    reader = tf.train.load_checkpoint(str(saved.checkpoint)) if saved.checkpoint is not None else None

    def read(key: str, node: Any) -> Variable:
        if key in saved.weights:
            return saved.weights[key]
        if reader is None:
            raise InputError(f"the graph reads the variable {key!r} and comes without a checkpoint")
        if not reader.has_tensor(key):
            raise InputError(f"the checkpoint {saved.checkpoint} has no variable {key!r}, which the graph reads")
        array = np.asarray(reader.get_tensor(key))
        wanted = tf.TensorShape(node.attr["shape"].shape)
        if not wanted.is_compatible_with(array.shape):
            raise InputError(
                f"the variable {key!r} is {list(array.shape)} in the checkpoint and {wanted.as_list()} in the graph"
            )
        trainable = saved.trainable is None or key in saved.trainable
        return Variable(key, array, trainable, "parameter" if trainable else "buffer")

    return build(saved.name, saved.graph_def, saved.inputs, saved.outputs, {}, read)
