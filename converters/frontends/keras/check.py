"""The translation checked call by call, before any code is made of it.

The calls of the trace are made again, by Keras itself in float64 and at sizes that the tracer did not see. What each of
them became in ONNX is evaluated on the *true* inputs of that call, so that an error shows where it arises and nowhere
else, and compared with what Keras gives. At the end the outputs must be those of the model as a whole: then the trace
is the model. Calls that are alike in layer, arguments, shapes and ONNX nodes are compared once.
"""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import onnx_ir as ir

from porter.converters.frontends.comparison import TOLERANCE, difference, external
from porter.converters.frontends.evaluate import as_double, evaluate_nodes
from porter.converters.frontends.keras import internals, running, table
from porter.converters.frontends.keras.interface import Interface
from porter.converters.frontends.keras.symbolic import Size, evaluate
from porter.converters.frontends.keras.trace import Call, Tensor, Trace
from porter.converters.opset import HOLDS, ORIGIN, SIZE
from porter.errors import ExportError

# Which of several equal elements is picked is Keras' own choice: what they point at is compared instead.
_PICKING = {"TopK": 1, "Argsort": 0}
# What TensorFlow computes in float32 inside, whatever it is given: the coordinates of pixels, whose rounding grows with
# the sides. It looks the cubic kernel up in a table of 1024 places.
_SINGLE_INSIDE, _LOOKED_UP = 1e-5, 2e-3


def check(model: Any, trace: Trace, graph: ir.Model, called: Interface) -> None:
    """Compare every call's translation with Keras.

    Raises:
        ExportError: naming the first layer or operation whose translation differs, its path and its line.
    """
    run = _Check(model, trace, graph.graph, called)
    with running.doubled(model):
        run.calls()
        whole = run.whole()
    run.compare_whole(run.whole() if whole is None else whole, 1e-3 if whole is None else TOLERANCE)


class _Check:
    """The state of one check: Keras' tensors, the ONNX values that they are, and the sizes."""

    def __init__(self, model: Any, trace: Trace, graph: ir.Graph, called: Interface) -> None:
        self.model = model
        self.trace = trace
        self.called = called
        self.tensors: dict[int, Any] = {}
        self.sizes: dict[str, int] = {}
        self.groups: dict[str, list[ir.Node]] = {}
        for node in graph:
            self.groups.setdefault(node.metadata_props.get(ORIGIN, ""), []).append(node)
        self.holders: dict[str, list[ir.Value]] = {}
        for value in [*graph.inputs, *graph.initializers.values(), *(o for node in graph for o in node.outputs)]:
            for name in value.metadata_props.get(HOLDS, "").split():
                self.holders.setdefault(name, []).append(value)
        self.known = {value: _constant(value) for value in graph.initializers.values()}
        self.seen: set[tuple] = set()
        self.last = {
            id(leaf): position
            for position, call in enumerate(trace.calls)
            for leaf in internals.flat((call.args, call.kwargs))
            if isinstance(leaf, Tensor)
        }
        self.last |= {id(leaf): len(trace.calls) for leaf in internals.flat(trace.outputs)}
        self.until = self._lifetimes(graph)

    def _lifetimes(self, graph: ir.Graph) -> dict[ir.Value, int]:
        """{value: the last call whose nodes read it}."""
        until: dict[ir.Value, int] = {}
        for name, nodes in self.groups.items():
            position = int(name.partition("_")[2]) if name else len(self.trace.calls)
            for value in external(nodes):
                until[value] = max(until.get(value, -1), position)
        return until

    def calls(self) -> None:
        """Make every call again."""
        for tensor, name, value in zip(self.trace.inputs, self.called.names, self.inputs("float64"), strict=True):
            self._define(tensor, value, name, -1)
        for position, call in enumerate(self.trace.calls):
            self._step(position, call)

    def inputs(self, dtype: str | None) -> list[Any]:
        """One more example than the tracer saw; floats in `dtype`, or as they are."""
        arrays = [_one_more(array, axes) for array, axes in zip(self.called.arrays, self.called.axes, strict=True)]
        return [keras.ops.convert_to_tensor(as_double(array) if dtype else array) for array in arrays]

    def whole(self) -> list[Any] | None:
        """What the model gives, flat; None where it does not run in float64.

        TensorFlow may have no kernel for that, and a model that names float32 mixes the two.
        """
        double = keras.config.floatx() == "float64"
        args, kwargs = self.called.pack(self.inputs("float64" if double else None))
        try:
            return internals.flat(running.called_in_inference(self.model, args, kwargs))
        except Exception:
            if double:
                return None
            raise

    def compare_whole(self, whole: list[Any] | None, tolerance: float) -> None:
        """What the calls give, one by one, must be what the model gives."""
        assert whole is not None
        for number, (leaf, truth) in enumerate(zip(internals.flat(self.trace.outputs), whole, strict=True)):
            if isinstance(leaf, Tensor):
                ours = np.asarray(self.tensors[id(leaf)])
                problem = difference(as_double(ours), as_double(np.asarray(truth)), "the model", tolerance)
                if problem:
                    raise ExportError(
                        f"{type(self.model).__name__} is not what its layers do one by one: output {number}: {problem}."
                        " Its call does something that is neither a layer nor an operation of Keras, or depends on "
                        "values; write it with keras.ops."
                    )

    def _step(self, position: int, call: Call) -> None:
        nodes = self.groups.get(f"call_{position}", [])
        truths = internals.flat(self._by_keras(call))
        computed = self._by_onnx(call, nodes)
        tensors = internals.flat(call.outputs)
        for number, (tensor, truth) in enumerate(zip(tensors, truths, strict=True)):
            array = np.asarray(truth)
            for value in self.holders.get(f"call_{position}#{number}", []):
                got = computed.get(value, self.known.get(value))
                if got is not None:
                    self._compare(call, number, got, array, nodes)
            self._define(tensor, truth, f"call_{position}#{number}", position)
        for value in {output for node in nodes for output in node.outputs}:
            if value.metadata_props.get(SIZE) and value in computed:
                self.known[value] = computed[value]
        self._forget(position)

    def _define(self, tensor: Tensor, truth: Any, held: str, position: int) -> None:
        self.tensors[id(tensor)] = truth
        for size, actual in zip(tensor.shape, truth.shape, strict=True):
            if isinstance(size, Size) and size.expression.isidentifier():
                self.sizes.setdefault(size.expression, int(actual))
        for value in self.holders.get(held, []):
            self.known[value] = as_double(np.asarray(truth))

    def _forget(self, position: int) -> None:
        for value in [v for v in self.known if v.const_value is None and self.until.get(v, -1) <= position]:
            del self.known[value]
        for leaf in [leaf for leaf in self.tensors if self.last.get(leaf, -1) <= position]:
            del self.tensors[leaf]

    # ---- the two sides ----

    def _actual(self, leaf: Any) -> Any:
        """A leaf of a call's arguments at the sizes of this check, in float64."""
        if isinstance(leaf, Tensor):
            return self.tensors[id(leaf)]
        if isinstance(leaf, Size):
            return evaluate(leaf.expression, self.sizes)
        if isinstance(leaf, slice):
            return slice(*(self._actual(part) for part in (leaf.start, leaf.stop, leaf.step)))
        if keras.ops.is_tensor(leaf) and keras.backend.is_float_dtype(leaf.dtype):
            return keras.ops.cast(leaf, "float64")
        return leaf

    def _by_keras(self, call: Call) -> Any:
        args, kwargs = internals.mapped(self._actual, (call.args, call.kwargs))
        subject = call.subject
        if isinstance(subject, internals.Created):
            settings = internals.mapped(self._actual, subject.settings)
            return getattr(keras.ops, subject.function)(**_double_dtype(settings))
        if not isinstance(subject, internals.Layer):
            return running.run(self._at_these_sizes(subject).call, args, kwargs)
        rule = table.find(subject)
        bare = rule is not None and rule.activates and subject.activation is not None
        with running.without_activation(subject) if bare else nullcontext():
            return running.run(subject.call, args, kwargs)

    def _at_these_sizes(self, operation: Any) -> Any:
        """The operation with its settings in numbers and in float64."""
        settings = {key: value for key, value in vars(operation).items() if not key.startswith("_")}
        actual = _double_dtype({key: internals.mapped(self._actual, value) for key, value in settings.items()})
        changed = copy.copy(operation)
        for key, value in actual.items():
            object.__setattr__(changed, key, value)
        return changed

    def _by_onnx(self, call: Call, nodes: list[ir.Node]) -> dict[ir.Value, np.ndarray]:
        """What the nodes of one call give on true inputs; nothing for a call like one that was compared."""
        if not nodes:
            return {}
        signature = self._signature(call, nodes)
        sizes = any(output.metadata_props.get(SIZE) for node in nodes for output in node.outputs)
        if signature in self.seen and not sizes:
            return {}
        self.seen.add(signature)
        known = {value: self.known[value] for value in external(nodes)}
        try:
            evaluate_nodes(nodes, known)
        except Exception as error:
            raise ExportError(f"{self._where(call)} cannot be evaluated: {type(error).__name__}: {error}") from error
        return {output: known[output] for node in nodes for output in node.outputs if output in known}

    def _signature(self, call: Call, nodes: list[ir.Node]) -> tuple:
        """What a translation depends on: its nodes, how they are wired, shapes and small constants."""
        places: dict[ir.Value, Any] = {}
        described = []
        for number, node in enumerate(nodes):
            wiring = tuple(None if i is None else places.get(i) or self._outside(i) for i in node.inputs)
            attributes = tuple(sorted((key, str(attribute.value)) for key, attribute in node.attributes.items()))
            described.append((node.op_type, wiring, attributes))
            places.update({output: ("made", number, k) for k, output in enumerate(node.outputs)})
        settings = tuple(sorted(_plain(vars(call.subject)).items()))
        arguments = tuple(self._given(leaf) for leaf in internals.flat((call.args, call.kwargs)))
        return (type(call.subject).__name__, settings, arguments, tuple(described))

    def _given(self, leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            truth = self.tensors[id(leaf)]
            return (tuple(truth.shape), str(truth.dtype))
        return str(leaf) if isinstance(leaf, Size | int | float | str | bool | type(None)) else str(type(leaf))

    def _outside(self, value: ir.Value) -> Any:
        array = self.known[value]
        small = value.const_value is not None and array.size <= 64 and not value.metadata_props.get(HOLDS)
        return (array.dtype.str, array.shape, array.tobytes() if small else None)

    # ---- the comparison ----

    def _compare(self, call: Call, number: int, got: np.ndarray, truth: np.ndarray, nodes: list[ir.Node]) -> None:
        problem = difference(got, as_double(truth), "Keras", self._tolerance(call, truth))
        if problem and _PICKING.get(type(call.subject).__name__) == number and got.shape == truth.shape:
            source, axis = self._sorted(call)
            problem = difference(np.take_along_axis(source, got, axis), np.take_along_axis(source, truth, axis))
        if problem:
            raise ExportError(
                f"{self._where(call)} is not equal to Keras on the same inputs: {problem}. "
                "This is a fault of porter's translation of it; please report it with the model."
            )

    def _tolerance(self, call: Call, truth: np.ndarray) -> float:
        if type(call.subject).__name__ not in ("Resize", "UpSampling2D"):
            return TOLERANCE
        if call.subject.interpolation == "bicubic":
            return _LOOKED_UP
        sides = slice(-2, None) if call.subject.data_format == "channels_first" else slice(-3, -1)
        longest = max(*truth.shape[sides], *self._actual(call.args[0]).shape[sides])
        return max(_SINGLE_INSIDE, longest * 2.0**-23)

    def _sorted(self, call: Call) -> tuple[np.ndarray, int]:
        source, axis = np.asarray(self._actual(call.args[0])), getattr(call.subject, "axis", -1)
        return (source.reshape(-1), 0) if axis is None else (source, axis)

    def _where(self, call: Call) -> str:
        what = type(call.subject).__name__
        if isinstance(call.subject, internals.Created):
            what = call.subject.function
        return f"the ONNX translation of {what} in {call.path} of {type(self.model).__name__} ({call.line})"


def _constant(value: ir.Value) -> np.ndarray:
    assert value.const_value is not None
    return as_double(value.const_value.numpy())


def _one_more(array: np.ndarray, axes: dict[int, str]) -> np.ndarray:
    """One more example in the batch, where its size varies: a size that the tracer did not see."""
    if 0 not in axes or not array.shape[0]:
        return array
    return np.take(array, np.arange(array.shape[0] + 1) % array.shape[0], axis=0)


_NARROW = ("float32", "float16", "bfloat16")


def _double_dtype(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        key: "float64" if key == "dtype" and isinstance(value, str) and value in _NARROW else value
        for key, value in settings.items()
    }


def _plain(settings: dict[str, Any]) -> dict[str, str]:
    """What of an object's attributes says how it computes."""
    simple = (bool, int, float, str, tuple, list, type(None))
    return {
        key: str(value)
        for key, value in settings.items()
        if not key.startswith("_") and key not in ("name", "built") and isinstance(value, simple)
    }
