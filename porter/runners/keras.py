"""Run a Keras model on numpy arrays, in float32 or in float64, eagerly or as a tf.function."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import numpy as np

from porter.errors import InconclusiveError
from porter.runners.axes import to_source, to_target
from porter.runners.base import (
    UNIT_ROUNDOFF,
    Array,
    Call,
    ModuleCall,
    Permutation,
    Precision,
    cast_inputs,
    outputs_by_path,
    random_signs,
)
from porter.runners.call_site import call_site
from porter.runners.flatten import flatten_outputs
from porter.runners.keras_forms import assign_weights, float64_copy, keras_precision
from porter.runners.keras_paths import layer_paths

Mode = Literal["eager", "function", "xla"]


class KerasRunner:
    """A Keras model made by `build`, once in each precision.

    Args:
        build: takes nothing, returns the model with its weights; called under `keras.config.floatx()` of the
            precision wanted, so it must not fix a dtype itself.
        name: what reports call it.
        mode: `eager`, `function` (tf.function) or `xla` (tf.function compiled by XLA).
        device: a TensorFlow device such as `CPU:0`.
        input_names: for each flat input the keyword to pass it by, or None for a positional one.
        call: `call(model, tensors)` instead, for inputs that are nested or outputs that hold no tensors.
        input_permutations: per input, `target axis i = source axis perm[i]`, or None.
        output_permutations: the same for the flattened outputs.
    """

    def __init__(
        self,
        build: Callable[[], Any],
        *,
        name: str | None = None,
        mode: Mode = "eager",
        device: str = "CPU:0",
        input_names: Sequence[str | None] | None = None,
        call: Call | None = None,
        input_permutations: Sequence[Permutation] | None = None,
        output_permutations: Sequence[Permutation] | None = None,
    ) -> None:
        self.name = name or "keras model"
        self._build: Callable[[Precision], Any] = lambda dtype: build()
        self._mode = mode
        self._device = device
        self._call = call or keras_call(input_names)
        self._input_permutations = input_permutations
        self._output_permutations = output_permutations
        self._forms: dict[Precision, Any] = {}
        self._functions: dict[Precision, Any] = {}
        self._weights: list[Array] | None = None
        self._doubles = False  # whether the float64 form is the model itself, with other variables for a while
        self._output_names: list[str] = []

    @classmethod
    def from_model(cls, model: Any, **options: Any) -> KerasRunner:
        """Over a live model: itself in float32, a copy from its configuration in float64.

        A model whose configuration does not rebuild it computes in float64 itself, eagerly, while it is asked to.
        """
        runner = cls(lambda: model, **{"name": f"keras {type(model).__name__}", **options})

        def form(dtype: Precision) -> Any:
            if dtype == "float64":
                try:
                    return float64_copy(model)
                except InconclusiveError:
                    runner._doubles = True
            return model

        runner._build = form
        return runner

    @property
    def output_names(self) -> list[str]:
        return self._output_names

    def run(self, inputs: Sequence[Array], dtype: Precision = "float32") -> list[Array]:
        with self._ready(dtype) as model:
            return self._run(self._function(dtype, model), inputs, dtype)

    def why_not(self, dtype: Precision) -> str | None:
        try:
            self._form(dtype)
        except InconclusiveError as error:
            return str(error)
        return None

    def module_paths(self) -> list[str]:
        return list(layer_paths(self._form("float32")))

    def record_modules(
        self, inputs: Sequence[Array], dtype: Precision = "float32", paths: Sequence[str] | None = None
    ) -> list[ModuleCall]:
        """Eager whatever the runner's mode is: a graph's inner values cannot be read from outside."""
        calls: list[ModuleCall] = []
        with self._ready(dtype) as model:
            layers = layer_paths(model)
            wanted = {path: layers[path] for path in (layers if paths is None else paths) if path in layers}
            with _recording(wanted, calls):
                self._run(lambda *tensors: self._call(model, tensors), inputs, dtype)
        return calls

    def run_modules(
        self, inputs: Sequence[Array], dtype: Precision = "float32", paths: Sequence[str] | None = None
    ) -> dict[str, list[Array]]:
        return outputs_by_path(self.record_modules(inputs, dtype, paths))

    def perturbed(self, rng: np.random.Generator, unit: float = UNIT_ROUNDOFF) -> KerasRunner:
        other = copy.copy(self)
        other._weights = [
            value * (1 + unit * random_signs(rng, value.shape)) if np.issubdtype(value.dtype, np.floating) else value
            for value in self._form("float64").get_weights()
        ]
        return other

    def rounded(self, rng: np.random.Generator, unit: float = UNIT_ROUNDOFF) -> None:
        return None

    def versions(self) -> dict[str, str]:
        import keras
        import tensorflow as tf

        return {"keras": keras.__version__, "tensorflow": tf.__version__}

    def _form(self, dtype: Precision) -> Any:
        if dtype not in self._forms:
            with keras_precision(dtype):
                self._forms[dtype] = self._build(dtype)
        return self._forms[dtype]

    def _function(self, dtype: Precision, model: Any) -> Any:
        if self._mode == "eager" or (self._doubles and dtype == "float64"):
            return lambda *tensors: self._call(model, tensors)
        if dtype not in self._functions:
            import tensorflow as tf

            self._functions[dtype] = tf.function(
                lambda *tensors: self._call(model, tensors), jit_compile=self._mode == "xla"
            )
        return self._functions[dtype]

    @contextmanager
    def _ready(self, dtype: Precision) -> Iterator[Any]:
        """The model in `dtype`, with the perturbed weights in place while it is used."""
        from porter.converters.frontends.keras.running import doubled

        model = self._form(dtype)
        itself = doubled(model) if self._doubles and dtype == "float64" else nullcontext()
        with keras_precision(dtype), itself:
            if self._weights is None:
                yield model
                return
            before = model.get_weights()
            assign_weights(model, self._weights)
            try:
                yield model
            finally:
                assign_weights(model, before)

    def _run(self, function: Any, inputs: Sequence[Array], dtype: Precision) -> list[Array]:
        import tensorflow as tf

        arrays = to_target(cast_inputs(inputs, dtype), self._input_permutations, "input")
        with tf.device(self._device):
            outputs = flatten_outputs(function(*[tf.constant(x) for x in arrays]), tf.is_tensor)
            results = [np.asarray(value) for value in outputs.values()]
        self._output_names = list(outputs)
        return to_source(results, self._output_permutations, "output")


def keras_call(input_names: Sequence[str | None] | None) -> Call:
    """Flat tensors to positional arguments or to the keywords named, in inference mode."""

    def call(model: Any, tensors: Sequence[Any]) -> Any:
        import keras

        # A functional model takes one argument, structured like its inputs; any other model takes its call's.
        functional = isinstance(model, keras.Model) and hasattr(model, "_inputs_struct")
        mode = {"training": False} if getattr(model, "_call_has_training_arg", False) else {}
        # The one input of a model without a call of its own is called `inputs` there, whatever its own name is.
        if isinstance(model, keras.Sequential) or (functional and isinstance(model._inputs_struct, keras.KerasTensor)):
            return model(*tensors, **mode)
        if input_names is None:
            return model(list(tensors), **mode) if functional and len(tensors) > 1 else model(*tensors, **mode)
        positional = [x for x, name in zip(tensors, input_names, strict=True) if name is None]
        named = {name: x for x, name in zip(tensors, input_names, strict=True) if name is not None}
        return model(named, **mode) if functional and not positional else model(*positional, **named, **mode)

    return call


@contextmanager
def _recording(layers: dict[str, Any], calls: list[ModuleCall]) -> Iterator[None]:
    import keras
    import tensorflow as tf

    folders = (str(Path(keras.__file__).parent), str(Path(tf.__file__).parent))

    def wrap(path: str, layer: Any) -> Any:
        call = layer.call

        def recorded(*args: Any, **kwargs: Any) -> Any:
            output = call(*args, **kwargs)
            file, line = call_site(folders)
            tensors = [x for x in (*args, *kwargs.values()) if tf.is_tensor(x)]
            results = flatten_outputs(output, tf.is_tensor).values()
            calls.append(
                ModuleCall(
                    path,
                    type(layer).__name__,
                    file,
                    line,
                    [np.asarray(x) for x in tensors],
                    [np.asarray(x) for x in results],
                )
            )
            return output

        return recorded

    # Set past Keras' own __setattr__, which would track the wrapper as part of the layer.
    for path, layer in layers.items():
        object.__setattr__(layer, "call", wrap(path, layer))
    try:
        yield
    finally:
        for layer in layers.values():
            object.__delattr__(layer, "call")
