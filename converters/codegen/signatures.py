"""What a module call takes and gives, in the author's order and under the author's names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from porter.converters.codegen.context import Context, owner_of, within
from porter.converters.codegen.functions import reads
from porter.converters.codegen.identifiers import identifier
from porter.converters.codegen.tree import Call, Statement
from porter.converters.graph.orders import NAMES


def flattened(context: Context, items: list[Statement | Call]) -> Iterator[Statement | Call]:
    """Items of a call with the inlined inner calls spliced in."""
    for item in items:
        if isinstance(item, Call) and item.path in context.inlined:
            yield from flattened(context, item.items)
        else:
            yield item


def interface(context: Context, node: Call) -> tuple[list[ir.Value], list[ir.Value]]:
    """The values that a call takes and gives, in the order of the module's own signature where that is known."""
    statements = list(node.statements())
    defined = {value for statement in statements for value in statement.defines()}
    if not node.path:
        return list(context.graph.inputs), list(context.graph.outputs)
    inside = {id(statement) for statement in statements}
    inputs: dict[ir.Value, None] = {}
    for statement in statements:
        for value in reads(statement.expr):
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


# For arguments that nobody named: the same in every instance of a class.
_PLAIN = ("x", "y", "z", "u", "v", "w")


def argument_names(context: Context, node: Call, inputs: list[ir.Value]) -> list[str]:
    """What the author calls the arguments; a lone one is the forward's first parameter."""
    reserved = context.dialect.reserved_locals
    known = _signature(context, node)
    by_value: dict[str, str] = {}
    for argument, recorded in known[0] if known else []:
        if recorded:
            by_value.setdefault(recorded, argument)
    parameters = context.modules.get(node.path, {}).get("parameters", [])
    names: list[str] = []
    for index, value in enumerate(inputs):
        name = next((by_value[origin] for origin in _origins(value) if origin in by_value), None)
        if name is None and not node.path:
            name = value.name
        if name is None and len(inputs) == 1:
            name = parameters[0] if parameters else "x"
        if name is None:
            name = parameters[index] if len(parameters) == len(inputs) else _PLAIN[index % len(_PLAIN)]
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


def author_names(
    context: Context, node: Call, frames: list[list[Any]]
) -> tuple[tuple[str, ...], tuple[str, int] | None]:
    """The variables that the author's statement assigns, and where it stands."""
    facts = context.modules.get(node.path, {})
    for file, line, code in reversed(frames):
        if file == facts.get("file") and facts.get("line", 0) <= line <= facts.get("end", -1):
            match = _ASSIGNED.match(code)
            names = tuple(name.strip() for name in match[1].split(",")) if match else ()
            return names, (file, line)
    return (), None
