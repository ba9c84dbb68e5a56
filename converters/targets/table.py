"""A target's table of rules: one function per operator whose signature is the operator's schema.

Positional parameters are the operator's inputs, keyword-only ones its attributes, annotations say what must be known
while porting. Several functions may serve one operator; they are tried in the order of registration and the first that
binds is used (a layer when the weight is a parameter, arithmetic when it is computed). Every attribute is consumed or
the rule does not bind: nothing is ignored silently.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from porter.converters.codegen.functions import Function
from porter.converters.codegen.nodes import Expr, Ref, Size, Weight
from porter.converters.graph.axes import Kind, Stance
from porter.converters.graph.canonical import constant_of
from porter.converters.graph.orders import BATCH_FIRST, CHANNEL_AXIS, Habits
from porter.converters.numbers import shortest
from porter.converters.opset import OPSET, TRAINING
from porter.converters.registry import register
from porter.converters.targets import types

# Keyword-only parameters that are no attributes: facts about the node.
# Training facts that change what a node does in training: a rule that takes no facts does not do them.
_ACTING = {"dropout", "gaussian_dropout", "gaussian_noise", "noise", "noise_shape"}
_RESERVED = {"op", "out", "outs", "training_facts", "channel_axis", "batch_first"}


@dataclass(frozen=True)
class Rule:
    """One function that translates an operator."""

    op: str
    domain: str
    function: Callable[..., Any]
    stance: Stance
    note: str
    positional: tuple[tuple[str, Any, bool], ...]  # name, annotation, required
    variadic: str | None
    rest: Any  # the annotation of a variadic parameter
    keywords: tuple[tuple[str, Any, bool], ...]


@dataclass
class Binding:
    """What the binder knows of values: which are weights, which are sizes. `function` binds a subgraph."""

    weights: Mapping[ir.Value, Weight]
    sizes: Mapping[ir.Value, tuple[int | str, ...]]
    shared: frozenset[str] = field(default_factory=frozenset)
    function: Callable[[str, ir.Graph], Function] | None = None


class CannotBind(Exception):
    """A rule does not fit a node; the message says why."""


class Target:
    """The rules of one target framework."""

    def __init__(self, name: str, habits: Habits, passes: Sequence[Callable[[ir.Model], None]] = ()) -> None:
        self.name = name
        self.habits = habits
        self.passes = tuple(passes)  # idioms of this target alone
        self.rules: dict[tuple[str, str], list[Rule]] = {}

    def __call__(
        self,
        *ops: str,
        layout: Kind = "any",
        axes: Sequence[str] = (),
        vectors: Sequence[str] = (),
        data: Sequence[int] | None = (0,),
        domain: str = "",
        note: str = "",
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a rule for operators. `axes` or `vectors` make its stance "axes"; see `Stance`."""
        kind: Kind = "axes" if axes or vectors else layout
        stance = Stance(kind, tuple(axes), tuple(vectors), None if data is None else tuple(data))

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            for op in ops:
                rule = _make_rule(op, domain, function, stance, note)
                register(self.rules.setdefault((domain, op), []), rule, function)
            return function

        return decorate

    def stance(self, node: ir.Node) -> Stance:
        """How a node stands to a permutation of axes; "fixed" for operators without a rule."""
        rules = self.rules.get((node.domain, node.op_type))
        return rules[0].stance if rules else Stance("fixed")

    def missing(self, nodes: Iterator[ir.Node]) -> list[ir.Node]:
        """Nodes whose operator has no rule."""
        return [node for node in nodes if not self.rules.get((node.domain, node.op_type))]

    def bind(self, node: ir.Node, known: Binding) -> Any:
        """What the first fitting rule makes of a node: an expression, or a tuple of one per output.

        Raises:
            CannotBind: no rule fits; the message holds each rule's reason.
        """
        reasons = []
        for rule in self.rules[(node.domain, node.op_type)]:
            try:
                args, kwargs = _arguments(rule, node, known)
                return rule.function(*args, **kwargs)
            except CannotBind as reason:
                reasons.append(str(reason))
        raise CannotBind("; ".join(dict.fromkeys(reasons)))


def _make_rule(op: str, domain: str, function: Callable[..., Any], stance: Stance, note: str) -> Rule:
    hints = typing.get_type_hints(function)
    positional, keywords, variadic, rest = [], [], None, None
    for name, parameter in inspect.signature(function).parameters.items():
        required = parameter.default is inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            keywords.append((name, hints.get(name), required))
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            variadic, rest = name, hints.get(name, types.Tensor)
        else:
            positional.append((name, hints.get(name), required))
    _check_schema(op, domain, [name for name, _, _ in positional], variadic, [name for name, _, _ in keywords])
    return Rule(op, domain, function, stance, note, tuple(positional), variadic, rest, tuple(keywords))


def _check_schema(op: str, domain: str, positional: list[str], variadic: str | None, keywords: list[str]) -> None:
    """A rule must fit its operator's schema in the pinned opset; a misfit is a bug and fails the import."""
    if domain:
        return
    schema = onnx.defs.get_schema(op, max_inclusive_version=OPSET)
    unknown = set(keywords) - set(schema.attributes) - _RESERVED
    if unknown:
        raise TypeError(f"rule for {op}: {sorted(unknown)} are no attributes of {op}-{schema.since_version}")
    many = bool(schema.inputs) and schema.inputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    if len(positional) > len(schema.inputs) and not many:
        raise TypeError(
            f"rule for {op}: {len(positional)} inputs, but {op}-{schema.since_version} has {len(schema.inputs)}"
        )


def _arguments(rule: Rule, node: ir.Node, known: Binding) -> tuple[list[Any], dict[str, Any]]:
    inputs = list(node.inputs)
    args: list[Any] = []
    for position, (name, annotation, required) in enumerate(rule.positional):
        value = inputs[position] if position < len(inputs) else None
        if value is None:
            if required:
                raise CannotBind(f"the input {name!r} is missing")
            args.append(None)
        else:
            args.append(_input(name, annotation, value, node, known))
    rest = inputs[len(rule.positional) :]
    if rule.variadic:
        args += [_input(rule.variadic, rule.rest, value, node, known) if value is not None else None for value in rest]
    elif any(value is not None for value in rest):
        raise CannotBind(f"input number {len(rule.positional) + 1} is not handled")
    return args, _keywords(rule, node, known)


def _keywords(rule: Rule, node: ir.Node, known: Binding) -> dict[str, Any]:
    import json

    facts: dict[str, Any] = {
        "op": node.op_type,
        "out": Ref(node.outputs[0]),
        "outs": [Ref(value) for value in node.outputs],
        "training_facts": json.loads(node.metadata_props.get(TRAINING, "{}")),
        "channel_axis": int(node.metadata_props.get(CHANNEL_AXIS, "1")),
        "batch_first": bool(node.metadata_props.get(BATCH_FIRST, "1")),
    }
    names = {name for name, _, _ in rule.keywords}
    kwargs = {name: facts[name] for name in names & set(facts)}
    if "training_facts" not in names:
        for name in sorted(_ACTING & facts["training_facts"].keys()):
            raise CannotBind(
                f"the {name.replace('_', ' ')} of {facts['training_facts'][name]} in training is not handled"
            )
    for name, attribute in node.attributes.items():
        if name not in names:
            raise CannotBind(f"the attribute {name}={attribute.value!r} is not handled")
        if attribute.type == ir.AttributeType.GRAPH:
            kwargs[name] = known.function(name, attribute.as_graph())
        else:
            kwargs[name] = _attribute(attribute)
    for name, _, required in rule.keywords:
        if required and name not in kwargs:
            raise CannotBind(f"the attribute {name!r} is not given")
    return kwargs


def _attribute(attribute: ir.Attr) -> Any:
    if attribute.type == ir.AttributeType.TENSOR:
        return attribute.value.numpy()
    value = attribute.value
    if attribute.type == ir.AttributeType.FLOAT:
        return shortest(value)
    if attribute.type == ir.AttributeType.FLOATS:
        return tuple(shortest(number) for number in value)
    return tuple(value) if isinstance(value, list | tuple) else value


def operand(value: ir.Value, known: Binding) -> Expr:
    """A value as a rule takes a `Tensor`: small constants are literals there."""
    return Ref(value)


def _input(name: str, annotation: Any, value: ir.Value, node: ir.Node, known: Binding) -> Any:
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)] or [annotation]
    kind = kinds[0] if len(kinds) == 1 else annotation
    if set(kinds) == {types.Tensor, Weight}:
        weight = known.weights.get(value)
        return operand(value, known) if weight is None or set(weight.expr.sources()) & known.shared else weight
    if kind in (types.Tensor, Expr):
        return operand(value, known)
    if kind is Weight:
        weight = known.weights.get(value)
        if weight is None or set(weight.expr.sources()) & known.shared:
            raise CannotBind(f"the {name} is no parameter of its own layer")
        return weight
    if kind is types.Dims:
        return _sizes(name, value, known)
    array = constant_of(value)
    if array is None:
        weight = known.weights.get(value)
        array = weight.array() if weight is not None else None
    if array is None:
        found = known.sizes.get(value)
        if found is not None and all(isinstance(size, int) for size in found):
            array = np.asarray(found, dtype=np.int64)
    if array is None:
        raise CannotBind(f"the {name} is computed at run time")
    if kind is types.Array:
        return array
    if kind in (types.Int, types.Float) or set(kinds) <= {int, float, bool}:
        return array.reshape(-1)[0].item()
    return tuple(array.reshape(-1).tolist())


def _sizes(name: str, value: ir.Value, known: Binding) -> tuple[Any, ...]:
    found = known.sizes.get(value)
    if found is None:
        array = constant_of(value)
        if array is None:
            raise CannotBind(f"the {name} depends on data")
        return tuple(int(item) for item in array.reshape(-1))
    return tuple(size if isinstance(size, int) else Size(size) for size in found)
