"""Sequential containers: a chain of layers stays one, when every step is a layer of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from porter.converters.codegen.body import Body, BodyBuilder, Path, Variable
from porter.converters.codegen.context import Context
from porter.converters.codegen.dialect import Dialect
from porter.converters.codegen.nodes import Expr, walk
from porter.converters.codegen.normal import Construct, Invoke, Local
from porter.converters.codegen.signatures import interface
from porter.converters.codegen.tree import Call, Statement
from porter.converters.library import ZERO_PADDINGS


@dataclass
class Chain:
    """The layers of a Sequential, their variables by number, and children with classes of their own.

    Numbers are the source's: a layer that the target needs beside them (a padding) has none.
    """

    items: list[Expr] = field(default_factory=list)
    count: int = 0  # of the layers that have a number
    variables: list[Variable] = field(default_factory=list)
    children: dict[Path, str] = field(default_factory=dict)
    layers: dict[str, Path] = field(default_factory=dict)
    trains: bool = False

    def add(self, item: Expr, dialect: Dialect) -> int:
        """Append a layer; its number, or that of the next one if it has none."""
        self.items.append(item)
        self.count += not is_added(dialect, item)
        return self.count - (not is_added(dialect, item))


def sequential_children(context: Context, node: Call) -> Chain | None:
    """The chain that a Sequential is; None when some step is no layer or takes more than the last value."""
    inputs, outputs = interface(context, node)
    if len(inputs) != 1 or len(outputs) != 1:
        return None
    chain = Chain()
    current = inputs[0]
    steps = _steps(context, node)
    if steps is None:
        return None
    for path, items in steps:
        if not items and context.modules.get(path, {}).get("class") in ZERO_PADDINGS:
            continue  # the layer that reads it pads by itself
        if not items:
            chain.add(Construct(context.dialect.identity), context.dialect)
            continue
        advanced = _step(context, chain, path, items, current)
        if advanced is None:
            return None
        if not is_added(context.dialect, chain.items[-1]):  # else its result is not one layer's
            chain.layers[path] = (chain.count - 1,)
        current = advanced
    return chain if current is outputs[0] else None


def _steps(context: Context, node: Call) -> list[tuple[str, list[Statement | Call]]] | None:
    """[(child path, its statements or its call)] in the container's order; None when they are not in that order."""
    children = context.modules.get(node.path, {}).get("children", [])
    paths = [f"{node.path}.{name}" if node.path else name for name in children]
    by_path: dict[str, list[Statement | Call]] = {path: [] for path in paths}
    position = -1
    for item in node.items:
        path = next((p for p in paths if item.path == p or item.path.startswith(f"{p}.")), None)
        if path is None or paths.index(path) < position:
            return None
        position = paths.index(path)
        by_path[path].append(item)
    return list(by_path.items())


def _step(
    context: Context, chain: Chain, path: str, items: list[Statement | Call], current: ir.Value
) -> ir.Value | None:
    """Append one child; the value that it gives."""
    if len(items) == 1 and isinstance(items[0], Call) and path not in context.inlined:
        node = items[0]
        inputs, outputs = interface(context, node)
        if inputs != [current] or len(outputs) != 1 or path not in context.constructs:
            return None
        chain.children[(chain.add(context.constructs[path], context.dialect),)] = path
        chain.trains |= context.trains[path]
        return outputs[0]
    inner = Call(path, 0, "", list(items))
    builder = BodyBuilder(context, inner)
    body = builder.body
    try:
        body = builder.build()
    except Exception:
        return None
    return _append_body(context, chain, body, builder, current)


def _append_body(
    context: Context, chain: Chain, body: Body, builder: BodyBuilder, current: ir.Value
) -> ir.Value | None:
    """Each statement of an inlined module as a layer of its own."""
    if len(body.inputs) != 1 or len(body.outputs) != 1 or builder.numbers.get(current) != body.inputs[0]:
        return None
    number = body.inputs[0]
    for line in body.lines:
        if len(line.outputs) != 1:
            return None
        expr = line.expr
        nested = _nested_layers(expr, number, body)
        if nested is not None:
            for path in nested:
                place = (chain.add(body.definitions[path], context.dialect),)
                chain.variables += [Variable(place, v.slot, v.weight, v.cls) for v in body.variables if v.path == path]
        else:
            construct = context.dialect.as_layer(expr, Local(number))
            if construct is None:
                return None
            chain.add(construct, context.dialect)
        number = line.outputs[0]
    if number != body.outputs[0]:
        return None
    chain.trains |= body.trains
    return next(value for value, own in builder.numbers.items() if own == number)


def is_added(dialect: Dialect, item: Expr) -> bool:
    """Whether a layer of a chain is one that the source has not."""
    return isinstance(item, Construct) and item.cls in dialect.added


def added_in_chains(dialect: Dialect, definitions: Iterable[Expr]) -> set[str]:
    """The classes of layers that chains have and the source has not."""
    return {
        part.cls
        for definition in definitions
        for part in walk(definition)
        if isinstance(part, Construct) and part is not definition and is_added(dialect, part)
    }


def _nested_layers(expr: Expr, number: int, body: Body) -> list[Path] | None:
    """The attributes of layers applied one around the other to one value, the innermost first."""
    paths: list[Path] = []
    while isinstance(expr, Invoke):
        if len(expr.args) != 1 or expr.kwargs or expr.path not in body.definitions or expr.path in body.children:
            return None
        paths.append(expr.path)
        expr = expr.args[0]
    return paths[::-1] if expr == Local(number) and paths else None
