"""How a model of TensorFlow is called: its signature, example inputs, and which of its sizes vary."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from porter.converters.frontends.tensorflow import sources
from porter.converters.frontends.tensorflow.double import Doubled, truth
from porter.converters.frontends.tensorflow.loading import Served
from porter.converters.frontends.tensorflow.marking import is_keras, marks_of
from porter.converters.frontends.tensorflow.program import Program
from porter.converters.signature import argument_names
from porter.errors import ExportError, InputError

_SIDES = (8, 32, 64, 224)  # tried for sizes that nothing fixes


@dataclass
class Called:
    """A program, what its sizes are called, and inputs to compare it on: as given, and of other sizes."""

    program: Program
    symbols: dict[str, dict[int, str]]
    examples: list[dict[str, np.ndarray]]
    arguments: list[str]


def attempts(model: Any, inputs: Any, dynamic: Any) -> Iterator[Called]:
    """Ways to call the model, those with the most sizes that vary first.

    Raises:
        InputError: the inputs do not fit, or the model cannot run on any.
        ExportError: the model cannot be traced.
    """
    if isinstance(model, sources.SavedGraph):
        program = sources.of_graph(model)
    elif isinstance(model, Served):
        program = sources.of_function(model.function, model.name, model.root)
    elif hasattr(model, "captured_inputs") and hasattr(model, "graph"):
        program = sources.of_function(model, _name(model), model)
    else:
        yield from _traced(model, inputs, dynamic)
        return
    yield _called(program, inputs, dynamic, None)


def _name(function: Any) -> str:
    name = getattr(function, "name", b"")
    text = name.decode() if isinstance(name, bytes) else str(name)
    parts = [part for part in text.removeprefix("__inference_").rsplit("_", 1) if not part.isdigit()]
    return sources.identifier("_".join(parts)) or "function"


def _traced(model: Any, inputs: Any, dynamic: Any) -> Iterator[Called]:
    """A module or tf.function, traced for the inputs, with as many sizes open as it can run with."""
    function = model if hasattr(model, "get_concrete_function") else getattr(model, "__call__", None)  # noqa: B004
    if function is None or not callable(function):
        raise InputError(f"a TensorFlow model is a tf.Module or a tf.function, not a {type(model).__name__}")
    root = model if isinstance(model, tf.Module) or is_keras(model) else None
    name = type(model).__name__ if root is not None else getattr(model, "__name__", "function")
    python = getattr(function, "python_function", function)

    @tf.autograph.experimental.do_not_convert
    def whole(*args: Any, **kwargs: Any) -> Any:
        """The model is called as its users call it, so that the call of the model itself is seen too."""
        return model(*args, **kwargs)

    entry = python if root is None else whole

    if getattr(function, "input_signature", None) is not None:
        program = _program(tf.function(entry), _named_specs(function.input_signature, python), {}, name, root)
        yield _called(program, inputs, dynamic, None)
        return
    if inputs is None:
        raise InputError(
            "no example inputs: give a tuple of positional arguments or a dict of keyword arguments "
            "(--input, --inputs), or an input_signature"
        )
    arguments = argument_names(model.call if is_keras(model) else python, inputs)
    failure: Exception | None = None
    for varying in _choices(inputs, arguments, dynamic):
        specs = _specs(inputs, arguments, varying)
        args, kwargs = ((), specs) if isinstance(inputs, Mapping) else (tuple(specs.values()), {})
        try:
            # A function of its own: one that was traced before for any size would be taken for a fixed one too.
            program = _program(tf.function(entry), args, kwargs, name, root)
            called = _called(program, inputs, dynamic, arguments)
        except (InputError, ExportError) as error:
            failure = error
            continue
        failure = None
        yield called
    if failure is not None:
        raise failure


def _named_specs(signature: Sequence[Any], python: Any) -> tuple:
    """An input signature whose tensors have the names of the arguments."""
    names = [name for name in inspect.signature(python).parameters if name != "self"]
    return tuple(
        tf.TensorSpec(spec.shape, spec.dtype, spec.name or name) if isinstance(spec, tf.TensorSpec) else spec
        for spec, name in itertools.zip_longest(signature, names[: len(signature)], fillvalue="input")
    )


def _program(function: Any, args: tuple, kwargs: dict[str, Any], name: str, root: Any) -> Program:
    """The function traced, with the layers and modules that make its operations."""
    marks = marks_of(root)
    with marks.recording():
        traced = _trace(function, args, kwargs, name)
    return sources.of_function(traced, name, root, marks)


def _trace(function: Any, args: tuple, kwargs: dict[str, Any], name: str) -> Any:
    try:
        return function.get_concrete_function(*args, **kwargs)
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        raise ExportError(f"{name} cannot be traced: {type(error).__name__}: {first[-1].strip()}") from error


# ---- which sizes vary ----

Varying = dict[str, set[int]]


def _choices(inputs: Any, arguments: Sequence[str], dynamic: Any) -> list[Varying]:
    given = dict(_leaves(inputs, arguments))
    if isinstance(dynamic, Mapping):
        return [{name: set(dynamic.get(name, {})) for name in given}]
    if dynamic == "none":
        return [{}]
    inner = {name: set(range(max(np.ndim(array) - 1, min(np.ndim(array), 1)))) for name, array in given.items()}
    first = {name: {0} if np.ndim(array) else set() for name, array in given.items()}
    return [inner, first, {}] if inner != first else [first, {}]


def _leaves(inputs: Any, arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    items = inputs.values() if isinstance(inputs, Mapping) else inputs if isinstance(inputs, tuple | list) else [inputs]
    for name, item in zip(arguments, items, strict=True):
        yield from _flat(name, item)


def _flat(name: str, item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(item, Mapping):
        for key in sorted(item):
            yield from _flat(f"{name}_{key}", item[key])
    elif isinstance(item, list | tuple):
        for index, each in enumerate(item):
            yield from _flat(f"{name}_{index}", each)
    elif hasattr(item, "shape") and hasattr(item, "dtype"):
        yield name, np.asarray(item)


def _specs(inputs: Any, arguments: Sequence[str], varying: Varying) -> dict[str, Any]:
    def spec(name: str, item: Any) -> Any:
        if isinstance(item, Mapping):
            return {key: spec(f"{name}_{key}", value) for key, value in item.items()}
        if isinstance(item, list | tuple):
            return type(item)(spec(f"{name}_{index}", each) for index, each in enumerate(item))
        if not (hasattr(item, "shape") and hasattr(item, "dtype")):
            return item
        array = np.asarray(item)
        shape = [None if axis in varying.get(name, ()) else size for axis, size in enumerate(array.shape)]
        return tf.TensorSpec(shape, array.dtype, name=name)

    items = inputs.values() if isinstance(inputs, Mapping) else inputs if isinstance(inputs, tuple | list) else [inputs]
    return {name: spec(name, item) for name, item in zip(arguments, items, strict=True)}


# ---- examples ----


def _called(program: Program, inputs: Any, dynamic: Any, arguments: list[str] | None) -> Called:
    doubled = Doubled(program)
    names = [each.name for each in program.inputs]
    if inputs is None:
        example = _made_up(program, doubled)
    else:
        example = _given(program, inputs, arguments or names)
        _run(program, doubled, example)
    others = [] if dynamic == "none" else list(_resized(program, doubled, example))
    return Called(program, _symbols(program, dynamic, doubled, example), [example, *others], arguments or names)


def _given(program: Program, inputs: Any, arguments: Sequence[str]) -> dict[str, np.ndarray]:
    if isinstance(inputs, Mapping) and set(inputs) != set(arguments):
        wrong = sorted(set(inputs) ^ set(arguments))
        raise InputError(f"the inputs do not fit: {wrong[0]!r}; {program.name} takes {', '.join(arguments)}")
    ordered = {name: inputs[name] for name in arguments} if isinstance(inputs, Mapping) else inputs
    try:
        leaves = list(_leaves(ordered, arguments))
    except ValueError as error:
        raise InputError(f"{program.name} takes {len(arguments)} input(s): {', '.join(arguments)}") from error
    found = {}
    for each, (_, array) in zip(program.inputs, leaves, strict=True):
        shape = tf.TensorShape(each.shape)
        if not shape.is_compatible_with(array.shape):
            raise InputError(f"the input {each.name!r} has shape {list(array.shape)}, {program.name} takes {shape}")
        found[each.name] = array.astype(each.dtype.as_numpy_dtype)
    return found


def _run(program: Program, doubled: Doubled, example: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    feeds = {each.tensor: example[each.name] for each in program.inputs}
    try:
        return doubled.run([truth(output.tensor, doubled) for output in program.outputs], feeds)
    except tf.errors.OpError as error:
        raise InputError(f"{program.name} does not run on its inputs: {told(error)}") from error


def told(error: tf.errors.OpError) -> str:
    """What TensorFlow says was wrong, without where it was found."""
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    named = [number for number, line in enumerate(lines) if line.startswith("Node:")]
    return lines[min(named[0] + 1, len(lines) - 1)] if named else lines[0] if lines else type(error).__name__


def _made_up(program: Program, doubled: Doubled) -> dict[str, np.ndarray]:
    """Inputs of sizes that the model runs with."""
    failure: InputError | None = None
    for side in _SIDES:
        rng = np.random.default_rng(0)
        example = {}
        for each in program.inputs:
            shape = [size if size is not None else 2 if axis == 0 else side for axis, size in enumerate(each.shape)]
            example[each.name] = _random(rng, shape, each.dtype)
        try:
            _run(program, doubled, example)
            return example
        except InputError as error:
            failure = failure or error
        if all(size is not None for each in program.inputs for size in each.shape[1:]):
            break
    raise InputError(f"{failure}; give example inputs (--input, --inputs)")


def _random(rng: np.random.Generator, shape: Sequence[int], dtype: tf.DType) -> np.ndarray:
    if dtype == tf.bool:
        return rng.random(shape) < 0.5
    if dtype.is_integer:
        return rng.integers(0, 2, shape).astype(dtype.as_numpy_dtype)
    return rng.standard_normal(shape).astype(dtype.as_numpy_dtype)


def _resized(program: Program, doubled: Doubled, example: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """The example with every size that varies changed: a batch by one, other sizes doubled or halved.

    Raises:
        InputError: the model does not run at other sizes than the example's.
    """
    changed = {}
    for each in program.inputs:
        array = example[each.name]
        for axis, size in enumerate(each.shape):
            if size is None:
                wanted = _other(array.shape[axis], axis)
                array = np.take(array, np.arange(wanted) % max(array.shape[axis], 1), axis=axis)
        changed[each.name] = array
    if any(changed[name].shape != example[name].shape for name in changed):
        _run(program, doubled, changed)
        yield changed


def _other(size: int, axis: int) -> int:
    if axis == 0:
        return size + 1
    return size // 2 if size >= 64 and size % 2 == 0 else size * 2


def _symbols(
    program: Program, dynamic: Any, doubled: Doubled, example: Mapping[str, np.ndarray]
) -> dict[str, dict[int, str]]:
    """Names of the sizes that vary: as given; "batch" for a first axis; else the input's name and the axis."""
    given = dynamic if isinstance(dynamic, Mapping) else {}
    open_first = [each for each in program.inputs if each.shape and each.shape[0] is None]
    together = len(open_first) < 2 or not _apart(program, doubled, example, open_first)
    names: dict[str, dict[int, str]] = {}
    for each in program.inputs:
        names[each.name] = {}
        for axis, size in enumerate(each.shape):
            if size is None:
                label = given.get(each.name, {}).get(axis)
                plain = "batch" if axis == 0 and together else f"{each.name}_dim{axis}"
                names[each.name][axis] = label or plain
    return names


def _apart(program: Program, doubled: Doubled, example: Mapping[str, np.ndarray], inputs: Sequence[Any]) -> bool:
    """Whether the model runs when the inputs' first axes differ."""
    changed = dict(example)
    array = example[inputs[0].name]
    changed[inputs[0].name] = np.take(array, np.arange(array.shape[0] + 1) % max(array.shape[0], 1), axis=0)
    try:
        _run(program, doubled, changed)
    except InputError:
        return False
    return True
