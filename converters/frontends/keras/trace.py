"""Runs a Keras model on symbolic tensors and writes down every layer and operation that it calls.

A layer that the table knows is one call. Any other layer whose `call` is the user's own is looked into: its `call` runs
on the symbolic tensors, and what it calls is written down inside its scope.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

from porter.converters.frontends.keras import internals, rewrites, table
from porter.converters.frontends.keras.paths import class_name, layer_paths
from porter.converters.frontends.keras.symbolic import Size
from porter.errors import ExportError, PorterError

if TYPE_CHECKING:

    class Tensor:
        """A keras.KerasTensor."""

        shape: Any
        dtype: Any

        def __init__(self, shape: Any, dtype: Any) -> None: ...
else:
    Tensor = keras.KerasTensor


@dataclass(frozen=True)
class Scope:
    """One call of a layer: attribute path, number of the call, class."""

    path: str
    number: int
    cls: str

    @property
    def key(self) -> str:
        """How the call is named among the calls of its layer."""
        return f"{self.path}@{self.number}" if self.number else self.path


@dataclass
class Call:
    """One call of a layer or operation; `frames` are the statements of the model's own code, outermost first."""

    subject: Any
    args: tuple
    kwargs: dict[str, Any]
    outputs: Any
    scopes: tuple[Scope, ...]
    frames: list[list[Any]]

    @property
    def path(self) -> str:
        """The innermost layer's path, in words for the model itself."""
        return (self.scopes[-1].path if self.scopes else "") or "the model itself"

    @property
    def line(self) -> str:
        """ "file:line" of the innermost statement."""
        return f"{self.frames[-1][0]}:{self.frames[-1][1]}" if self.frames else "unknown line"


@dataclass
class Signature:
    """What a call of a composite layer was given and gave."""

    args: tuple
    kwargs: dict[str, Any]
    outputs: Any


@dataclass
class Trace:
    """The calls of a model in order."""

    inputs: list[Tensor]
    outputs: Any = None
    calls: list[Call] = field(default_factory=list)
    signatures: dict[str, Signature] = field(default_factory=dict)


Marks = dict[tuple[int, int, int], str]


def trace(model: Any, inputs: list[Tensor], args: tuple, kwargs: dict[str, Any], marks: Marks | None = None) -> Trace:
    """The calls that `model(*args, **kwargs)` makes in inference; `inputs` are the symbolic tensors in the arguments.

    `marks` gives sizes names that varied in other traces although nothing said so:
    {(call, output, axis): symbol}.

    Raises:
        ExportError: the model does something with a tensor that is neither a layer nor an operation of Keras.
    """
    return _Tracer(model, marks or {}, inputs).run(args, kwargs)


class _Tracer:
    def __init__(self, model: Any, marks: Marks, inputs: list[Tensor]) -> None:
        self.model = model
        self.marks = marks
        self.paths = {id(layer): path for path, layer in layer_paths(model).items()} | {id(model): ""}
        self.numbers: Counter[str] = Counter()
        self.scopes: list[Scope] = []
        self.entered: list[int] = []  # ids of the layers whose call is running
        self.result = Trace(inputs)

    def run(self, args: tuple, kwargs: dict[str, Any]) -> Trace:
        with internals.recording(self._take) as self.state, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.result.outputs = self.model(*args, **kwargs, **self._inference())
            except PorterError:
                raise
            except Exception as error:
                raise ExportError(self._explain(error)) from error
        return self.result

    def _inference(self) -> dict[str, bool]:
        return {"training": False} if "training" in inspect.signature(self.model.call).parameters else {}

    # ---- what the calls hand over ----

    def _take(self, subject: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if isinstance(subject, keras.Layer):
            return self._layer(subject, args, kwargs)
        return self._operation(subject, args, kwargs)

    def _layer(self, layer: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        rule = table.find(layer)
        if rule is not None and rule.when is not None and not rule.when(layer, *args, **kwargs):
            rule = None
        with self._scope(layer) as scope:
            if isinstance(layer, keras.layers.InputLayer):
                return layer.output
            rewritten = rewrites.find(layer) if rule is None else None
            if rewritten is not None:
                outputs = rewritten(layer, *args, **kwargs)
            elif rule is None and (table.is_composite(layer)):
                outputs = layer.call(*args, **kwargs)
            else:
                outputs = self._leaf(layer, args, kwargs)
                if rule is not None and rule.activates and layer.activation is not None:
                    outputs = layer.activation(outputs)
                return outputs
            self.result.signatures[scope.key] = Signature(args, kwargs, outputs)
            return outputs

    @contextmanager
    def _scope(self, layer: Any) -> Iterator[Scope]:
        path = self.paths.get(id(layer))
        if path is None:  # a layer that no attribute of the model holds
            parent = self.scopes[-1].path if self.scopes else ""
            path = self.paths[id(layer)] = f"{parent}.{layer.name}" if parent else layer.name
        scope = Scope(path, self.numbers[path], class_name(layer))
        self.numbers[path] += 1
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            self.scopes.pop()

    def _leaf(self, layer: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        with self.state.paused():
            plain_args, plain_kwargs = internals.mapped(_as_tensor, (args, kwargs))
            if isinstance(layer, keras.layers.EinsumDense):
                outputs = _einsum_spec(layer, *plain_args)
            else:
                outputs = layer.compute_output_spec(*plain_args, **plain_kwargs)
        return self._written(layer, args, kwargs, outputs)

    def _operation(self, operation: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if type(operation).__name__ == "Ndim":
            return len(args[0].shape)
        if type(operation).__name__ in internals.FROM_SIZES and not any(isinstance(a, Tensor) for a in args):
            operation, args, kwargs = internals.created(operation, args, kwargs), (), {}
        with self.state.paused():
            if isinstance(operation, internals.Created):
                outputs = _created_spec(operation)
            else:
                plain_args, plain_kwargs = internals.mapped(_as_operand, (args, kwargs))
                outputs = internals.result_of(operation, plain_args, plain_kwargs)
        return self._written(operation, args, kwargs, outputs)

    def _written(self, subject: Any, args: tuple, kwargs: dict[str, Any], outputs: Any) -> Any:
        if any(outputs is leaf for leaf in internals.flat((args, kwargs))):
            outputs = internals.mapped(lambda t: Tensor(t.shape, t.dtype), outputs)
        for number, tensor in enumerate(internals.flat(outputs)):
            for axis, size in enumerate(tensor.shape):
                symbol = self.marks.get((len(self.result.calls), number, axis))
                if symbol is not None:
                    internals.set_size(tensor, axis, Size(size, symbol))
        if any(None in tensor.shape for tensor in internals.flat(outputs)):
            raise ExportError(f"{type(subject).__name__} does not say the shape of its result: {outputs}")
        self.result.calls.append(Call(subject, args, kwargs, outputs, tuple(self.scopes), _frames()))
        return outputs

    # ---- errors ----

    def _explain(self, error: Exception) -> str:
        where = next((f"{f[0]}:{f[1]}" for f in reversed(_own_frames(traceback.extract_tb(error.__traceback__)))), "")
        name = self.scopes[-1].path if self.scopes else ""
        first = (str(error).strip().splitlines() or [""])[0]
        return (
            f"{type(self.model).__name__} cannot be traced{f' in {name}' if name else ''}: "
            f"{type(error).__name__}: {first}\nat {where or 'an unknown line'}. "
            "What a model calls must be layers and keras.ops functions: tf.* functions and numpy do not take the "
            "symbolic tensors that a model is traced with."
        )


def _einsum_spec(layer: Any, x: Tensor) -> Tensor:
    """The layer remembers sizes of when it was built; these are those of the call."""
    inputs, _, output = layer.equation.replace(" ", "").partition("->")
    first, kernel = inputs.split(",")
    dots = "".join(chr(0x391 + axis) for axis in range(len(x.shape) - len(first) + 3))
    sizes = dict(zip(kernel, layer.kernel.shape, strict=True))
    sizes |= dict(zip(first.replace("...", dots), x.shape, strict=True))
    return Tensor(tuple(sizes[letter] for letter in output.replace("...", dots)), layer.compute_dtype)


def _as_tensor(leaf: Any) -> Any:
    return Tensor(leaf.shape, leaf.dtype) if isinstance(leaf, internals.Variable) else leaf


def _as_operand(leaf: Any) -> Any:
    """An argument of an operation: a size stands for a scalar."""
    return Tensor((), "int32") if isinstance(leaf, Size) else _as_tensor(leaf)


def _created_spec(created: internals.Created) -> Tensor:
    """Shape and dtype of a tensor made of sizes alone: made once, at the sizes of this trace."""
    settings = internals.mapped(lambda leaf: int(leaf) if isinstance(leaf, Size) else leaf, created.settings)
    made = getattr(keras.ops, created.function)(**settings)
    shape = tuple(made.shape)
    wanted = created.settings.get("shape", created.settings.get("newshape"))
    if isinstance(wanted, tuple | list) and len(wanted) == len(shape):
        shape = tuple(a if isinstance(a, Size) else b for a, b in zip(wanted, shape, strict=True))
    if created.function == "arange":
        shape = (_arange_size(created.settings, shape[0]),)
    return Tensor(shape, keras.backend.standardize_dtype(made.dtype))


def _arange_size(settings: dict[str, Any], size: int) -> int:
    start, stop, step = settings["start"], settings["stop"], settings["step"]
    if step not in (None, 1):
        return size
    return start if stop is None else stop - start


_FOREIGN = tuple(
    str(Path(path).parent)
    for path in (
        keras.__file__,
        traceback.__file__,
        str(getattr(sys.modules.get("tensorflow"), "__file__", "") or keras.__file__),
        str(Path(__file__).parent),
    )
)


def _frames() -> list[list[Any]]:
    """[[file, line, code], …] of the statements of the model's own code that are running, outermost first."""
    found: list[list[Any]] = []
    frame = sys._getframe(1)
    while frame is not None and not (frame.f_code.co_name == "run" and frame.f_code.co_filename == __file__):
        found.append([frame.f_code.co_filename, frame.f_lineno, ""])
        frame = frame.f_back
    return [
        [file, line, linecache.getline(file, line).strip()] for file, line, _ in reversed(found) if not _foreign(file)
    ]


def _foreign(file: str) -> bool:
    return file.startswith(("<", *_FOREIGN))


def _own_frames(summary: Any) -> list[list[Any]]:
    return [[frame.filename, frame.lineno] for frame in summary if not _foreign(frame.filename)]
