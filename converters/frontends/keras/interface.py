"""How a Keras model is called: its inputs by name, with the sizes that may vary, and tensors to call it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from porter.converters.frontends.keras import internals
from porter.converters.frontends.keras.symbolic import Size
from porter.converters.signature import argument_names, as_array, filled, leaves
from porter.errors import InputError

# Sizes to trace with where nobody gave any: multiples of what networks halve, and different from each other.
_BATCH, _FREE = (2, 4), (64, 96, 128, 160)


@dataclass
class Interface:
    """The arguments of a model's call.

    `names` are those of the flat inputs, `arguments` those that a caller gives, `arrays` flat example inputs.
    """

    names: list[str]
    arguments: list[str]
    arrays: list[np.ndarray]
    axes: list[dict[int, str]]
    pack: Callable[[Sequence[Any]], tuple[tuple, dict[str, Any]]]
    dtypes: list[str]

    def symbolic(self, which: int) -> tuple[list[Any], tuple, dict[str, Any]]:
        """Symbolic tensors, flat and as arguments: of the examples' sizes (0), or with all that vary doubled (1)."""
        tensors = []
        for array, axes, dtype in zip(self.arrays, self.axes, self.dtypes, strict=True):
            shape = [
                Size(size * (1 + which), axes[axis]) if axis in axes else size for axis, size in enumerate(array.shape)
            ]
            tensors.append(internals.symbolic_tensor(tuple(shape), dtype))
        return (tensors, *self.pack(tensors))


def interface(model: Any, inputs: Any, dynamic: Any) -> Interface:
    """How to call the model.

    Raises:
        InputError: example inputs are missing or do not fit, or `dynamic` names what does not exist.
    """
    if not isinstance(model, keras.Layer):
        raise InputError(f"a Keras model is a keras.Model or a layer, not a {type(model).__name__}")
    graph = internals.graph_model(model)
    return _of_graph(graph, inputs, dynamic) if graph is not None else _of_call(model, inputs, dynamic)


def _of_graph(model: Any, inputs: Any, dynamic: Any) -> Interface:
    names = [_identifier(internals.input_name(tensor)) for tensor in model.inputs]
    given = _by_name(model, inputs, names)
    axes = [_open_axes(name, tensor.shape, dynamic) for name, tensor in zip(names, model.inputs, strict=True)]
    arrays = [
        _fitting(name, given[name], tensor) if given else _drawn(tensor, position)
        for position, (name, tensor) in enumerate(zip(names, model.inputs, strict=True))
    ]
    structure = model._inputs_struct

    def pack(tensors: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
        return (internals.packed(structure, list(tensors)),), {}

    return Interface(names, list(names), arrays, axes, pack, [tensor.dtype for tensor in model.inputs])


def _by_name(model: Any, inputs: Any, names: list[str]) -> dict[str, Any]:
    if inputs is None:
        return {}
    if isinstance(inputs, Mapping) and set(inputs) == set(names):
        return {name: as_array(inputs[name]) for name in names}
    flat = [as_array(leaf) for leaf in leaves(inputs)]
    if isinstance(inputs, Mapping):
        keys: Any = getattr(model._inputs_struct, "keys", list)()
        if set(inputs) != set(keys):
            unknown = next((key for key in inputs if key not in names), None)
            missing = next((name for name in names if name not in inputs), None)
            raise InputError(
                f"{f'there is no input {unknown!r}' if unknown else f'the input {missing!r} is missing'}: "
                f"the model takes {', '.join(names)}"
            )
        flat = [as_array(leaf) for leaf in internals.flat({key: inputs[key] for key in inputs})]
    if len(flat) != len(names):
        raise InputError(f"{len(flat)} input(s) given, the model takes {len(names)}: {', '.join(names)}")
    return dict(zip(names, flat, strict=True))


def _open_axes(name: str, shape: tuple, dynamic: Any) -> dict[int, str]:
    """The symbols of the axes that vary."""
    if dynamic == "none":
        return {}
    if isinstance(dynamic, Mapping):
        given = dict(dynamic.get(name, {}))
        fixed = [axis for axis in given if not 0 <= axis < len(shape) or shape[axis] is not None]
        if fixed:
            raise InputError(f"axis {fixed[0]} of the input {name!r} is fixed in the model: {list(shape)}")
        return {axis: _identifier(symbol or f"{name}_{axis}") for axis, symbol in given.items()}
    return {axis: "batch" if axis == 0 else f"{name}_{axis}" for axis, size in enumerate(shape) if size is None}


def _fitting(name: str, array: np.ndarray, tensor: Any) -> np.ndarray:
    shape = list(tensor.shape)
    if array.ndim == len(shape) and all(s in (None, n) for s, n in zip(shape, array.shape, strict=True)):
        return array
    raise InputError(f"the input {name!r} has shape {list(array.shape)}, the model takes {shape}")


def _drawn(tensor: Any, position: int) -> np.ndarray:
    """An example where none was given: small numbers of the right type."""
    free = iter(_FREE)
    shape = [
        _BATCH[0] if axis == 0 and size is None else next(free) if size is None else size
        for axis, size in enumerate(tensor.shape)
    ]
    rng = np.random.default_rng(position)
    kind = np.dtype(tensor.dtype) if tensor.dtype != "bfloat16" else np.dtype("float32")
    if kind.kind == "f":
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(0, 2, shape).astype(kind)


def _of_call(model: Any, inputs: Any, dynamic: Any) -> Interface:
    if inputs is None:
        raise InputError(
            "no example inputs: a model without keras.Input needs a tuple of positional arguments or a dict of "
            "keyword arguments (--input, --inputs)"
        )
    arguments = argument_names(model.call, inputs)
    values = [inputs[name] for name in arguments] if isinstance(inputs, Mapping) else _positional(inputs)
    names, arrays = [], []
    for argument, value in zip(arguments, values, strict=True):
        found = [as_array(leaf) for leaf in leaves(value)]
        nested = len(found) > 1 or not hasattr(value, "shape")
        names += [f"{argument}_{i}" if nested else argument for i in range(len(found))]
        arrays += found
    unbuilt = not model.built
    keyword = isinstance(inputs, Mapping)

    def pack(tensors: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
        parts = iter(tensors)
        packed = [filled(value, parts) for value in values]
        return ((), dict(zip(arguments, packed, strict=True))) if keyword else (tuple(packed), {})

    dtypes = [keras.backend.standardize_dtype(array.dtype) for array in arrays]
    if unbuilt:
        args, kwargs = pack([keras.ops.convert_to_tensor(array) for array in arrays])
        model(*args, **kwargs)
    owners = [argument for argument, value in zip(arguments, values, strict=True) for _ in leaves(value)]
    axes = [
        _axes_of_example(name, owner, array, dynamic) for name, owner, array in zip(names, owners, arrays, strict=True)
    ]
    return Interface(names, arguments, arrays, axes, pack, dtypes)


def _positional(inputs: Any) -> list[Any]:
    return list(inputs) if isinstance(inputs, tuple | list) else [inputs]


def _axes_of_example(name: str, argument: str, array: np.ndarray, dynamic: Any) -> dict[int, str]:
    if dynamic == "none" or array.ndim == 0:
        return {}
    if isinstance(dynamic, Mapping):
        given = dynamic.get(name, dynamic.get(argument, {}))
        wrong = [axis for axis in given if not 0 <= axis < array.ndim]
        if wrong:
            raise InputError(f"the input {name!r} has {array.ndim} axes; dynamic axis {wrong[0]} does not exist")
        return {axis: _identifier(symbol or f"{name}_{axis}") for axis, symbol in given.items()}
    return {0: "batch"}


def _identifier(name: str) -> str:
    text = "".join(c if c.isalnum() else "_" for c in name)
    return text if text and not text[0].isdigit() else f"input_{text}"
