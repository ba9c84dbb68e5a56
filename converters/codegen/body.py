"""One call of one module as the body of a class: attributes, numbered values, statements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters import weights as wx
from porter.converters.codegen.ambient import ambient
from porter.converters.codegen.context import Context, owner_of, within
from porter.converters.codegen.functions import Function
from porter.converters.codegen.identifiers import identifier, snake_case
from porter.converters.codegen.nodes import (
    Ambient,
    Apply,
    Expr,
    Index,
    Items,
    Layer,
    Literal,
    Ref,
    Size,
    Weight,
    dims,
    transform,
    walk,
    wrap,
)
from porter.converters.codegen.normal import Attribute, Construct, Invoke, Line, Local
from porter.converters.codegen.owned import called_on_own
from porter.converters.codegen.scope_sizes import SizeFinder
from porter.converters.codegen.signatures import argument_names, author_names, flattened, interface
from porter.converters.codegen.stored import constant_path, converted, named_by_path, same_layer, source_read
from porter.converters.codegen.subgraphs import block
from porter.converters.codegen.tree import Call, Statement
from porter.converters.numbers import shortest
from porter.converters.opset import EXACT, SIZE
from porter.errors import UnsupportedError

Path = tuple[str | int, ...]
# Constants up to this many elements stand in the source; larger ones become variables.
_LITERAL_LIMIT = 32


@dataclass
class Variable:
    """A variable of the target: where it is, what it holds, and the class of layer that has it ("" for our own)."""

    path: Path
    slot: str
    weight: Weight
    cls: str = ""


@dataclass
class Body:
    """The normal form of a class body."""

    call: Call
    arguments: list[str] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    definitions: dict[Path, Expr] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    children: dict[Path, str] = field(default_factory=dict)  # attribute -> path of the module that has its own class
    layers: dict[str, Path] = field(default_factory=dict)  # path of a module that is one layer -> its attribute
    trains: bool = False  # whether anything in it behaves differently in training
    facts: dict[str, Any] = field(default_factory=dict)  # the module's own simple attributes, which name arguments
    keys: list[str] = field(default_factory=list)  # of what it returns, if that is a mapping


class BodyBuilder:
    """Makes the body of one call."""

    def __init__(self, context: Context, node: Call, *, functions_as_layers: bool = False) -> None:
        self.context = context
        self.functions_as_layers = functions_as_layers
        self.call = node
        self.body = Body(node, facts=dict(context.modules.get(node.path, {}).get("attributes", {})))
        self.numbers: dict[ir.Value, int] = {}
        self.sizes = SizeFinder()
        self._layers: dict[Path, Layer] = {}

    # ---- the whole ----

    def build(self) -> Body:
        """The body; children with classes of their own must have been made before."""
        inputs, outputs = interface(self.context, self.call)
        self.body.arguments = argument_names(self.context, self.call, inputs)
        for value in inputs:
            self.body.inputs.append(self.number(value))
            self.learn(value, self.numbers[value])
        for item in flattened(self.context, self.call.items):
            self.item(item)
        for value in outputs:
            if value in self.context.weights and value not in self.numbers:
                self._define([value], self._given_out(self.context.weights[value]), [])
        self.body.outputs = [self.number(value) for value in outputs]
        self.make_tensors(self.body.lines, outputs)
        keys = self.context.modules.get(self.call.path, {}).get("returns", [])
        self.body.keys = keys if len(keys) == len(outputs) else []
        return self.body

    def _given_out(self, weight: Weight) -> Expr:
        """A parameter or constant that the module or a function in it returns as it is."""
        return self._array(weight) or self.context.dialect.structural("tensor", self.access(weight.expr, weight))

    def make_tensors(self, lines: list[Line], results: list[ir.Value]) -> None:
        """What is returned and is a mere number becomes a tensor of its type."""
        values = {self.numbers[value]: value for value in results if value in self.numbers}
        for index, line in enumerate(lines):
            value = values.get(line.outputs[0]) if isinstance(line.expr, Literal) else None
            if value is not None and value.dtype is not None and isinstance(line.expr, Literal):
                array = np.asarray(line.expr.value, value.dtype.numpy())
                lines[index] = replace(line, expr=self.context.dialect.array(array, value.dtype))

    def item(self, item: Statement | Call) -> None:
        """Write one item of a call."""
        if isinstance(item, Statement):
            self._statement(item)
        else:
            self._child(item)

    @contextmanager
    def inside(self) -> Iterator[list[Line]]:
        """The lines of a function inside the method; the sizes that are learned in it are not known after it."""
        lines, sizes = self.body.lines, self.sizes
        self.body.lines, self.sizes = [], sizes.copy()
        try:
            yield self.body.lines
        finally:
            self.body.lines, self.sizes = lines, sizes

    def number(self, value: ir.Value) -> int:
        """The number of a value in this body."""
        return self.numbers.setdefault(value, len(self.numbers))

    def _define(self, values: list[ir.Value], expr: Expr, frames: list[list[Any]]) -> None:
        numbers = tuple(self.number(value) for value in values)
        names, where = author_names(self.context, self.call, frames)
        self.body.lines.append(Line(numbers, expr, names, where))
        for value, number in zip(values, numbers, strict=True):
            self.learn(value, number)

    def learn(self, value: ir.Value, number: int) -> None:
        """The sizes that a value has, or is, can be told from now on."""
        if value.shape is not None:
            self.sizes.learn(Local(number), dims(value), value.metadata_props.get(SIZE, ""))

    def _statement(self, statement: Statement) -> None:
        expr = transform(statement.expr, lambda part: self.localized(part, statement))
        expr = transform(expr, self.context.dialect.simplified)
        if self.functions_as_layers and statement.path != self.call.path:
            expr = self._as_attribute(expr, statement)
        if statement.path != self.call.path:
            if isinstance(expr, Invoke):
                self.body.layers[statement.path] = expr.path
            else:
                self.body.layers.pop(statement.path, None)  # its result is more than one layer's
        self._define(statement.outputs, expr, statement.frames)

    def _as_attribute(self, expr: Expr, statement: Statement) -> Expr:
        """A function that the author has as a module of its own (an activation) as a layer of its own."""
        values = {part for part in walk(expr) if isinstance(part, Local)}
        if isinstance(expr, Invoke) or len(values) != 1:
            return expr
        value = next(iter(values))
        construct = self.context.dialect.as_layer(expr, value)
        path = self.relative(statement.path)
        if construct is None or not path or self.body.definitions.get(path, construct) != construct:
            return expr
        self.body.definitions[path] = construct
        return Invoke(path, (value,))

    def localized(self, part: Expr, statement: Statement) -> Expr | None:
        """A part of a statement's expression as this body sees it; None where it stays as it is."""
        if isinstance(part, Function):
            return block(self, part, statement)
        if isinstance(part, Ref):
            return self.value(part.value)
        if isinstance(part, Weight):
            return self.access(part.expr, part)
        if isinstance(part, Size):
            return self.sizes.find(part.expression)
        if isinstance(part, Ambient):
            return ambient(self, part.kind, statement)
        if isinstance(part, Apply):
            self.body.trains |= part.layer.takes_training
            own = called_on_own(self, part)
            return own or Invoke(self.layer_path(part.layer, statement), part.args, part.kwargs)
        return None

    def value(self, value: ir.Value) -> Expr:
        """A value as this body sees it: a local, a constant, or a parameter."""
        weight = self.context.weights.get(value)
        if weight is None or value in self.numbers:
            return Local(self.number(value))
        constant = weight.array()
        if constant is not None and constant.size == 1 and constant.ndim == 0:
            exact = value.metadata_props.get(EXACT)
            number = float(exact) if exact else constant.item()
            return Literal(shortest(number) if weight.dtype == ir.DataType.FLOAT else number)
        return self._array(weight) or self.access(weight.expr, weight)

    def _array(self, weight: Weight) -> Expr | None:
        """A small constant as the source writes it; None for what an object holds."""
        constant = weight.array()
        if constant is None or constant.size > _LITERAL_LIMIT:
            return None
        return self.context.dialect.array(constant, weight.dtype)

    def tensor(self, value: ir.Value) -> Expr:
        """A value where a mere number will not do: what a function returns has one type in all branches and turns."""
        weight = self.context.weights.get(value)
        return self.value(value) if weight is None or value in self.numbers else self._given_out(weight)

    # ---- layers ----

    def relative(self, path: str) -> Path:
        """A module path as an attribute of this class: numbers index lists of like children."""
        rest = path[len(self.call.path) :].lstrip(".") if self.call.path else path
        parts = rest.split(".") if rest else []
        return self._attribute(parts, self.call.path)

    def _attribute(self, parts: list[str], base: str) -> Path:
        """The attribute path from module `base`: through the classes on the way, the rest is one name."""
        reserved = self.context.dialect.reserved
        if not parts:
            return ()
        if len(parts) == 1 and parts[0].isdigit() and base != self.call.path:
            added = self.context.dialect.added
            if any(isinstance(part, Construct) and part.cls in added for part in walk(self.context.constructs[base])):
                raise UnsupportedError(f"{base} is in the hands of several modules, and has layers that pad")
            return (parts[0],)
        lead = f"{base}." if base else ""
        steps = [lead + ".".join(parts[:count]) for count in range(len(parts))]
        for count in range(1, len(parts)):
            if steps[count] in self.context.constructs and steps[count] not in self.context.inlined:
                return (*self._attribute(parts[:count], base), *self._attribute(parts[count:], steps[count]))
        if len(parts) == 2 and parts[1].isdigit() and self._is_list(steps[1]):
            return (identifier(parts[0], reserved), int(parts[1]))
        return (identifier("_".join(parts), reserved),)

    def _is_list(self, path: str) -> bool:
        facts = self.context.modules.get(path)  # a list that Keras tracks is no layer itself
        return facts is None or str(facts.get("class", "")).endswith("container.ModuleList")

    def layer_path(self, layer: Layer, statement: Statement) -> Path:
        """The attribute that holds a layer; one layer for every use of the same module."""
        owner = owner_of(layer.weights[0][1]) if layer.weights else statement.path
        if layer.weights and (layer.weights[0][1].kind == "constant" or named_by_path(layer.weights[0][1])):
            owner = statement.path
        if not owner or not within(owner, self.call.path):
            owner = statement.path
        path = self.relative(owner)
        if not path:
            path = (identifier(snake_case(layer.cls.rpartition(".")[2]), self.context.dialect.reserved),)
        if layer.name:
            path = (
                (*path[:-1], f"{path[-1]}_{layer.name}")
                if isinstance(path[-1], str)
                else (f"{path[0]}_{path[1]}_{layer.name}",)
            )
        path = self._free_path(path, layer)
        if path not in self._layers:
            self._layers[path] = layer
            kwargs = tuple((name, self._argument(value)) for name, value in layer.kwargs)
            self.body.definitions[path] = Construct(layer.cls, kwargs)
            self.body.variables += [Variable(path, slot, weight, layer.cls) for slot, weight in layer.weights]
            for slot, weight in layer.weights:
                names = weight.expr.sources()
                for source in names:
                    whole = len(names) == 1 or source_read(self.context.dialect, source, weight.expr, Items(()))
                    if whole is not None:
                        self.context.held.setdefault(source, (owner, slot, weight.expr))
        return path

    def _argument(self, value: Any) -> Expr:
        """A constructor argument; a layer may be one (what Bidirectional wraps)."""
        if isinstance(value, Layer):
            return Construct(value.cls, tuple((name, self._argument(item)) for name, item in value.kwargs))
        return wrap(value)

    def _free_path(self, path: Path, layer: Layer) -> Path:
        candidate, kind = path, snake_case(layer.cls.rpartition(".")[2])
        for attempt in range(1, 100):
            taken = self._layers.get(candidate)
            if taken is None and candidate not in self.body.definitions:
                return candidate
            if taken is not None and same_layer(taken, layer):
                return candidate
            stem = "_".join(str(part) for part in path)
            candidate = (f"{stem}_{kind}" if attempt == 1 and not stem.endswith(kind) else f"{stem}_{kind}_{attempt}",)
        raise AssertionError(path)

    # ---- parameters outside layers ----

    def access(self, expr: wx.WeightExpr, weight: Weight) -> Expr:
        """A parameter at run time: its variable, and what must be done to it."""
        dialect = self.context.dialect
        if isinstance(expr, wx.Source) or (len(expr.sources()) == 1 and self._storable(expr, weight)):
            return self._variable(expr, weight)
        match expr:
            case wx.Transpose(inner=inner, perm=perm):
                return dialect.structural("transpose", self.access(inner, weight), perm=perm)
            case wx.Reshape(inner=inner, shape=shape):
                return dialect.structural("reshape", self.access(inner, weight), shape=shape)
            case wx.Flip(inner=inner, axes=axes):
                return dialect.structural("flip", self.access(inner, weight), axes=axes)
            case wx.Concat(parts=parts, axis=axis):
                return dialect.structural(
                    "concat", Items(tuple(self.access(part, weight) for part in parts), "[]"), axis=axis
                )
        raise UnsupportedError(f"no way to read {expr.to_json()} at run time")

    def _storable(self, expr: wx.WeightExpr, weight: Weight) -> bool:
        """Whether a variable may be stored in this very form: a rearrangement of one whole tensor, used alone."""
        key = self._held_key(expr, weight)
        if key in self.context.held:
            return self.context.held[key][2] == expr
        inner: wx.WeightExpr = expr
        if not self.context.dialect.stores_reshaped and len(expr.shape) != len(next(iter(expr.sources().values()))):
            return False
        while isinstance(inner, wx.Transpose | wx.Reshape | wx.Flip):
            inner = inner.inner
        return isinstance(inner, wx.Source) and inner.whole

    def _variable(self, expr: wx.WeightExpr, weight: Weight) -> Expr:
        (name,) = expr.sources()
        if isinstance(expr, wx.Source) and not expr.whole:
            whole = self.access(wx.source(name, expr.full), weight)
            return Index(
                whole,
                tuple(
                    Literal(slice(*(None if b == full else b for b, full in zip(box, (0, size), strict=True))))
                    for box, size in zip(expr.box, expr.full, strict=True)
                ),
            )
        key = self._held_key(expr, weight)
        held = self.context.held.get(key)
        if held is None:
            path = constant_path(self.context, self.call.path, name) if weight.kind == "constant" else name
            if within(path.rpartition(".")[0], self.call.path) and len(self.relative(path)) > 1:
                # The class of the module that owns it does not read it, and so does not have it.
                lead = f"{self.call.path}." if self.call.path else ""
                path = lead + path.removeprefix(lead).replace(".", "_")
            self.context.held[key] = held = (path, "", expr)
        path, slot, stored = held
        if not within(path.rpartition(".")[0], self.call.path):
            raise UnsupportedError(f"the parameter {name} belongs to a module that is not in reach")
        attribute = self._held_attribute(path, slot, stored, weight)
        if stored == expr:
            return attribute
        return converted(self.context.dialect, attribute, stored, expr)

    def _held_key(self, expr: wx.WeightExpr, weight: Weight) -> str:
        """A parameter is held once; of a constant every class that reads it has its own."""
        (name,) = expr.sources()
        return f"{self.call.path}:{name}" if weight.kind == "constant" else name

    def _held_attribute(self, path: str, slot: str, stored: wx.WeightExpr, weight: Weight) -> Expr:
        if slot:
            return Attribute(self.relative(path), slot)
        relative = self.relative(path)
        if len(relative) == 1:
            relative = self._own_attribute(str(relative[0]), stored)
        if len(relative) == 1 and relative not in self.body.definitions:
            held = weight.with_expr(stored)
            self.body.definitions[relative] = self.context.dialect.variable(str(relative[0]), held)
            self.body.variables.append(Variable(relative, "", held))
        return Attribute(relative)

    def _own_attribute(self, name: str, stored: wx.WeightExpr) -> Path:
        """The attribute that holds a variable, or will; `a.b` and `a_b` of one model have the same name here."""
        holding = {variable.path: variable.weight.expr.sources() for variable in self.body.variables}
        for attempt in itertools.count(1):
            path: Path = (name if attempt == 1 else f"{name}_{attempt}",)
            if holding.get(path, stored.sources()) == stored.sources() and (
                path in holding or path not in self.body.definitions
            ):
                return path
        raise AssertionError(name)

    # ---- children with classes of their own ----

    def _child(self, node: Call) -> None:
        inputs, outputs = interface(self.context, node)
        path = self.relative(node.path)
        self.body.definitions.setdefault(path, self.context.constructs[node.path])
        self.body.children[path] = node.path
        self.body.trains |= self.context.trains[node.path]
        frames = next((statement.frames for statement in reversed(list(node.statements()))), [])
        self._define(outputs, Invoke(path, tuple(self.value(value) for value in inputs)), frames)
