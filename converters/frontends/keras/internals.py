"""All that porter knows of Keras' inner workings, in one place: what a new version of Keras may change.

While `recording` is in force, layers and operations that are called hand themselves to a function of the tracer's
instead of working out a result.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import keras
from keras.src import backend, tree
from keras.src.backend.common import variables as keras_variables
from keras.src.layers import layer as layer_module
from keras.src.ops.numpy import GetItem
from keras.src.ops.operation import Operation
from keras.src.random.seed_generator import SeedGenerator
from keras.src.utils.naming import to_snake_case

from porter.converters.frontends.keras.symbolic import Size
from porter.errors import ExportError

Layer = keras.Layer
Variable = keras_variables.Variable
Symbolic = (keras.KerasTensor, Variable, Size)

# Functions of the backend that make a tensor of sizes, numbers and constants alone.
_CREATING = ("arange", "zeros", "ones", "full", "eye", "identity", "tri", "linspace")
_REARRANGING = ("broadcast_to", "tile", "reshape", "repeat")
_DUNDERS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "matmul": "matmul",
    "and": "logical_and",
    "or": "logical_or",
    "xor": "logical_xor",
}
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def is_named_by_keras(layer: Any) -> bool:
    """Whether a layer has the name that Keras makes of its class: `conv2d`, `conv2d_1`."""
    stem, _, number = layer.name.rpartition("_")
    own = to_snake_case(type(layer).__name__)
    return layer.name == own or (stem == own and number.isdigit())


class Created(Operation):
    """A tensor made of sizes and numbers alone: `function` of `keras.ops` on `settings`."""

    def __init__(self, function: str, settings: dict[str, Any]) -> None:
        super().__init__(name=f"{function}_created")
        self.function = function
        self.settings = settings


# Operations whose arguments are sizes and numbers: {class: function of keras.ops}.
FROM_SIZES = {"Arange": "arange", "Linspace": "linspace"}


def created(operation: Operation, args: tuple, kwargs: dict[str, Any]) -> Created:
    """An operation on sizes as what it creates."""
    function = FROM_SIZES[type(operation).__name__]
    signature = inspect.signature(getattr(keras.ops, function))
    settings = {k: v for k, v in vars(operation).items() if k in signature.parameters}
    bound = signature.bind(*args, **{**settings, **kwargs})
    bound.apply_defaults()
    return Created(function, dict(bound.arguments))


def flat(structure: Any) -> list[Any]:
    """The leaves of a nested structure."""
    return tree.flatten(structure)


def outputs_in_order(structure: Any) -> tuple[list[Any], list[str]]:
    """The leaves of what a model returns, and their keys where it is a flat dict: in the author's order, not sorted."""
    if not isinstance(structure, dict):
        return flat(structure), []
    leaves = {key: flat(part) for key, part in structure.items()}
    keys = [str(key) for key in leaves] if all(len(part) == 1 for part in leaves.values()) else []
    return [leaf for part in leaves.values() for leaf in part], keys


def mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    """The structure with every leaf replaced."""
    return tree.map_structure(function, structure)


def mapped_together(function: Callable[..., Any], *structures: Any) -> Any:
    """Structures of one form as one, their leaves combined."""
    return tree.map_structure(function, *structures)


def is_symbolic(value: Any) -> bool:
    """Whether some leaf is a tensor of the trace, a variable or a size that varies."""
    return any(isinstance(leaf, Symbolic) for leaf in flat(value))


class Recording:
    """Whether calls are handed over at this moment."""

    def __init__(self) -> None:
        self.active = True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keras as it is."""
        before, self.active = self.active, False
        try:
            yield
        finally:
            self.active = before


@contextmanager
def recording(take: Callable[[Operation, tuple, dict[str, Any]], Any]) -> Iterator[Recording]:
    """Hand every call of a layer, and of an operation on something symbolic, to `take`; its result is the call's."""
    state = Recording()
    with ExitStack() as stack:
        _hand_over_calls(state, take, stack)
        _see_variables(state, stack)
        _keep_sizes(state, stack, take)
        _slice_constants(state, stack)
        _name_operations(state, stack)
        _refuse_chance(state, stack)
        yield state


def _replace(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    own = name in vars(owner)
    before = getattr(owner, name, None)
    setattr(owner, name, value)
    stack.callback(lambda: setattr(owner, name, before) if own else delattr(owner, name))


def _hand_over_calls(state: Recording, take: Callable[..., Any], stack: ExitStack) -> None:
    call, symbolic_call = Operation.__call__, Operation.symbolic_call
    layer_symbolic_call, node = keras.Layer.symbolic_call, layer_module.Node

    def handed_over(self: Any, *args: Any, **kwargs: Any) -> Any:
        if state.active and (isinstance(self, keras.Layer) or is_symbolic((args, kwargs))):
            return take(self, args, kwargs)
        return call(self, *args, **kwargs)

    def symbolic(self: Any, *args: Any, **kwargs: Any) -> Any:
        return take(self, args, kwargs) if state.active else symbolic_call(self, *args, **kwargs)

    def layer_symbolic(self: Any, *args: Any, **kwargs: Any) -> Any:
        return take(self, args, kwargs) if state.active else layer_symbolic_call(self, *args, **kwargs)

    _replace(stack, Operation, "__call__", handed_over)
    _replace(stack, Operation, "symbolic_call", symbolic)
    _replace(stack, keras.Layer, "symbolic_call", layer_symbolic)
    # A trace leaves no nodes behind in the user's model.
    _replace(stack, layer_module, "Node", lambda **kwargs: None if state.active else node(**kwargs))


def _see_variables(state: Recording, stack: ExitStack) -> None:
    """Arithmetic on variables alone is part of the model, not a constant."""
    original = backend.common.keras_tensor.any_symbolic_tensors

    def any_symbolic_tensors(args: Any = None, kwargs: Any = None) -> bool:
        return original(args, kwargs) or (state.active and is_symbolic((args or (), kwargs or {})))

    for name, module in list(sys.modules.items()):
        if name.startswith("keras.src.") and vars(module).get("any_symbolic_tensors") is original:
            _replace(stack, module, "any_symbolic_tensors", any_symbolic_tensors)

    def operator(name: str, function: str, swapped: bool = False) -> None:
        before = getattr(Variable, name)

        def compute(self: Any, other: Any) -> Any:
            if not state.active:
                return before(self, other)
            return getattr(keras.ops, function)(*((other, self) if swapped else (self, other)))

        _replace(stack, Variable, name, compute)

    for name, function in _DUNDERS.items():
        operator(f"__{name}__", function)
        operator(f"__r{name}__", function, swapped=True)
    for name, function in _COMPARISONS.items():
        operator(f"__{name}__", function)
    negative, item = Variable.__neg__, Variable.__getitem__
    _replace(stack, Variable, "__neg__", lambda self: keras.ops.negative(self) if state.active else negative(self))
    _replace(
        stack,
        Variable,
        "__getitem__",
        lambda self, key: GetItem().symbolic_call(self, key) if state.active else item(self, key),
    )
    _follow_values(state, stack)


def _follow_values(state: Recording, stack: ExitStack) -> None:
    """`variable.value` is the variable; its numbers, once read, could not be told from constants."""
    value = Variable.value
    _replace(stack, Variable, "value", property(lambda self: self if state.active else value.fget(self)))
    for name in ("__array__", "__tf_tensor__", "numpy"):
        before = getattr(backend.Variable, name, None)
        if before is None:
            continue

        def read(self: Any, *args: Any, _before: Any = before, **kwargs: Any) -> Any:
            if state.active:
                raise ExportError(
                    f"the numbers of the variable {self.path!r} are read while the model is called; "
                    "compute with the variable itself and keras.ops, so that it stays a weight"
                )
            return _before(self, *args, **kwargs)

        _replace(stack, backend.Variable, name, read)


def _keep_sizes(state: Recording, stack: ExitStack, take: Callable[..., Any]) -> None:
    standardize = backend.standardize_shape

    def standardize_shape(shape: Any) -> Any:
        plain = standardize(shape)
        if isinstance(shape, tuple | list):
            return tuple(old if isinstance(old, Size) else new for old, new in zip(shape, plain, strict=True))
        return plain

    _replace(stack, backend, "standardize_shape", standardize_shape)

    def creating(name: str) -> None:
        original = getattr(backend.numpy, name)

        def create(*args: Any, **kwargs: Any) -> Any:
            if not state.active or not any(isinstance(leaf, Size) for leaf in flat((args, kwargs))):
                return original(*args, **kwargs)
            bound = inspect.signature(original).bind(*args, **kwargs)
            bound.apply_defaults()
            return take(Created(name, dict(bound.arguments)), (), {})

        _replace(stack, backend.numpy, name, create)

    for name in _CREATING + _REARRANGING:
        creating(name)


def _name_operations(state: Recording, stack: ExitStack) -> None:
    """Layers of Keras that call the backend by themselves call the operation of that name."""
    homes = {
        backend.core: keras.ops,
        backend.numpy: keras.ops,
        backend.nn: keras.ops,
        backend.math: keras.ops,
        backend.image: keras.ops.image,
        backend.linalg: keras.ops.linalg,
        backend: keras.ops,
        sys.modules[backend.numpy.__name__.rpartition(".")[0]]: keras.ops,  # the backend in use, as layers find it
    }

    def named(module: Any, name: str, operation: Callable[..., Any]) -> None:
        original = getattr(module, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if state.active and any(isinstance(leaf, keras.KerasTensor | Variable) for leaf in flat((args, kwargs))):
                return operation(*args, **kwargs)
            return original(*args, **kwargs)

        _replace(stack, module, name, call)

    for module, operations in homes.items():
        for name in dir(operations):
            operation = getattr(operations, name)
            # Others give nothing symbolic: they would only come back here.
            symbolic = "any_symbolic_tensors" in getattr(getattr(operation, "__code__", None), "co_names", ())
            if name != "shape" and symbolic and inspect.isfunction(vars(module).get(name)):
                named(module, name, operation)


def _slice_constants(state: Recording, stack: ExitStack) -> None:
    """A constant cut at a size that varies varies too."""
    import tensorflow as tf

    item = tf.Tensor.__getitem__

    def get_item(self: Any, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        bounds = [
            b for part in parts for b in ((part.start, part.stop, part.step) if isinstance(part, slice) else (part,))
        ]
        if state.active and any(isinstance(bound, Size) for bound in bounds):
            return GetItem().symbolic_call(self, key)
        return item(self, key)

    _replace(stack, tf.Tensor, "__getitem__", get_item)


def _refuse_chance(state: Recording, stack: ExitStack) -> None:
    draw = SeedGenerator.next

    def draws(self: Any, *args: Any, **kwargs: Any) -> Any:
        if state.active:
            raise ExportError(
                "the model draws random numbers outside training; ports are functions of their inputs: "
                "make the draw an input, or draw only if training"
            )
        return draw(self, *args, **kwargs)

    _replace(stack, SeedGenerator, "next", draws)
    add_loss = keras.Layer.add_loss
    _replace(stack, keras.Layer, "add_loss", lambda self, loss: None if state.active else add_loss(self, loss))


def is_functional(model: Any) -> bool:
    """Whether the model is a graph of layers."""
    return isinstance(model, keras.Model) and hasattr(model, "_inputs_struct")


def graph_model(model: Any) -> Any:
    """The graph behind a Functional or built Sequential model, or None."""
    if isinstance(model, keras.Sequential):
        return getattr(model, "_functional", None)
    return model if is_functional(model) else None


def input_name(tensor: keras.KerasTensor) -> str:
    """The name of the `keras.Input` that a graph's input is."""
    history = getattr(tensor, "_keras_history", None)
    return history.operation.name if history and history.operation is not None else tensor.name


@cache
def inner_names() -> frozenset[str]:
    """Attributes that Keras itself keeps on every layer and model."""
    x = keras.Input((1,))
    owners = (keras.Layer(), keras.Model(), keras.Model(x, x), keras.Sequential([x]))
    return frozenset(name for owner in owners for name in vars(owner))


def mask_of(tensor: Any) -> Any:
    """The mask that a tensor carries."""
    return backend.get_keras_mask(tensor)


def set_size(tensor: keras.KerasTensor, axis: int, size: int) -> None:
    """Replace one size of a symbolic tensor."""
    shape = list(tensor.shape)
    shape[axis] = size
    tensor._shape = tuple(shape)


def symbolic_tensor(shape: tuple[int, ...], dtype: str) -> keras.KerasTensor:
    """A symbolic tensor some of whose sizes may be `Size`s."""
    tensor = keras.KerasTensor(tuple(int(size) for size in shape), dtype)
    tensor._shape = tuple(shape)
    return tensor


def trained_by_nature(model: Any) -> set[int]:
    """ids of the variables that were made to be trained, whether they are frozen now or not."""
    return {id(variable) for layer in model._flatten_layers() for variable in layer._trainable_variables}


def packed(structure: Any, leaves: list[Any]) -> Any:
    """Leaves in the form of a nested structure."""
    return tree.pack_sequence_as(structure, leaves)


def result_of(operation: Operation, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Shapes and dtypes of what an operation gives, also where Keras itself has them wrong."""
    outputs = operation.compute_output_spec(*args, **kwargs)
    kind = type(operation).__name__
    if kind == "MultiHot":
        return _with_dtype(outputs, operation.dtype or keras.config.floatx())
    if kind in ("Normalize", "Logsumexp"):
        return _with_dtype(outputs, backend.result_type(args[0].dtype, float))
    return outputs


def _with_dtype(tensor: keras.KerasTensor, dtype: str) -> keras.KerasTensor:
    return symbolic_tensor(tensor.shape, dtype)
