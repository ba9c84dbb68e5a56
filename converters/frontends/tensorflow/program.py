"""A TensorFlow graph ready to be translated: flat, without resources, its variables passed in by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from porter.converters.frontends.tensorflow.functions import (
    Flattener,
    Function,
    Handle,
    Library,
    Ref,
    plain,
    producer,
    to_definition,
)
from porter.errors import InputError, UnsupportedError


@dataclass(frozen=True)
class Input:
    """An input as the model takes it: `tensor` is where it enters the graph; None is a size that varies."""

    name: str
    tensor: Ref
    dtype: tf.DType
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class Output:
    """An output by the name that the model gives it."""

    name: str
    tensor: Ref


@dataclass(frozen=True)
class Variable:
    """A variable, or a tensor that the model holds (`kind` is "constant" then)."""

    name: str
    array: np.ndarray
    trainable: bool
    kind: str = "parameter"


@dataclass
class Program:
    """The graph, and what enters and leaves it; `variables` go by the tensor that stands for them."""

    name: str
    main: Function
    functions: dict[str, Function]
    inputs: list[Input]
    outputs: list[Output]
    variables: dict[Ref, Variable]
    layers: dict[str, Any] = field(default_factory=dict)  # calls of layers that are kept whole
    named: dict[int, Variable] = field(default_factory=dict)  # by the id of TensorFlow's own variable
    modules: dict[str, dict[str, Any]] = field(default_factory=dict)
    frames: dict[str, list[list[Any]]] = field(default_factory=dict)  # node -> statements, outermost first

    def graph_def(self, main: Function | None = None, functions: Mapping[str, Function] | None = None) -> Any:
        """The program as TensorFlow reads it."""
        made = tf.compat.v1.GraphDef()
        made.versions.producer = tf.version.GRAPH_DEF_VERSION
        made.node.extend((main or self.main).nodes)
        for function in (self.functions if functions is None else functions).values():
            made.library.function.append(to_definition(function, result_dtypes(function)))
        return made

    def imported(self) -> tf.Graph:
        """The program in a graph of its own, with the static shapes that TensorFlow infers."""
        return imported(self.graph_def())


def imported(graph_def: Any) -> tf.Graph:
    """A graph definition in a graph of its own.

    Raises:
        InputError: TensorFlow itself refuses it.
    """
    graph = tf.Graph()
    with graph.as_default():
        try:
            tf.graph_util.import_graph_def(graph_def, name="")
        except ValueError as error:
            first = str(error).strip().splitlines()[0]
            raise InputError(f"TensorFlow cannot read the graph: {first}") from error
    return graph


def result_dtypes(function: Function) -> list[int]:
    """The types of a flat function's results, as TensorFlow numbers them."""
    from porter.converters.frontends.tensorflow.functions import count, op_def

    args = dict(zip(function.args, function.dtypes, strict=True))
    kinds = {node.name: node for node in function.nodes}

    def dtype(ref: Ref) -> int:
        base, _, index = plain(ref).partition(":")
        if base in args:
            return args[base]
        node, position = kinds[base], int(index)
        for arg in op_def(node).output_arg:
            length = count(arg, node)
            if position < length:
                if arg.type_list_attr:
                    return node.attr[arg.type_list_attr].list.type[position]
                return arg.type or node.attr[arg.type_attr].type
            position -= length
        raise InputError(f"the graph is damaged: {base} has no output {index}")

    return [dtype(ref) for ref in function.results]


def build(
    name: str,
    graph_def: Any,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    held: Mapping[str, Variable],
    read: Callable[[str, Any], Variable] | None = None,
    also: Sequence[str] = (),
) -> Program:
    """A program from a graph as it was traced or saved.

    Args:
        name: what the model is called.
        graph_def: the graph with its library.
        inputs: where the inputs enter it.
        outputs: what leaves it.
        held: {placeholder: the variable or tensor that the tracer put there}.
        read: for a node that is a variable, the variable; None where a graph may have none.
        also: nodes that run without giving anything.

    Raises:
        UnsupportedError: a node changes a variable, or a resource is no variable.
    """
    variables: dict[Ref, Variable] = {}
    places: dict[str, str] = {}
    original = {node.name: node for node in graph_def.node}
    placeholders: list[Any] = []

    def stand_in(key: str, variable: Variable) -> Ref:
        if key not in places:
            places[key] = f"porter_variable_{len(places)}"
            placeholders.append(_placeholder(places[key], variable))
            variables[f"{places[key]}:0"] = variable
        return f"{places[key]}:0"

    def handle_of(node: Any) -> Handle:
        if read is None:
            raise UnsupportedError(f"the graph reads the variable {node.name!r}, which nothing gives a value")
        key = node.attr["shared_name"].s.decode() or node.name
        variable = read(key, node)
        dtype = tf.as_dtype(variable.array.dtype).as_datatype_enum
        return Handle(stand_in(key, variable), dtype, variable.array.shape, node.op == "VarHandleOp")

    handles: dict[str, Handle] = {}
    for placeholder, variable in held.items():
        node = original.get(placeholder)
        if node is None:
            continue
        is_resource = node.attr["dtype"].type == tf.resource.as_datatype_enum
        dtype = tf.as_dtype(variable.array.dtype).as_datatype_enum
        handles[placeholder] = Handle(
            stand_in(placeholder, variable), dtype, variable.array.shape, is_resource=is_resource
        )
    library = Library(graph_def)
    flattener = Flattener(library, handle_of)
    results = [*(output.tensor for output in outputs), *(f"^{name}" for name in also)]
    main = flattener.flat(Function(name, [], list(graph_def.node), results), handles)
    _refuse_feeds(main, {producer(each.tensor) for each in inputs})
    used = {producer(ref) for node in main.nodes for ref in node.input} | {producer(ref) for ref in main.results}
    present = {node.name for node in main.nodes}
    main.nodes += [original[producer(each.tensor)] for each in inputs if producer(each.tensor) not in present]
    main.nodes += [node for node in placeholders if node.name in used]
    renamed = [Output(output.name, ref) for output, ref in zip(outputs, main.results, strict=True)]
    return Program(
        name,
        main,
        flattener.functions,
        list(inputs),
        renamed,
        {ref: variable for ref, variable in variables.items() if producer(ref) in used},
    )


def _placeholder(name: str, variable: Variable) -> Any:
    node = tf.compat.v1.NodeDef(name=name, op="Placeholder")
    node.attr["dtype"].type = tf.as_dtype(variable.array.dtype).as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tf.TensorShape(variable.array.shape).as_proto())
    return node


def _refuse_feeds(main: Function, given: set[str]) -> None:
    for node in main.nodes:
        if node.op in ("Placeholder", "PlaceholderV2") and node.name not in given:
            raise InputError(f"the graph also reads {node.name!r}, which is none of its inputs: name it as one")
