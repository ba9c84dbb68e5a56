"""The calls of a traced Keras model as structured ONNX."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras import internals, table
from porter.converters.frontends.keras.dims import Dim
from porter.converters.frontends.keras.dtypes import from_keras
from porter.converters.frontends.keras.initial import draws
from porter.converters.frontends.keras.modules import describe
from porter.converters.frontends.keras.paths import camel, layer_paths, variable_names
from porter.converters.frontends.keras.symbolic import Size
from porter.converters.frontends.keras.trace import Call, Tensor, Trace
from porter.converters.frontends.keras.training import refuse_lost_dropout
from porter.converters.opset import HOLDS, INITIAL, KIND, MODULES, OPSET, ORIGIN, SCOPE, SIZE, SOURCE, TRAINABLE
from porter.errors import ExportError, UnsupportedError


def translate(model: Any, trace: Trace, shapes: dict[int, list[Dim]], names: list[str]) -> ir.Model:
    """Structured ONNX of the calls; `names` are those of the inputs in order.

    Raises:
        UnsupportedError: layers or operations without a translation, all of them named.
    """
    return Translator(model, trace, shapes, names).run()


class Translator:
    """The state of one translation: which ONNX value each tensor of the trace is."""

    def __init__(self, model: Any, trace: Trace, shapes: dict[int, list[Dim]], names: list[str]) -> None:
        self.model = model
        self.trace = trace
        self.shapes = shapes
        self.names = names
        self.op = Builder()
        self.env: dict[int, ir.Value] = {}
        self.variables = variable_names(model)
        self.layers = {"": model, **layer_paths(model)}
        refuse_lost_dropout(self.layers)
        self.trained = internals.trained_by_nature(model)
        self.draws = draws(model)

    def run(self) -> ir.Model:
        self._refuse_missing()
        inputs = [self._input(tensor, name) for tensor, name in zip(self.trace.inputs, self.names, strict=True)]
        self.op.reserve([*self.names, *self.variables.values()])
        for position, call in enumerate(self.trace.calls):
            self._call(position, call)
        graph = ir.Graph(
            inputs,
            self._outputs(inputs),
            nodes=self.op.nodes,
            initializers=list(self.op.initializers.values()),
            opset_imports={"": OPSET},
            name=root_name(self.model),
        )
        modules = describe(self.model, self.trace.signatures, self._name_of)
        modules[""]["returns"] = internals.outputs_in_order(self.trace.outputs)[1]
        graph.metadata_props[MODULES] = json.dumps(modules)
        return ir.Model(graph, ir_version=10, producer_name="porter")

    def _refuse_missing(self) -> None:
        missing: dict[tuple[str, str], Counter[str]] = {}
        for call in self.trace.calls:
            if not isinstance(call.subject, internals.Created) and table.find(call.subject) is None:
                key = (type(call.subject).__name__, table.reason(call.subject))
                missing.setdefault(key, Counter())[call.path] += 1
        if missing:
            lines = [
                f"  {name} ({sum(where.values())}x) in {', '.join(list(where)[:4])}{', …' * (len(where) > 4)}: {why}"
                for (name, why), where in sorted(missing.items())
            ]
            raise UnsupportedError(
                f"{len(missing)} layer(s) or operation(s) of {root_name(self.model)} have no translation to ONNX:\n"
                + "\n".join(lines)
                + "\nReplace them with others; `porter inspect` lists everything that a model calls."
            )

    # ---- values ----

    def _input(self, tensor: Tensor, name: str) -> ir.Value:
        value = ir.Value(
            name=name, shape=ir.Shape(self.shapes[id(tensor)]), type=ir.TensorType(from_keras(tensor.dtype))
        )
        value.metadata_props[HOLDS] = name
        self._origins(value)
        self.env[id(tensor)] = value
        return value

    def _origins(self, value: ir.Value) -> None:
        for axis, size in enumerate(value.shape):
            if not isinstance(size, int) and str(size.value).isidentifier():
                self.op.origins.setdefault(str(size.value), (value, axis))

    def _name_of(self, leaf: Any) -> str | None:
        value = self.env.get(id(leaf))
        return value.name if value is not None else None

    def _argument(self, leaf: Any) -> Any:
        """A leaf of a call's arguments as a rule takes it."""
        if isinstance(leaf, Tensor):
            return self.env[id(leaf)]
        if isinstance(leaf, internals.Variable):
            return self.parameter(leaf)
        if isinstance(leaf, Size):
            return self.op.size(leaf.expression)
        if isinstance(leaf, slice):
            return slice(*(self._argument(part) for part in (leaf.start, leaf.stop, leaf.step)))
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype") and not isinstance(leaf, np.generic):
            return self.op.tensor(np.asarray(leaf))
        return leaf

    def parameter(self, variable: Any) -> ir.Value:
        """The initializer of a variable."""
        name = self.variables.setdefault(id(variable), variable.path)
        if name in self.op.initializers:
            return self.op.initializers[name]
        dtype = from_keras(variable.dtype)
        shape = ir.Shape(tuple(variable.shape))
        tensor = ir.LazyTensor(lambda: ir.tensor(np.asarray(variable), name=name), dtype=dtype, shape=shape, name=name)
        value = ir.Value(name=name, shape=shape, type=ir.TensorType(dtype), const_value=tensor)
        value.metadata_props[KIND] = "parameter" if id(variable) in self.trained else "buffer"
        value.metadata_props[TRAINABLE] = str(int(variable.trainable))
        if id(variable) in self.draws:
            value.metadata_props[INITIAL] = self.draws[id(variable)].to_json()
        self.op.initializers[name] = value
        return value

    # ---- calls ----

    def _call(self, position: int, call: Call) -> None:
        tensors = internals.flat(call.outputs)
        self._stamp(position, call, tensors)
        self.owner = self.layers.get(call.scopes[-1].path) if call.scopes else None
        first = len(self.op.nodes)
        args, kwargs = internals.mapped(self._argument, (call.args, call.kwargs))
        try:
            result = self._apply(call.subject, args, kwargs)
        except (UnsupportedError, TypeError) as error:
            raise UnsupportedError(f"{type(call.subject).__name__} in {call.path} ({call.line}): {error}") from error
        results = internals.flat(result)
        if len(results) != len(tensors):
            raise ExportError(f"{type(call.subject).__name__} has {len(tensors)} outputs, its rule gave {len(results)}")
        for number, (value, tensor) in enumerate(zip(results, tensors, strict=True)):
            self._define(tensor, value, first, f"call_{position}#{number}")

    def _stamp(self, position: int, call: Call, tensors: list[Tensor]) -> None:
        self.op.prefix = _prefix(call.subject)
        self.op.metadata = {
            SCOPE: json.dumps([[scope.path, scope.number, scope.cls] for scope in call.scopes]),
            ORIGIN: f"call_{position}",
        }
        if call.frames:
            self.op.metadata[SOURCE] = json.dumps(call.frames)
        self.op.shapes = [self.shapes[id(tensor)] for tensor in tensors]
        self.op.shape = self.op.shapes[0] if tensors else None
        self.op.dtype = from_keras(tensors[0].dtype) if tensors else None

    def _apply(self, subject: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if isinstance(subject, internals.Created):
            settings = internals.mapped(self._argument, subject.settings)
            return table.creation(subject.function)(self.op, **settings)
        rule = table.find(subject)
        assert rule is not None
        if isinstance(subject, internals.Layer):
            kwargs = {key: value for key, value in kwargs.items() if key != "training" and value is not None}
            return rule.function(self.op, Parameters(subject, self), *args, **kwargs)
        settings = {}
        for name in rule.settings:
            if name in ("operation", "owner"):
                settings[name] = subject if name == "operation" else self.owner
            else:
                settings[name] = internals.mapped(self._argument, getattr(subject, name))
        return rule.function(self.op, *args, **kwargs, **settings)

    def _define(self, tensor: Tensor, value: ir.Value, first: int, held: str) -> None:
        value = self.op.cast(value, from_keras(tensor.dtype))
        if any(value.producer() is new for new in self.op.nodes[first:]) and not value.metadata_props.get(SIZE):
            value.shape = ir.Shape(self.shapes[id(tensor)])
            self._origins(value)
        value.metadata_props[HOLDS] = " ".join([*value.metadata_props.get(HOLDS, "").split(), held])
        self.env[id(tensor)] = value

    def _outputs(self, inputs: list[ir.Value]) -> list[ir.Value]:
        results: list[ir.Value] = []
        for leaf in internals.outputs_in_order(self.trace.outputs)[0]:
            if leaf is None:
                continue
            if not isinstance(leaf, Tensor):
                raise ExportError(f"{root_name(self.model)} returns {leaf!r}, which depends on no input")
            value = self.env[id(leaf)]
            if value in results or value in inputs or value.producer() is None:
                copied = self.op.Identity(value)
                copied.shape, copied.type = value.shape, value.type
                value = copied
            results.append(value)
        return results


class Parameters:
    """A layer whose variables are the graph's initializers; everything else is the layer's own."""

    def __init__(self, layer: Any, translator: Translator) -> None:
        self._layer = layer
        self._translator = translator

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._layer, name)
        if isinstance(value, internals.Variable):
            return self._translator.parameter(value)
        if isinstance(value, internals.Layer):
            return Parameters(value, self._translator)
        return value


def _prefix(subject: Any) -> str:
    if isinstance(subject, internals.Layer):
        return "".join(c if c.isalnum() else "_" for c in subject.name)
    if isinstance(subject, internals.Created):
        return subject.function
    kind = type(subject).__name__
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(kind))


def root_name(model: Any) -> str:
    """The name of the model's class: its own, or what a functional model is called."""
    if type(model).__module__.startswith("keras."):
        return camel(model.name)
    return type(model).__name__
