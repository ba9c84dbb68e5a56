"""From a program of TensorFlow to structured ONNX: standard operators with names, scopes and kinds.

Translated here, one function per operator: converters of TensorFlow graphs fold and freeze before they translate, which
loses every BatchNorm and the names of the weights.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from porter.converters.frontends.tensorflow import control, table
from porter.converters.frontends.tensorflow.builder import Builder
from porter.converters.frontends.tensorflow.functions import CALLS, LAYER, REGIONS, SCOPE_MARK, Function, Ref
from porter.converters.frontends.tensorflow.lists import TensorList
from porter.converters.frontends.tensorflow.program import Program, Variable, imported
from porter.converters.opset import KIND, MODULES, OPSET, ORIGIN, SCOPE, SOURCE, TRAINABLE
from porter.errors import ExportError, PorterError, UnsupportedError

Values = dict[Ref, Any]


@dataclass
class Translation:
    """The structured model, and which of its values stands for which tensor of the program."""

    model: ir.Model
    graph: tf.Graph
    holders: list[tuple[Ref, ir.Value]] = field(default_factory=list)


def translate(program: Program, symbols: Mapping[str, Mapping[int, str]]) -> Translation:
    """The program as structured ONNX.

    Args:
        program: what to translate.
        symbols: {input: {axis: name of its size}}, for every axis that varies.

    Raises:
        UnsupportedError: naming every operator without a rule.
    """
    return Translator(program, symbols).run()


class Translator:
    """One program on its way to ONNX."""

    def __init__(self, program: Program, symbols: Mapping[str, Mapping[int, str]]) -> None:
        self.program = program
        self.symbols = symbols
        self.op = Builder()
        self.graph = program.imported()
        self.holders: list[tuple[Ref, ir.Value]] = []
        self.taken: set[str] = set()
        self.unknown = 0

    def run(self) -> Translation:
        self._refuse_missing()
        env: Values = {}
        inputs = self._inputs(env)
        self._variables(env)
        self.holders += [(ref, value) for ref, value in env.items()]
        self.statements(self.graph, env, main=True)
        outputs = self._outputs(env, inputs)
        graph = ir.Graph(
            inputs,
            outputs,
            nodes=self.op.nodes,
            initializers=list(self.op.initializers.values()),
            opset_imports={"": OPSET, **{node.domain: 1 for node in self.op.nodes if node.domain}},
            name=self.program.name,
        )
        graph.metadata_props[MODULES] = json.dumps(self.program.modules)
        return Translation(ir.Model(graph, ir_version=10, producer_name="porter"), self.graph, self.holders)

    # ---- what is missing ----

    def _refuse_missing(self) -> None:
        missing: dict[str, Counter[str]] = {}
        for function in (self.program.main, *self.program.functions.values()):
            for node in function.nodes:
                if not self._has_rule(node):
                    missing.setdefault(node.op, Counter())[node.name] += 1
        if missing:
            lines = [
                f"  {name} ({sum(where.values())}x): {', '.join(list(where)[:3])}{', …' if len(where) > 3 else ''}"
                + (f"; {table.reason(name)}" if table.reason(name) else "")
                for name, where in sorted(missing.items())
            ]
            raise UnsupportedError(
                f"{len(missing)} operator(s) of {self.program.name} have no translation to ONNX:\n"
                + "\n".join(lines)
                + "\nGive rules of your own with --rules FILE.py, or rewrite those lines with other operators."
            )

    def _has_rule(self, node: Any) -> bool:
        known = node.op in REGIONS or node.op in _BOUNDARIES or node.op in CALLS or node.op in control.LISTS
        return known or table.find(node.op) is not None or table.find(node.op, on_complex=True) is not None

    # ---- values ----

    def _inputs(self, env: Values) -> list[ir.Value]:
        made = []
        for each in self.program.inputs:
            if each.dtype.is_complex:
                raise UnsupportedError(
                    f"the input {each.name!r} is complex; take real numbers (…, 2) and make tf.complex of them"
                )
            names = self.symbols.get(each.name, {})
            shape = [names.get(axis, size) for axis, size in enumerate(each.shape)]
            value = ir.Value(
                name=self._name(each.name), shape=ir.Shape(shape), type=ir.TensorType(table.data_type(each.dtype))
            )
            for axis, size in enumerate(shape):
                if isinstance(size, str):
                    self.op.origins.setdefault(size, (value, axis))
            env[each.tensor] = value
            made.append(value)
        self.op.reserve(self.taken)
        return made

    def _variables(self, env: Values) -> None:
        for ref, variable in self.program.variables.items():
            env[ref] = self._initializer(variable)

    def _initializer(self, variable: Variable) -> ir.Value:
        array = variable.array
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], axis=-1)
        if variable.kind == "constant" and array.size <= 64:
            return self.op.tensor(array)
        name = self._name(variable.name)
        value = ir.Value(
            name=name,
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            const_value=ir.tensor(array, name=name),
        )
        value.metadata_props[KIND] = variable.kind
        value.metadata_props[TRAINABLE] = str(int(variable.trainable))
        self.op.initializers[name] = value
        self.op.reserve([name])
        return value

    def _name(self, name: str) -> str:
        label, number = name, 1
        while label in self.taken:
            number += 1
            label = f"{name}_{number}"
        self.taken.add(label)
        return label

    # ---- statements ----

    def statements(self, graph: tf.Graph, env: Values, main: bool = False) -> None:
        """Translate a graph whose placeholders are in `env`; what its nodes make joins them."""
        for operation in graph.get_operations():
            if operation.type in _BOUNDARIES:
                continue
            if main:
                self._stamp(operation)
            self.op.prefix = _identifier(operation.name)
            first = len(self.op.nodes)
            values = [env[plain(tensor.name)] for tensor in operation.inputs]
            results = self._apply(operation, values)
            for tensor, result in zip(operation.outputs, results, strict=True):
                env[tensor.name] = self._known(tensor, result, first)
                if main and isinstance(env[tensor.name], ir.Value):
                    self.holders.append((tensor.name, env[tensor.name]))

    def _stamp(self, operation: Any) -> None:
        node = operation.node_def
        self.op.metadata = {ORIGIN: operation.name}
        if SCOPE_MARK in node.attr:
            self.op.metadata[SCOPE] = node.attr[SCOPE_MARK].s.decode()
        elif self.program.modules:
            root = self.program.modules.get("", {}).get("class", self.program.name)
            self.op.metadata[SCOPE] = json.dumps([["", 0, root]])
        if operation.name in self.program.frames:
            self.op.metadata[SOURCE] = json.dumps(self.program.frames[operation.name])

    def _apply(self, operation: Any, values: list[Any]) -> list[Any]:
        node = operation.node_def
        try:
            if LAYER in node.attr:
                return self._layer(operation, values)
            if node.op in REGIONS or node.op in control.LISTS:
                return control.translate(self, operation, values)
            is_complex = [t.dtype.is_complex for t in (*operation.inputs, *operation.outputs)]
            rule = table.find(node.op, on_complex=any(is_complex))
            if rule is None:
                raise UnsupportedError("it has no translation for complex tensors" if any(is_complex) else "no rule")
            self.op.complex = is_complex[: len(operation.inputs)]
            self.op.dtypes = [_type(tensor) for tensor in operation.outputs]
            self.op.dtype = self.op.dtypes[0] if self.op.dtypes else None
            result = rule.function(self.op, *table.operands(node, values), **table.attributes(node, rule))
        except PorterError as error:
            raise type(error)(f"{node.op} ({node.name}): {error}") from error
        return list(result) if isinstance(result, tuple | list) else [result]

    def _layer(self, operation: Any, values: list[Any]) -> list[Any]:
        """A layer that was kept whole, by the rule that the Keras front end has for it."""
        from keras import tree

        from porter.converters.frontends.keras import table as keras_table
        from porter.converters.frontends.keras.translate import Parameters
        from porter.converters.frontends.tensorflow.marking import Operand

        call = self.program.layers[operation.get_attr(LAYER).decode()]
        args, kwargs = tree.map_structure(
            lambda leaf: values[leaf.number] if isinstance(leaf, Operand) else leaf, (call.args, call.kwargs)
        )
        kwargs = {key: value for key, value in kwargs.items() if key != "training" and value is not None}
        self.op.prefix = _identifier(call.layer.name)
        self.op.dtypes = [_type(tensor) for tensor in operation.outputs]
        self.op.dtype = self.op.dtypes[0]
        self.op.shapes = [
            [size if size is not None else self._fresh_size() for size in tensor.shape.as_list()]
            for tensor in operation.outputs
        ]
        self.op.shape = self.op.shapes[0]
        rule = keras_table.find(call.layer)
        assert rule is not None
        return tree.flatten(rule.function(self.op, Parameters(call.layer, self), *args, **kwargs))

    def parameter(self, variable: Any) -> ir.Value:
        """The initializer of a variable of Keras."""
        known = self.program.named[id(variable.value)]
        return self.op.initializers[known.name] if known.name in self.op.initializers else self._initializer(known)

    def _known(self, tensor: Any, value: Any, first: int) -> Any:
        """A result with its type, name and shape."""
        if not isinstance(value, ir.Value):
            return value
        wanted = _type(tensor)
        if value.dtype != wanted:
            value = self.op.cast(value, wanted)
        if value.producer() is None or not any(value.producer() is node for node in self.op.nodes[first:]):
            return value
        complete = tensor.shape.rank is not None
        static = [*tensor.shape.as_list(), *([2] if tensor.dtype.is_complex else [])] if complete else None
        if value.shape is None and static is not None:
            value.shape = ir.Shape(static)
        if value.shape is not None:
            value.shape = ir.Shape(self._merged(tensor, self.op.shape_of(value), static))
            self._learn(value)
        return value

    def _merged(self, tensor: Any, inferred: list[Any], static: list[int | None] | None) -> list[int | str]:
        if static is not None and len(static) != len(inferred):
            raise ExportError(f"{tensor.name}: {len(inferred)} axes in ONNX, {len(static)} in TensorFlow")
        merged: list[int | str] = []
        for axis, size in enumerate(inferred):
            known = static[axis] if static is not None else None
            if isinstance(size, int) and known is not None and size != known:
                raise ExportError(f"{tensor.name}: axis {axis} is {size} in ONNX and {known} in TensorFlow")
            merged.append(known if known is not None else size if size is not None else self._fresh_size())
        return merged

    def _fresh_size(self) -> str:
        self.unknown += 1
        return f"size_{self.unknown}"

    def _learn(self, value: ir.Value) -> None:
        for axis, size in enumerate(self.op.shape_of(value)):
            if isinstance(size, str) and size.isidentifier():
                self.op.origins.setdefault(size, (value, axis))

    # ---- regions ----

    def region(self, function: Function, values: Sequence[Any]) -> list[Any]:
        """The results of a function of the library, translated where it stands."""
        definition = tf.compat.v1.GraphDef()
        definition.CopyFrom(self.program.graph_def(function))
        env: Values = {}
        for name, dtype, value in zip(function.args, function.dtypes, values, strict=True):
            node = definition.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = dtype
            if isinstance(value, ir.Value) and value.shape is not None:
                sizes = [size if isinstance(size, int) else None for size in self.op.shape_of(value)]
                if tf.as_dtype(dtype).is_complex:
                    sizes = sizes[:-1]
                node.attr["shape"].shape.CopyFrom(tf.TensorShape(sizes).as_proto())
            env[f"{name}:0"] = value
        self.statements(imported(definition), env)
        return [env[plain(ref)] for ref in function.results]

    # ---- outputs ----

    def _outputs(self, env: Values, inputs: list[ir.Value]) -> list[ir.Value]:
        results: list[ir.Value] = []
        for output in self.program.outputs:
            value = env[output.tensor]
            if isinstance(value, TensorList):
                raise UnsupportedError(
                    f"the output {output.name!r} is a list of tensors; stack it (tf.TensorArray.stack)"
                )
            if self.graph.get_tensor_by_name(output.tensor).dtype.is_complex:
                raise UnsupportedError(f"the output {output.name!r} is complex; return its real and imaginary parts")
            if value in results or value in inputs or value.is_initializer():
                copy = self.op.Identity(value)
                copy.shape, copy.dtype = value.shape, value.dtype
                value = copy
            results.append(value)
        for value, output in zip(results, self.program.outputs, strict=True):
            value.name = self._name(output.name)
        return results


_BOUNDARIES = {"Placeholder", "PlaceholderV2", "NoOp"}


def plain(ref: Ref) -> Ref:
    return ref if ":" in ref else f"{ref}:0"


def _type(tensor: Any) -> ir.DataType | None:
    return None if tensor.dtype == tf.variant else table.data_type(tensor.dtype)


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "value"
