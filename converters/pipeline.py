"""Structured ONNX in, source text and weights out."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters import targets
from porter.converters.codegen import helpers
from porter.converters.codegen.classes import Program, plan
from porter.converters.codegen.context import Context
from porter.converters.codegen.functions import Function, function_of, own_reads
from porter.converters.codegen.identifiers import identifier
from porter.converters.codegen.module import Input, Module, frozen_paths, key
from porter.converters.codegen.nodes import Ref, Weight, call
from porter.converters.codegen.sequential import added_in_chains
from porter.converters.codegen.source import ClassWriter
from porter.converters.codegen.tree import Statement, call_tree, needed_statements
from porter.converters.graph import layout, sizes
from porter.converters.graph.canonical import canonicalize
from porter.converters.graph.derived import find_weights
from porter.converters.graph.nesting import everywhere, subgraphs
from porter.converters.initial import Draw
from porter.converters.opset import INITIAL, MODULES, SCOPE, SOURCE
from porter.converters.problems import Problem
from porter.converters.targets.table import Binding, CannotBind, Target
from porter.errors import PorterError, UnsupportedError


@dataclass(frozen=True)
class ValueSpec:
    """An input or output: its source axes, and which of them each target axis is."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    permutation: tuple[int, ...]


@dataclass
class Generated:
    """A port that is not yet on disk."""

    source: str
    root: str
    variables: dict[str, Weight]  # target name -> how it is made
    inputs: list[ValueSpec]
    outputs: list[ValueSpec]
    modules: dict[str, str]  # module path -> attribute path
    classes: list[str] = field(default_factory=list)

    def arrays(self, initializers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The target's arrays from the source's; constants bring their own."""
        made = {}
        for name, weight in self.variables.items():
            made[name] = np.asarray(weight.expr.evaluate({**initializers, **weight.constants}), order="C")
        return made

    def weight_map(self) -> dict[str, Any]:
        """Target name → expression, dtype and kind."""
        return {
            name: {
                "expression": weight.expr.to_json(),
                "dtype": str(weight.dtype.numpy()),
                "kind": weight.kind,
                "trainable": weight.trainable,
            }
            for name, weight in self.variables.items()
        }


def generate(
    model: ir.Model,
    *,
    target: str = "keras",
    native: bool = True,
    name: str = "model",
    doc: str | None = None,
) -> Generated:
    """Port a structured model. The model is changed: give a clone of one that is still needed.

    Raises:
        UnsupportedError: operators, attributes or types without a rule, all of them named.
    """
    chosen = targets.target(target)
    table = chosen.load()
    canonicalize(model)
    _run_idioms(model, table)
    _refuse_missing(model, table)
    known_sizes = sizes.find_sizes(model.graph)
    signature = [(value, list(value.shape or [])) for value in (*model.graph.inputs, *model.graph.outputs)]
    interface = layout.assign(model, table.stance, table.habits, native=native)
    weights = find_weights(model.graph)
    draws = _draws(model.graph)
    statements = _statements(model, table, weights, known_sizes)
    dialect = chosen.dialect_for(name)
    modules = json.loads(model.graph.metadata_props.get(MODULES, "{}"))
    root_class = modules.get("", {}).get("class") or model.graph.name or "Model"
    context = Context(dialect, weights, modules, model.graph, _readers(statements))
    program = plan(context, call_tree(statements, root_class))
    _refuse_torn(program)
    doc = doc or f"{program.templates[-1].name}, ported by porter."
    shared = helpers.needed(f"{chosen.__name__}.helpers", program.templates)
    return _assemble(program, dialect, shared, signature, interface, context.readers, draws, doc)


def _refuse_torn(program: Program) -> None:
    """Training would tear a parameter apart whose elements were in two variables."""
    held: dict[str, list[tuple[tuple[tuple[int, int], ...], str]]] = defaultdict(list)
    for variable in program.variables:
        if variable.weight.trainable:
            for source in variable.weight.expr.leaves():
                held[source.name].append((source.box, key(variable)))
    for name, boxes in held.items():
        for (box, one), (other, two) in itertools.combinations(boxes, 2):
            if all(a[0] < b[1] and b[0] < a[1] for a, b in zip(box, other, strict=True)):
                raise UnsupportedError(
                    f"the parameter {name} would become two variables, {one} and {two}, for layers that store it in "
                    f"different ways; let one module hold it and call that one"
                )


def _draws(graph: ir.Graph) -> dict[str, Draw]:
    """What parameters are drawn from, where that is known."""
    told = {name: value.metadata_props.get(INITIAL) for name, value in graph.initializers.items()}
    return {name: Draw.from_json(text) for name, text in told.items() if text is not None}


def _run_idioms(model: ir.Model, table: Target) -> None:
    from porter.converters.graph import idioms

    idioms.restore(model)
    for restore in table.passes:
        restore(model)


def _refuse_missing(model: ir.Model, table: Target) -> None:
    missing: dict[str, Counter[str]] = defaultdict(Counter)
    for node in table.missing(everywhere(model.graph)):
        scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
        missing[f"{node.domain + '::' if node.domain else ''}{node.op_type}"][scope[-1][0] if scope else ""] += 1
    if missing:
        lines = [
            f"  {op} ({sum(where.values())}x) in {', '.join(path or 'the model itself' for path in list(where)[:4])}"
            for op, where in sorted(missing.items())
        ]
        raise UnsupportedError(
            f"{len(missing)} operator(s) have no rule for {table.name}:\n"
            + "\n".join(lines)
            + "\nGive rules of your own with --rules FILE.py, or see `porter ops`."
        )


def _statements(model: ir.Model, table: Target, weights: dict[ir.Value, Weight], known_sizes: dict) -> list[Statement]:
    statements, problems = _bound(model, table, weights, known_sizes)
    if problems:
        raise UnsupportedError(
            f"{len(problems)} node(s) cannot be written for {table.name}:\n"
            + "\n".join(f"  {problem}" for problem in problems)
        )
    return statements


def unsupported(model: ir.Model, target: str = "keras") -> list[Problem]:
    """Every node of a structured model that a target's rules cannot write. The model is changed."""
    table = targets.target(target).load()
    canonicalize(model)
    _run_idioms(model, table)
    known_sizes = sizes.find_sizes(model.graph)
    layout.assign(model, table.stance, table.habits, native=True)
    return _bound(model, table, find_weights(model.graph), known_sizes)[1]


def _bound(
    model: ir.Model, table: Target, weights: dict[ir.Value, Weight], known_sizes: dict
) -> tuple[list[Statement], list[Problem]]:
    owners = _owners(model, weights)
    problems: list[Problem] = []

    def bind(node: ir.Node) -> Any:
        if node.outputs[0] in weights:
            return None  # read where it is used, in the form that it is stored in
        path = _scope_path(node)
        used = {name for value in node.inputs if value in weights for name in weights[value].expr.sources()}
        shared = frozenset(name for name in used if owners.get(name, path) != path)
        try:
            if not table.rules.get((node.domain, node.op_type)):
                raise CannotBind("there is no rule for it")
            return table.bind(node, Binding(weights, known_sizes, shared, bound))
        except CannotBind as reason:
            problems.append(Problem(table.name, node.op_type, path, _where(node), str(reason)))
            # What it reads is bound all the same, so that every problem is found at once.
            reads = [v for v in node.inputs if v is not None and v not in weights and v not in known_sizes]
            inner = [bound(name, graph) for name, graph in subgraphs(node).items()]
            return call(node.op_type, *(Ref(value) for value in reads), *inner)

    made: dict[ir.Graph, Function] = {}

    def bound(name: str, graph: ir.Graph) -> Function:
        if graph not in made:  # bound once, though several rules may look at it
            made[graph] = function_of(graph, name, lambda inner, outputs: needed_statements(inner, bind, outputs))
        return made[graph]

    statements = needed_statements(model.graph, bind)
    return statements, list(reversed(problems))


def _scope_path(node: ir.Node) -> str:
    scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
    return scope[-1][0] if scope else ""


def _where(node: ir.Node) -> str:
    frames = json.loads(node.metadata_props.get(SOURCE, "[]"))
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else node.name or "?"


def _owners(model: ir.Model, weights: dict[ir.Value, Weight]) -> dict[str, str | None]:
    """{parameter: the module path whose layer may hold it}, for parameters that are used in several ways.

    The module that the parameter is named after, else the first that uses it. None where that module uses it in several
    ways, or is not the first to use it, when its layer might not have been built yet: then it is a variable of its own.
    """
    users: dict[str, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for node in everywhere(model.graph):
        if node.outputs[0] in weights:
            continue
        for position, value in enumerate(node.inputs):
            if value in weights:
                for name in weights[value].expr.sources().keys() - weights[value].constants.keys():
                    users[name][_scope_path(node)].add((node.op_type, position, weights[value].expr))
    for value in model.graph.outputs:
        if value in weights:
            for name in weights[value].expr.sources():
                users[name][""].add("output")
    owners: dict[str, str | None] = {}
    for name, paths in users.items():
        own = None if "/" in name else name.rpartition(".")[0]  # a path of names of layers is no module's path
        path = own if own in paths else next(iter(paths))
        if len({use[:2] for use in paths[path]}) > 1 or path != next(iter(paths)):
            owners[name] = None
        elif len(paths) > 1:
            owners[name] = path
    return owners


def _readers(statements: Sequence[Statement]) -> dict[ir.Value, list[Statement]]:
    readers: dict[ir.Value, list[Statement]] = defaultdict(list)
    for outer in statements:
        for statement in (outer, *outer.inner()):
            for value in own_reads(statement.expr):
                readers[value].append(statement)
    return readers


def _assemble(
    program: Program,
    dialect: Any,
    shared: Sequence[str],
    signature: list,
    interface: layout.Interface,
    readers: Mapping[ir.Value, Sequence[Statement]],
    draws: Mapping[str, Draw],
    doc: str,
) -> Generated:
    *_, root = program.templates
    arguments = {template.name: template.arguments for template in program.templates}
    frozen = frozen_paths(program.variables, dialect.statistics)
    writers = [
        ClassWriter(dialect, template, arguments, root=template is root, frozen=frozen if template is root else ())
        for template in program.templates
    ]
    orders = [*interface.inputs, *interface.outputs]
    specs = [
        ValueSpec(
            value.name or "",
            str(value.dtype.numpy()) if value.dtype is not None else "float32",
            tuple(d if isinstance(d, int) else str(d.value) for d in shape),
            order,
        )
        for (value, shape), order in zip(signature, orders, strict=True)
    ]
    inputs, outputs = specs[: len(interface.inputs)], specs[len(interface.inputs) :]
    outputs = (
        [replace(spec, name=key) for spec, key in zip(outputs, root.body.keys, strict=True)]
        if root.body.keys
        else outputs
    )
    taken = [
        Input(
            value,
            identifier(s.name),
            tuple(size if isinstance(size := s.shape[a], int) else None for a in s.permutation),
            s.dtype,
            readers.get(value, ()),
        )
        for s, (value, _) in zip(inputs, signature, strict=False)
    ]
    kept = [variable for variable in program.variables if variable.slot or not dialect.in_source(variable.weight)]
    head = dialect.chain_head(taken) if () in root.body.definitions else None
    chain = writers.pop().chain("model", head) if head is not None else []
    classes = [writer.text() for writer in writers]
    added = added_in_chains(dialect, [d for template in program.templates for d in template.body.definitions.values()])
    text = dialect.module_text(Module(doc, shared, classes, root.name, taken, kept, draws, chain, sorted(added)))
    variables = {key(variable): variable.weight for variable in kept}
    modules = {path: ".".join(str(part) for part in attribute) for path, attribute in program.modules.items()}
    return Generated(
        formatted(text),
        root.name,
        variables,
        inputs,
        outputs,
        modules,
        [writer.template.name for writer in writers],
    )


def formatted(text: str) -> str:
    """The text as ruff formats and sorts it.

    Raises:
        PorterError: ruff cannot read it, which is a bug of porter's.
    """
    from ruff.__main__ import find_ruff_bin

    ruff = find_ruff_bin()
    common = ["--isolated", "--line-length", "120", "--stdin-filename", "model.py", "-"]
    fixed = subprocess.run(
        [ruff, "check", "--select", "I,F401,UP", "--fix", "--quiet", *common],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    done = subprocess.run(
        [ruff, "format", *common], input=fixed.stdout or text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PorterError(f"porter wrote source that is not Python; please report this.\n{done.stderr}\n{text}")
    return done.stdout
