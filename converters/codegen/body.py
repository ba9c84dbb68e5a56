"""One call of one module as the body of a class: attributes, numbered values, statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from porter.converters import weights as wx
from porter.converters.codegen.dialect import Dialect
from porter.converters.codegen.identifiers import identifier, snake_case
from porter.converters.codegen.nodes import (
    Apply,
    Attribute,
    Construct,
    Expr,
    Index,
    Invoke,
    Items,
    Layer,
    Line,
    Literal,
    Local,
    Ref,
    Size,
    Weight,
    call,
    dims,
    transform,
    walk,
    wrap,
)
from porter.converters.codegen.scope_sizes import SizeFinder
from porter.converters.codegen.tree import Call, Statement
from porter.converters.graph.layout import NAMES
from porter.converters.numbers import shortest
from porter.converters.opset import EXACT
from porter.errors import UnsupportedError

Path = tuple[str | int, ...]
# Constants up to this many elements stand in the source; larger ones become variables.
_LITERAL_LIMIT = 32


@dataclass
class Variable:
    """A variable of the target: where it is, and what it holds."""

    path: Path
    slot: str
    weight: Weight


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
    trains: bool = False  # whether anything in it behaves differently in training
    facts: dict[str, Any] = field(default_factory=dict)  # the module's own simple attributes, which name arguments


@dataclass
class Context:
    """What all bodies of one model share."""

    dialect: Dialect
    weights: Mapping[ir.Value, Weight]
    modules: Mapping[str, dict[str, Any]]
    graph: ir.Graph
    readers: Mapping[ir.Value, list[Statement]]  # statements that read a value
    constructs: dict[str, Construct] = field(default_factory=dict)  # module path -> how its class is constructed
    trains: dict[str, bool] = field(default_factory=dict)
    inlined: set[str] = field(default_factory=set)  # module paths that get no class of their own
    held: dict[str, tuple[str, str, wx.WeightExpr]] = field(default_factory=dict)  # source -> (layer path, slot, stored form)


def owner_of(weight: Weight) -> str:
    """The module that a weight's sources belong to: their longest common path."""
    paths = [name.split(".")[:-1] for name in weight.expr.sources()]
    common = paths[0]
    for path in paths[1:]:
        count = next((i for i, (a, b) in enumerate(zip(common, path, strict=False)) if a != b), min(len(common), len(path)))
        common = common[:count]
    return ".".join(common)


def within(path: str, scope: str) -> bool:
    """Whether a module path lies at or below another."""
    return not scope or path == scope or path.startswith(f"{scope}.")


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
            self.body.inputs.append(self._number(value))
            self.sizes.learn(Local(self.numbers[value]), dims(value) if value.shape is not None else ())
        for item in flattened(self.context, self.call):
            if isinstance(item, Statement):
                self._statement(item)
            else:
                self._child(item)
        self.body.outputs = [self._number(value) for value in outputs]
        return self.body

    def _number(self, value: ir.Value) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def _define(self, values: list[ir.Value], expr: Expr, frames: list[list[Any]]) -> None:
        numbers = tuple(self._number(value) for value in values)
        names, where = author_names(self.context, self.call, frames)
        self.body.lines.append(Line(numbers, expr, names, where))
        for value, number in zip(values, numbers, strict=True):
            if value.shape is not None:
                self.sizes.learn(Local(number), dims(value))

    def _statement(self, statement: Statement) -> None:
        expr = transform(statement.expr, lambda part: self._localized(part, statement))
        if self.functions_as_layers and statement.path != self.call.path:
            expr = self._as_attribute(expr, statement)
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

    def _localized(self, part: Expr, statement: Statement) -> Expr | None:
        if isinstance(part, Ref):
            return self.value(part.value)
        if isinstance(part, Weight):
            return self.access(part.expr, part)
        if isinstance(part, Size):
            return self.sizes.find(part.expression)
        if isinstance(part, Apply):
            self.body.trains |= part.layer.takes_training
            path = self.layer_path(part.layer, statement)
            return Invoke(path, part.args, part.kwargs, part.layer.takes_training)
        return None

    def value(self, value: ir.Value) -> Expr:
        """A value as this body sees it: a local, a constant, or a parameter."""
        weight = self.context.weights.get(value)
        if weight is None or value in self.numbers:
            return Local(self._number(value))
        constant = weight.array()
        if constant is not None and constant.size <= _LITERAL_LIMIT:
            if constant.size == 1 and constant.ndim == 0:
                exact = value.metadata_props.get(EXACT)
                number = float(exact) if exact else constant.item()
                return Literal(shortest(number) if weight.dtype == ir.DataType.FLOAT else number)
            return self.context.dialect.array(constant, weight.dtype)
        return self.access(weight.expr, weight)

    # ---- layers ----

    def relative(self, path: str) -> Path:
        """A module path as an attribute of this class: numbers index lists of like children."""
        rest = path[len(self.call.path) :].lstrip(".") if self.call.path else path
        parts = rest.split(".") if rest else []
        return self._attribute(parts)

    def _attribute(self, parts: list[str]) -> Path:
        reserved = self.context.dialect.reserved
        if not parts:
            return ()
        full = [self.call.path, *parts] if self.call.path else parts
        if len(parts) == 2 and parts[1].isdigit() and self._is_list(".".join(full[:-1])):
            return (identifier(parts[0], reserved), int(parts[1]))
        first = ".".join(full[:2] if self.call.path else full[:1])
        if len(parts) > 1 and first not in self.context.inlined and first in self.context.constructs:
            return (identifier(parts[0], reserved), *parts[1:])
        return (identifier("_".join(parts), reserved),)

    def _is_list(self, path: str) -> bool:
        facts = self.context.modules.get(path, {})
        return str(facts.get("class", "")).endswith("container.ModuleList")

    def layer_path(self, layer: Layer, statement: Statement) -> Path:
        """The attribute that holds a layer; one layer for every use of the same module."""
        owner = owner_of(layer.weights[0][1]) if layer.weights else statement.path
        if layer.weights and layer.weights[0][1].kind == "constant":
            owner = statement.path
        if not within(owner, self.call.path):
            owner = statement.path
        path = self.relative(owner)
        if not path:
            path = (identifier(snake_case(layer.cls.rpartition(".")[2]), self.context.dialect.reserved),)
        if layer.name:
            path = (*path[:-1], f"{path[-1]}_{layer.name}") if isinstance(path[-1], str) else (f"{path[0]}_{path[1]}_{layer.name}",)
        path = self._free_path(path, layer)
        if path not in self._layers:
            self._layers[path] = layer
            kwargs = tuple((name, self._argument(value)) for name, value in layer.kwargs)
            self.body.definitions[path] = Construct(layer.cls, kwargs)
            self.body.variables += [Variable(path, slot, weight) for slot, weight in layer.weights]
            for slot, weight in layer.weights:
                if len(weight.expr.sources()) == 1:
                    self.context.held.setdefault(next(iter(weight.expr.sources())), (owner, slot, weight.expr))
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
        if isinstance(expr, wx.Source) or len(expr.sources()) == 1 and self._storable(expr):
            return self._variable(expr, weight)
        match expr:
            case wx.Transpose(inner=inner, perm=perm):
                return dialect.structural("transpose", self.access(inner, weight), perm=perm)
            case wx.Reshape(inner=inner, shape=shape):
                return dialect.structural("reshape", self.access(inner, weight), shape=shape)
            case wx.Flip(inner=inner, axes=axes):
                return dialect.structural("flip", self.access(inner, weight), axes=axes)
            case wx.Concat(parts=parts, axis=axis):
                return dialect.structural("concat", Items(tuple(self.access(part, weight) for part in parts), "[]"), axis=axis)
        raise UnsupportedError(f"no way to read {expr.to_json()} at run time")

    def _storable(self, expr: wx.WeightExpr) -> bool:
        """Whether a variable may be stored in this very form: a rearrangement of one whole tensor, used alone."""
        (name,) = expr.sources()
        if name in self.context.held:
            return self.context.held[name][2] == expr
        inner: wx.WeightExpr = expr
        while isinstance(inner, wx.Transpose | wx.Reshape | wx.Flip):
            inner = inner.inner
        return isinstance(inner, wx.Source) and inner.whole

    def _variable(self, expr: wx.WeightExpr, weight: Weight) -> Expr:
        (name,) = expr.sources()
        if isinstance(expr, wx.Source) and not expr.whole:
            whole = self.access(wx.source(name, expr.full), weight)
            return Index(whole, tuple(Literal(slice(*(None if b == full else b for b, full in zip(box, (0, size), strict=True)))) for box, size in zip(expr.box, expr.full, strict=True)))
        held = self.context.held.get(name)
        if held is None:
            owner = name.rpartition(".")[0]
            if weight.kind == "constant" or not within(owner, self.call.path):
                owner = self.call.path if weight.kind == "constant" else owner
            stem = "constant" if weight.kind == "constant" else name.rpartition(".")[2]
            self.context.held[name] = held = (f"{owner}.{stem}" if owner else stem, "", expr)
        path, slot, stored = held
        if not within(path.rpartition(".")[0], self.call.path):
            raise OutsideError(name)
        attribute = self._held_attribute(path, slot, stored, weight)
        if stored == expr:
            return attribute
        return self._converted(attribute, stored, expr)

    def _held_attribute(self, path: str, slot: str, stored: wx.WeightExpr, weight: Weight) -> Expr:
        if slot:
            return Attribute(self.relative(path), slot)
        relative = self.relative(path)
        if len(relative) == 1 and relative not in self.body.definitions:
            trainable = weight.trainable and weight.kind == "parameter"
            self.body.definitions[relative] = self.context.dialect.variable(str(relative[0]), stored.shape, weight.dtype, trainable=trainable)
            self.body.variables.append(Variable(relative, "", weight.with_expr(stored)))
        return Attribute(relative)

    def _converted(self, attribute: Expr, stored: wx.WeightExpr, wanted: wx.WeightExpr) -> Expr:
        """From the form that a variable is stored in to the one that is wanted."""
        source, perm = _permuted_source(stored)
        target, other = _permuted_source(wanted)
        if source is None or source != target:
            raise UnsupportedError(f"{wanted.to_json()} from a variable stored as {stored.to_json()}")
        relative = tuple(perm.index(axis) for axis in other)
        if relative == tuple(range(len(relative))):
            return attribute
        return self.context.dialect.structural("transpose", attribute, perm=relative)

    # ---- children with classes of their own ----

    def _child(self, node: Call) -> None:
        inputs, outputs = interface(self.context, node)
        path = self.relative(node.path)
        self.body.definitions.setdefault(path, self.context.constructs[node.path])
        self.body.children[path] = node.path
        trains = self.context.trains[node.path]
        self.body.trains |= trains
        frames = next((statement.frames for statement in reversed(list(node.statements()))), [])
        self._define(outputs, Invoke(path, tuple(self.value(value) for value in inputs), (), trains), frames)


class OutsideError(Exception):
    """A parameter of another module is used here; its name is the argument."""


def _permuted_source(expr: wx.WeightExpr) -> tuple[wx.WeightExpr | None, tuple[int, ...]]:
    if isinstance(expr, wx.Transpose) and isinstance(expr.inner, wx.Source):
        return expr.inner, expr.perm
    if isinstance(expr, wx.Source):
        return expr, tuple(range(len(expr.shape)))
    return None, ()


def same_layer(a: Layer, b: Layer) -> bool:
    """Whether two uses mean one layer object."""
    return a.cls == b.cls and a.weights == b.weights and repr(a.kwargs) == repr(b.kwargs)


def flattened(context: Context, node: Call) -> Iterator[Statement | Call]:
    """A call's items with the inlined inner calls spliced in."""
    for item in node.items:
        if isinstance(item, Call) and item.path in context.inlined:
            yield from flattened(context, item)
        else:
            yield item


def _reads(context: Context, statement: Statement) -> Iterator[ir.Value]:
    for part in walk(statement.expr):
        if isinstance(part, Ref):
            yield part.value


def interface(context: Context, node: Call) -> tuple[list[ir.Value], list[ir.Value]]:
    """The values that a call takes and gives, in the order of the module's own signature where that is known."""
    statements = list(node.statements())
    defined = {value for statement in statements for value in statement.outputs}
    if not node.path:
        return list(context.graph.inputs), list(context.graph.outputs)
    inside = {id(statement) for statement in statements}
    inputs: dict[ir.Value, None] = {}
    for statement in statements:
        for value in _reads(context, statement):
            if value not in defined and _comes_from_outside(context, value, node):
                inputs[value] = None
    outputs = [
        value
        for statement in statements
        for value in statement.outputs
        if value in context.graph.outputs or any(id(reader) not in inside for reader in context.readers.get(value, []))
    ]
    known = _signature(context, node)
    if known:
        order = {name: index for index, (_, name) in reversed(list(enumerate(known[0])))}
        inputs = dict.fromkeys(sorted(inputs, key=lambda value: _position(value, order)))
        rank = {name: index for index, name in reversed(list(enumerate(known[1])))}
        outputs = sorted(outputs, key=lambda value: _position(value, rank))
    return list(inputs), outputs


def _comes_from_outside(context: Context, value: ir.Value, node: Call) -> bool:
    weight = context.weights.get(value)
    if weight is None:
        return True
    if weight.kind == "constant":
        return False
    return not within(owner_of(weight), node.path)


def _signature(context: Context, node: Call) -> tuple[list[tuple[str, str | None]], list[str | None]] | None:
    """[(argument name, value name)], [output value names] of a call, as the front end recorded them."""
    facts = context.modules.get(node.path, {})
    key = node.path if node.number == 0 else f"{node.path}@{node.number}"
    recorded = facts.get("calls", {}).get(key)
    if not recorded:
        return None
    names = facts.get("parameters", [])
    arguments = list(zip(names, recorded["args"], strict=False)) + list(recorded["kwargs"].items())
    position = {name: index for index, name in enumerate(names)}
    arguments.sort(key=lambda pair: position.get(pair[0], len(position)))
    return arguments, recorded["outputs"]


def argument_names(context: Context, node: Call, inputs: list[ir.Value]) -> list[str]:
    """What the author calls the arguments; a lone one is the forward's first parameter."""
    reserved = context.dialect.reserved_locals
    known = _signature(context, node)
    by_value: dict[str, str] = {}
    for name, value in known[0] if known else []:
        if value:
            by_value.setdefault(value, name)
    parameters = context.modules.get(node.path, {}).get("parameters", [])
    names: list[str] = []
    for index, value in enumerate(inputs):
        name = next((by_value[origin] for origin in _origins(value) if origin in by_value), None)
        if name is None and not node.path:
            name = value.name
        if name is None:
            name = parameters[0] if len(inputs) == 1 and parameters else f"{parameters[index]}" if len(parameters) == len(inputs) else value.name or "x"
        name = "x" if name == "input" and "x" not in names else identifier(name, reserved)
        while name in names:
            name = f"{name}_{identifier(value.name or 'x')}"
        names.append(name)
    return names


def _origins(value: ir.Value) -> list[str]:
    """The names that the front end gave a value: one that is stored in another order stands for several."""
    return [value.name or "", *value.metadata_props.get(NAMES, "").split("|")]


def _position(value: ir.Value, order: Mapping[str | None, int]) -> int:
    return min((order[name] for name in _origins(value) if name in order), default=len(order))


_ASSIGNED = re.compile(r"^\(?\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*\)?\s*(?:[-+*/@|&]?=)(?!=)")


def author_names(context: Context, node: Call, frames: list[list[Any]]) -> tuple[tuple[str, ...], tuple[str, int] | None]:
    """The variables that the author's statement assigns, and where it stands."""
    facts = context.modules.get(node.path, {})
    for file, line, code in reversed(frames):
        if file == facts.get("file") and facts.get("line", 0) <= line <= facts.get("end", -1):
            match = _ASSIGNED.match(code)
            names = tuple(name.strip() for name in match[1].split(",")) if match else ()
            return names, (file, line)
    return (), None


def renumbered(line: Line, numbers: Mapping[int, int]) -> Line:
    """The line with other value numbers."""
    expr = transform(line.expr, lambda part: Local(numbers[part.number]) if isinstance(part, Local) and part.number in numbers else None)
    return replace(line, outputs=tuple(numbers.get(number, number) for number in line.outputs), expr=expr)


__all__ = ["Body", "BodyBuilder", "Context", "OutsideError", "Variable", "author_names", "call", "flattened", "interface", "owner_of", "renumbered", "same_layer", "within"]
