"""From the tree of calls to the classes to generate, children before parents."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from porter.converters.codegen.body import Body, BodyBuilder, Path, Variable
from porter.converters.codegen.context import Context
from porter.converters.codegen.identifiers import class_identifier
from porter.converters.codegen.inline import inline
from porter.converters.codegen.loops import roll
from porter.converters.codegen.nodes import Apply, Expr, Items, Literal, transform, walk
from porter.converters.codegen.normal import Block, Construct, Local, Repeat
from porter.converters.codegen.sequential import Chain, sequential_children
from porter.converters.codegen.tree import Call
from porter.converters.codegen.unify import Differ, Template, unify
from porter.converters.library import SEQUENTIALS, is_library
from porter.errors import UnsupportedError

# Library classes that are kept as classes although they have no submodules that are called.
_KEPT = ("MultiheadAttention",)


@dataclass
class Program:
    """Everything that the printer needs: classes in order, the root last, and where each variable comes from."""

    templates: list[Template]
    variables: list[Variable] = field(default_factory=list)
    modules: dict[str, Path] = field(default_factory=dict)  # module path -> attribute path from the root


def plan(context: Context, root: Call) -> Program:
    """Decide which modules become classes, and make the classes.

    A module whose calls cannot be told apart by literals is inlined into its caller, which is always right.
    """
    while True:
        context.constructs.clear()
        context.trains.clear()
        context.held.clear()
        context.inlined |= _library_leaves(context, root)
        try:
            return _Planner(context, root).run()
        except _Inline as demand:
            if demand.path in context.inlined or not demand.path:
                raise UnsupportedError(f"{demand.path or 'the model'}: {demand.reason}") from demand
            context.inlined.add(demand.path)


class _Inline(Exception):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = path, reason


def _calls(node: Call) -> Iterator[Call]:
    for item in node.calls():
        yield item
        yield from _calls(item)


def _library_leaves(context: Context, root: Call) -> set[str]:
    """Modules of the source framework's own library that are single layers: they become layers of their parent."""
    found = set()
    for node in _calls(root):
        library, name = node.cls.rpartition(".")[::2]
        if not is_library(library):
            continue
        if (name in _KEPT and not _is_one_layer(node)) or name == "Sequential":
            continue
        if library.startswith(("torch.nn.utils", "torch.nn.modules.container")) or not any(True for _ in _calls(node)):
            found.add(node.path)
    return found


def _is_one_layer(node: Call) -> bool:
    """Whether a library module became a single layer of the target."""
    statements = list(node.statements())
    applied = sum(isinstance(part, Apply) for statement in statements for part in walk(statement.expr))
    return applied == 1 and len(statements) <= 4


class _Planner:
    def __init__(self, context: Context, root: Call) -> None:
        self.context = context
        self.root = root
        self.bodies: dict[str, Body] = {}
        self.templates: list[Template] = []
        self.template_of: dict[str, Template] = {}
        self.names: set[str] = set(context.dialect.reserved_locals)

    def run(self) -> Program:
        groups: dict[tuple[str, int], dict[str, list[Call]]] = defaultdict(lambda: defaultdict(list))
        heights: dict[str, int] = {}
        for node in [*_calls(self.root), self.root]:
            if node.path not in self.context.inlined:
                heights[node.path] = max(heights.get(node.path, 0), self._height(node))
        nested = self._self_nested()
        for node in [*_calls(self.root), self.root]:
            if node.path not in self.context.inlined:
                key = (node.cls, heights[node.path] if node.cls in nested else 0)
                groups[key][node.path].append(node)
        order = sorted(groups, key=lambda key: max(heights[path] for path in groups[key]))
        for key in self._dependencies_first(order, groups):
            self._group(key[0], groups[key])
        return self._program()

    def _height(self, node: Call) -> int:
        return 1 + max(map(self._height, node.calls()), default=0)

    def _self_nested(self) -> set[str]:
        found: set[str] = set()

        def visit(node: Call, above: frozenset[str]) -> None:
            if node.cls in above:
                found.add(node.cls)
            for item in node.calls():
                visit(item, above | {node.cls})

        visit(self.root, frozenset())
        return found

    def _dependencies_first(self, order: list, groups: dict) -> list:
        key_of = {path: key for key, members in groups.items() for path in members}
        done: list = []
        visiting: set = set()

        def visit(key: tuple[str, int]) -> None:
            if key in done or key in visiting:
                return
            visiting.add(key)
            for calls in groups[key].values():
                for node in calls:
                    for inner in _calls(node):
                        if inner.path in key_of and key_of[inner.path] != key:
                            visit(key_of[inner.path])
            done.append(key)

        for key in order:
            visit(key)
        return done

    # ---- one class ----

    def _group(self, cls: str, members: dict[str, list[Call]]) -> None:
        if cls in SEQUENTIALS:
            for path in [path for path in members if path]:
                self._sequential(path, members[path])
            members = {path: calls for path, calls in members.items() if not path}
            if not members:
                return
        bodies, variants = self._fewest_variants(members)
        self.bodies.update(bodies)
        for index, variant in enumerate(variants):
            self._template(cls, index, [(path, bodies[path]) for path in variant])

    def _fewest_variants(self, members: dict[str, list[Call]]) -> tuple[dict[str, Body], list[list[str]]]:
        """The first way of writing the bodies that needs the fewest classes."""
        best: tuple[tuple[int, int], dict[str, Body], list[list[str]]] | None = None
        for as_layers in self.context.dialect.functions_as_layers:
            plain = {path: self._body(path, calls, functions_as_layers=as_layers) for path, calls in members.items()}
            for form in self.context.dialect.padding_forms:
                bodies = {path: form(body) for path, body in plain.items()}
                variants, arguments = self._variants(bodies)
                cost = (len(variants), arguments)
                if best is None or cost < best[0]:
                    best = cost, bodies, variants
                if cost == (1, 0):
                    return bodies, variants
            if best is not None and best[0][0] == 1:
                break
        assert best is not None
        return best[1:]

    def _variants(self, bodies: dict[str, Body]) -> tuple[list[list[str]], int]:
        """Instances that can share a class, and how many arguments that takes (a flag counts more than a number)."""
        variants: list[list[str]] = []
        costs: list[int] = []
        for path in sorted(
            bodies, key=lambda p: -len(bodies[p].lines)
        ):  # the fullest first: others lack something of it
            for index, variant in enumerate(variants):
                try:
                    template, _ = unify("_", [bodies[p] for p in (*variant, path)], self.context.dialect)
                except Differ:
                    continue
                variant.append(path)
                costs[index] = sum(3 if argument.default is False else 2 for argument in template.arguments)
                break
            else:
                variants.append([path])
                costs.append(0)
        return variants, sum(costs)

    def _template(self, cls: str, index: int, members: list[tuple[str, Body]]) -> None:
        name = self._class_name(cls, index, members)
        template, constructs = unify(name, [body for _, body in members], self.context.dialect)
        template.body.lines = inline(template.body.lines, template.body.outputs)
        self.templates.append(template)
        for (path, body), construct in zip(members, constructs, strict=True):
            self.context.constructs[path] = construct
            self.context.trains[path] = body.trains
            self.template_of[path] = template

    def _class_name(self, cls: str, index: int, members: list[tuple[str, Body]]) -> str:
        """The class's own name; a variant takes the attribute's name in front (`EncoderBlock`)."""
        name = class_identifier(cls, ())
        if index or name in self.names:
            words = [part for part in members[0][0].split(".") if not part.isdigit()]
            lead = "".join(
                word.capitalize() for word in (words[-1] if words else "other").rstrip("0123456789").split("_")
            )
            name = f"{lead}{name}" if lead and lead != name and f"{lead}{name}" not in self.names else f"{name}Variant"
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name

    def _body(self, path: str, calls: list[Call], *, functions_as_layers: bool = False) -> Body:
        bodies = []
        for node in calls:
            chain = self._own_sequential(node)
            if chain is not None:
                bodies.append(chain)
                continue
            try:
                bodies.append(_rolled(BodyBuilder(self.context, node, functions_as_layers=functions_as_layers).build()))
            except UnsupportedError as error:
                raise _Inline(path, str(error)) from error
        first = bodies[0]
        if not first.inputs and path and not self.context.dialect.calls_without_inputs:
            raise _Inline(path, "it is called without any tensor")
        if len(bodies) > 1:
            try:
                template, _ = unify("_", bodies, self.context.dialect)
            except Differ as difference:
                raise _Inline(path, f"its calls differ: {difference}") from difference
            if template.arguments:
                raise _Inline(path, "its calls differ in constants")
        return first

    # ---- containers ----

    def _own_sequential(self, node: Call) -> Body | None:
        """An instance of a class of the author's that only is a Sequential, as the list of its layers."""
        facts = self.context.modules.get(node.path, {})
        if not self._may_be_chain(facts):
            return None
        chain = sequential_children(self.context, node)
        if chain is None or (not node.path and not self._is_plain(chain, facts)):
            return None
        layers = Items(tuple(compressed(chain.items)), "[]")
        return Body(
            node,
            arguments=["x"],
            inputs=[0],
            outputs=[0],
            definitions={(): layers},
            variables=chain.variables,
            children=chain.children,
            layers=chain.layers,
            trains=chain.trains,
            facts=dict(facts.get("attributes", {})),
        )

    def _may_be_chain(self, facts: Mapping[str, Any]) -> bool:
        """Whether it is a Sequential, or keeps `layers` and nothing else, as a class whose call is a loop over them."""
        if facts.get("chain") or str(facts.get("file", "")).endswith("torch/nn/modules/container.py"):
            return True
        children = facts.get("children", [])
        keeps = bool(children) and all(re.fullmatch(r"layers\.\d+", name) for name in children)
        return keeps and self.context.dialect.chains_loops

    def _is_plain(self, chain: Chain, facts: Mapping[str, Any]) -> bool:
        """Whether the whole model may be a chain: its layers have no names that would be lost, nor are they frozen."""
        kept, freezes = self.context.dialect.statistics, self.context.dialect.chains_freeze
        trained = freezes or all(v.weight.trainable or v.slot in kept for v in chain.variables)
        return trained and all(str(name).isdigit() for name in facts.get("children", []))

    def _sequential(self, path: str, calls: list[Call]) -> None:
        """A chain of layers as the target's own Sequential; anything else is inlined."""
        made = [sequential_children(self.context, node) for node in calls]
        if any(item is None for item in made):
            raise _Inline(path, "not a chain of layers")
        first = made[0]
        assert first is not None
        self.context.constructs[path] = Construct(
            self.context.dialect.sequential, (("layers", Items(tuple(compressed(first.items)), "[]")),)
        )
        self.context.trains[path] = first.trains
        self.bodies[path] = Body(
            calls[0], variables=first.variables, children=first.children, layers=first.layers, trains=first.trains
        )

    # ---- the whole program ----

    def _program(self) -> Program:
        program = Program(self.templates)

        def collect(path: str, prefix: Path) -> None:
            body = self.bodies[path]
            program.modules[path] = prefix
            for variable in body.variables:
                cls = variable.cls or (self.template_of[path].name if path in self.template_of else "")
                program.variables.append(replace(variable, path=(*prefix, *variable.path), cls=cls))
            for layer, attribute in body.layers.items():
                program.modules.setdefault(layer, (*prefix, *attribute))
            for attribute, child in body.children.items():
                collect(child, (*prefix, *attribute))

        collect("", ())
        return program


def _rolled(body: Body) -> Body:
    """Lists of like layers as one definition, and loops over them."""
    lengths: dict[str, int] = {}
    for path in body.definitions:
        if len(path) == 2 and isinstance(path[1], int):
            lengths[str(path[0])] = lengths.get(str(path[0]), 0) + 1
    whole = {
        name: count
        for name, count in lengths.items()
        if count > 1 and all((name, i) in body.definitions for i in range(count))
    }
    body.lines = roll(body.lines, body.outputs, whole)
    for index, line in enumerate(body.lines):
        body.lines[index] = replace(line, expr=transform(line.expr, lambda part: _rolled_inside(part, whole)))
    return _with_lists(body, lengths)


def _rolled_inside(part: Expr, lists: Mapping[str, int]) -> Expr | None:
    """A function inside the method with its own loops."""
    if not isinstance(part, Block) or not lists:
        return None
    results = [local.number for local in walk(part.result) if isinstance(local, Local)]
    return replace(part, lines=tuple(roll(list(part.lines), results, lists)))


def _with_lists(body: Body, lengths: dict[str, int]) -> Body:
    definitions: dict[Path, Expr] = {}
    for path, definition in body.definitions.items():
        if len(path) == 2 and path[0] in lengths:
            head = str(path[0])
            if (head,) not in definitions:
                items = [
                    body.definitions.get((head, i), Literal(None))
                    for i in range(max(int(p[1]) for p in body.definitions if len(p) == 2 and p[0] == head) + 1)
                ]
                definitions[(head,)] = Items(tuple(compressed(items)), "[]")
        else:
            definitions[path] = definition
    body.definitions = definitions
    return body


def compressed(items: list[Expr]) -> list[Expr]:
    """Runs of equal items as `Repeat`."""
    result: list[Expr] = []
    index = 0
    while index < len(items):
        count = 1
        while index + count < len(items) and items[index + count] == items[index]:
            count += 1
        if count > 1 and isinstance(items[index], Construct):
            result.append(Repeat(items[index], Literal(count)))
        else:
            result += items[index : index + count]
        index += count
    return result
