"""TensorFlow functions as flat lists of nodes: calls inlined, variables read as plain tensors.

A `FunctionDef` names what a node makes by the output's name, a `GraphDef` by its number; here everything is
"node:number". Variables arrive as resources that are read somewhere; here they are tensors that are passed in. Nothing
is frozen and nothing is optimised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import op_def_registry

from porter.errors import UnsupportedError

NodeDef = Any
Ref = str

# Where a call of a function stands for a layer, this attribute of the node says so: it is not inlined.
LAYER = "_porter_layer"
# The scope of the module call that made a node, on the node.
SCOPE_MARK = "_porter_scope"
# Attributes of a node with one function for each of its regions.
REGIONS = {
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
}
CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
_PASSING = {"Identity", "Snapshot", "PreventGradient"}
_HANDLES = {"VarHandleOp", "VariableV2", "Variable"}
_CHANGING = ("Assign", "ResourceApply", "ResourceScatter", "ScatterUpdate", "ScatterAdd", "ScatterSub", "Apply")


@dataclass
class Function:
    """Nodes in no particular order; `args` are the names of what comes in, `results` refer to what goes out."""

    name: str
    args: list[str]
    nodes: list[NodeDef]
    results: list[Ref]
    dtypes: list[int] = field(default_factory=list)  # of the args, as TensorFlow numbers them


@dataclass(frozen=True)
class Handle:
    """A variable: the tensor that stands for it, its type and shape."""

    tensor: Ref
    dtype: int
    shape: tuple[int, ...]
    is_resource: bool = True  # the variables of TensorFlow 1 can be read like tensors


def op_def(node: NodeDef) -> Any:
    """The definition of a node's operator; UnsupportedError where TensorFlow has none."""
    definition = op_def_registry.get(node.op)
    if definition is None:
        raise UnsupportedError(
            f"the operator {node.op} ({node.name}) is none of TensorFlow's: it is of a library that is not loaded"
        )
    return definition


def count(arg: Any, node: NodeDef) -> int:
    """How many tensors an argument of an operator stands for."""
    if arg.number_attr:
        return int(node.attr[arg.number_attr].i)
    if arg.type_list_attr:
        return len(node.attr[arg.type_list_attr].list.type)
    return 1


def positions(args: Iterable[Any], node: NodeDef) -> dict[str, int]:
    """{argument of an operator: number of its first tensor}."""
    found, start = {}, 0
    for arg in args:
        found[arg.name] = start
        start += count(arg, node)
    return found


def plain(ref: Ref) -> Ref:
    """ "name" as "name:0"."""
    return ref if ":" in ref else f"{ref}:0"


def producer(ref: Ref) -> str:
    """The node or argument that a reference names."""
    return ref.lstrip("^").partition(":")[0]


class Library:
    """The functions of a graph, by name, flattened when they are asked for."""

    def __init__(self, graph: Any) -> None:
        self.definitions = {each.signature.name: each for each in graph.library.function}

    def function(self, name: str) -> Function:
        """A function as its author's tracer wrote it: neither inlined nor without resources."""
        if name not in self.definitions:
            raise UnsupportedError(f"the graph calls the function {name!r}, which it does not hold")
        definition = self.definitions[name]
        args = [arg.name for arg in definition.signature.input_arg]
        kinds = {node.name: node for node in definition.node_def}

        def flat(ref: str) -> str:
            if ref.startswith("^"):
                return ref
            base, _, rest = ref.partition(":")
            if base not in kinds:
                return plain(base)
            output, _, index = rest.partition(":")
            starts = self._outputs(kinds[base])
            return f"{base}:{starts[output or next(iter(starts))] + int(index or 0)}"

        nodes = []
        for each in definition.node_def:
            node = tf.compat.v1.NodeDef()
            node.CopyFrom(each)
            del node.input[:]
            node.input.extend(flat(ref) for ref in each.input)
            nodes.append(node)
        results = [flat(definition.ret[arg.name]) for arg in definition.signature.output_arg]
        results += [f"^{node}" for node in definition.control_ret.values()]
        return Function(name, args, nodes, results, [arg.type for arg in definition.signature.input_arg])

    def _outputs(self, node: NodeDef) -> dict[str, int]:
        if node.op in self.definitions:
            return {arg.name: i for i, arg in enumerate(self.definitions[node.op].signature.output_arg)}
        return positions(op_def(node).output_arg, node)


class Flattener:
    """Inlines calls and takes resources away."""

    def __init__(self, library: Library, handle_of: Callable[[NodeDef], Handle]) -> None:
        self.library = library
        self.handle_of = handle_of  # for nodes that are variables themselves
        self.functions: dict[str, Function] = {}

    def flat(self, function: Function, handles: Mapping[str, Handle]) -> Function:
        """The function without calls and resources; `handles` says which of its arguments are variables."""
        body = _Body(self, function, "", {arg: f"{arg}:0" for arg in function.args}, dict(handles), {})
        results = [body.resolve(ref) for ref in function.results if not ref.startswith("^")]
        return Function(function.name, list(function.args), body.run(), results, list(function.dtypes))

    def region(self, name: str, handles: Sequence[Handle | None]) -> str:
        """The name of the flat form of a region whose arguments are the variables `handles` where there is one."""
        original = self.library.function(name)
        known = {
            arg: Handle(f"{arg}:0", handle.dtype, handle.shape, handle.is_resource)
            for arg, handle in zip(original.args, handles, strict=True)
            if handle is not None
        }
        if name not in self.functions:
            made = self.flat(original, known)
            made.dtypes = [known[a].dtype if a in known else t for a, t in zip(made.args, made.dtypes, strict=True)]
            self.functions[name] = made
        return name


class _Body:
    """One function on its way into a flat list."""

    def __init__(
        self,
        owner: Flattener,
        function: Function,
        prefix: str,
        bound: dict[str, Ref],
        handles: dict[str, Handle],
        inherited: dict[str, Any],
    ) -> None:
        self.owner = owner
        self.function = function
        self.prefix = prefix
        self.bound = bound
        self.handles = handles  # argument or node -> variable
        self.inherited = inherited
        self.kinds = {node.name: node for node in function.nodes}
        self.calls: dict[str, tuple[list[Ref], list[NodeDef]]] = {}
        self.extra: list[NodeDef] = []

    def run(self) -> list[NodeDef]:
        made: list[NodeDef] = []
        for node in self._reachable():
            if self._is_call(node):
                made += self._call(node)[1]
            elif self.handle(plain(node.name)) is None:
                made.append(self._node(node))
        return made + self.extra

    def _reachable(self) -> list[NodeDef]:
        seen: dict[str, None] = {}
        waiting = [producer(ref) for ref in reversed(self.function.results)]
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self.kinds:
                continue
            seen[name] = None
            waiting += [producer(ref) for ref in self.kinds[name].input]
        self._refuse_changes([self.kinds[name] for name in seen])
        data: dict[str, None] = {}
        waiting = [producer(ref) for ref in self.function.results if not ref.startswith("^")]
        while waiting:
            name = waiting.pop()
            if name not in data and name in self.kinds:
                data[name] = None
                waiting += [producer(ref) for ref in self.kinds[name].input if not ref.startswith("^")]
        for node in [self.kinds[name] for name in seen if name not in data]:  # run only for what they would change
            if self._is_call(node):
                self._call(node)
            elif node.op in REGIONS:
                self._node(node)
        return [node for node in self.function.nodes if node.name in data]

    def _refuse_changes(self, nodes: list[NodeDef]) -> None:
        for node in nodes:
            if node.op.startswith(_CHANGING):
                raise UnsupportedError(
                    f"{self.prefix}{node.name} ({node.op}) changes a variable while the model runs; ports are "
                    "functions of their inputs: trace it in inference (training=False), or return the new state"
                )

    def _is_call(self, node: NodeDef) -> bool:
        return LAYER not in node.attr and (node.op in CALLS or node.op in self.owner.library.definitions)

    # ---- references ----

    def resolve(self, ref: Ref) -> Ref:
        """A reference inside this function as one in the flat list."""
        base, _, index = plain(ref).partition(":")
        if base in self.bound and base not in self.kinds:
            handle = self.handles.get(base)
            return handle.tensor if handle is not None else self.bound[base]
        handle = self.handle(plain(ref))
        if handle is not None:
            return handle.tensor
        if base not in self.kinds:
            raise UnsupportedError(f"the graph is damaged: {self.prefix}{base} is read and not there")
        if self._is_call(self.kinds[base]):
            return self._call(self.kinds[base])[0][int(index)]
        return f"{self.prefix}{base}:{index}"

    def handle(self, ref: Ref) -> Handle | None:
        """The variable that a reference is a handle of."""
        base = producer(ref)
        while base in self.kinds and self.kinds[base].op in _PASSING and base not in self.handles:
            if self.kinds[base].attr["T"].type != tf.resource.as_datatype_enum:
                return None
            base = producer(self.kinds[base].input[0])
        if base in self.handles:
            return self.handles[base]
        if base in self.kinds and self.kinds[base].op in _HANDLES:
            return self.owner.handle_of(self.kinds[base])
        return None

    # ---- nodes ----

    def _node(self, node: NodeDef) -> NodeDef:
        made = tf.compat.v1.NodeDef()
        made.CopyFrom(node)
        made.name = f"{self.prefix}{node.name}"
        made.device = ""
        for key, value in self.inherited.items():
            if key not in made.attr:
                made.attr[key].CopyFrom(value)
        del made.input[:]
        if "_class" in made.attr:
            del made.attr["_class"]
        data = [ref for ref in node.input if not ref.startswith("^")]
        handles = [self.handle(plain(ref)) for ref in data]
        made.input.extend(self.resolve(ref) for ref in data)
        if node.op in REGIONS:
            self._regions(made, handles)
        elif node.op in CALLS:
            self._region(made, "f", "Tin", handles)
        elif any(handles):
            self._read(made, handles)
        return made

    def _regions(self, node: NodeDef, handles: list[Handle | None]) -> None:
        first = 0 if "While" in node.op else 1
        for key in REGIONS[node.op]:
            self._region(node, key, "T" if first == 0 else "Tin", handles[first:])
        if first == 0:
            shapes = node.attr["output_shapes"].list.shape
            for position, handle in enumerate(handles):
                if handle is not None and position < len(shapes):
                    shapes[position].CopyFrom(tf.TensorShape(handle.shape).as_proto())

    def _region(self, node: NodeDef, key: str, types: str, handles: list[Handle | None]) -> None:
        node.attr[key].func.name = self.owner.region(node.attr[key].func.name, handles)
        for position, handle in enumerate(handles):
            if handle is not None:
                node.attr[types].list.type[position] = handle.dtype

    def _read(self, node: NodeDef, handles: list[Handle | None]) -> None:
        handle = next(each for each in handles if each is not None)
        if node.op in ("ReadVariableOp", *_PASSING):
            kept = {key: value for key, value in node.attr.items() if key.startswith("_")}
            name, source = node.name, node.input[0]
            node.Clear()
            node.name, node.op = name, "Identity"
            node.input.append(source)
            node.attr["T"].type = handle.dtype
            for key, value in kept.items():
                node.attr[key].CopyFrom(value)
        elif node.op == "ResourceGather":
            self._gather(node, handle)
        elif node.op == "VariableShape":
            node.op = "Shape"
            node.attr["T"].type = handle.dtype
        elif handle.is_resource:
            raise UnsupportedError(f"{node.name} ({node.op}) takes a variable as a resource; read its value instead")

    def _gather(self, node: NodeDef, handle: Handle) -> None:
        axis = tf.compat.v1.NodeDef(name=f"{node.name}/axis", op="Const")
        axis.attr["dtype"].type = tf.int32.as_datatype_enum
        axis.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(0, tf.int32))
        self.extra.append(axis)
        node.op = "GatherV2"
        node.input.append(f"{axis.name}:0")
        for key in ("dtype", "validate_indices"):
            node.attr.pop(key, None)
        node.attr["Tparams"].type = handle.dtype
        node.attr["Taxis"].type = tf.int32.as_datatype_enum

    # ---- calls ----

    def _call(self, node: NodeDef) -> tuple[list[Ref], list[NodeDef]]:
        """The results of a call in the flat list, and the nodes that make them."""
        if node.name not in self.calls:
            name = node.attr["f"].func.name if node.op in CALLS else node.op
            function = self.owner.library.function(name)
            data = [ref for ref in node.input if not ref.startswith("^")]
            bound, handles = {}, {}
            for arg, ref in zip(function.args, data, strict=True):
                handle = self.handle(plain(ref)) or self.handles.get(producer(ref))
                bound[arg] = self.resolve(ref)
                if handle is not None:
                    handles[arg] = handle
            marks = {key: value for key, value in node.attr.items() if key == SCOPE_MARK}
            inside = _Body(
                self.owner, function, f"{self.prefix}{node.name}/", bound, handles, {**self.inherited, **marks}
            )
            results = [inside.resolve(ref) for ref in function.results if not ref.startswith("^")]
            self.calls[node.name] = (results, inside.run())
        return self.calls[node.name]


def to_definition(function: Function, result_types: Sequence[int]) -> Any:
    """The function as TensorFlow holds it in a graph's library."""
    definition = function_pb2.FunctionDef()
    definition.signature.name = function.name
    kinds = {node.name: node for node in function.nodes}
    for name, dtype in zip(function.args, function.dtypes, strict=True):
        definition.signature.input_arg.add(name=name, type=dtype)

    def nested(ref: Ref) -> str:
        base, _, index = plain(ref).partition(":")
        if base not in kinds:
            return base
        starts = positions(op_def(kinds[base]).output_arg, kinds[base])
        output = max((name for name in starts if starts[name] <= int(index)), key=lambda name: starts[name])
        return f"{base}:{output}:{int(index) - starts[output]}"

    for node in function.nodes:
        made = definition.node_def.add()
        made.CopyFrom(node)
        del made.input[:]
        made.input.extend(nested(ref) for ref in node.input)
    for number, (ref, dtype) in enumerate(zip(function.results, result_types, strict=True)):
        name = f"result_{number}"
        definition.signature.output_arg.add(name=name, type=dtype)
        definition.ret[name] = nested(ref)
    return definition
