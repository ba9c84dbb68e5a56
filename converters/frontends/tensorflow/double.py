"""A program rewritten to compute in float64, as the truth that a translation is compared with.

Operators that TensorFlow has for float32 alone keep it, between two casts: what they make is true to float32 only, and
so is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

from porter.converters.frontends.tensorflow.functions import (
    CALLS,
    LAYER,
    REGIONS,
    Function,
    Ref,
    count,
    op_def,
    plain,
)
from porter.converters.frontends.tensorflow.program import Program, imported

NodeDef = Any
_WIDE = {
    tf.float32.as_datatype_enum: tf.float64.as_datatype_enum,
    tf.float16.as_datatype_enum: tf.float64.as_datatype_enum,
    tf.bfloat16.as_datatype_enum: tf.float64.as_datatype_enum,
    tf.complex64.as_datatype_enum: tf.complex128.as_datatype_enum,
}
_FUNCTIONAL = {*REGIONS, *CALLS}


class Doubled:
    """The program in float64: `graph` runs it, `narrow` names the nodes that stayed in float32."""

    def __init__(self, program: Program) -> None:
        self.narrow: set[str] = set()
        functions = {name: self._function(function) for name, function in program.functions.items()}
        self.narrow_inside = bool(self.narrow)  # some loop, branch or layer computes in float32
        self.program = program
        self.graph = imported(program.graph_def(self._function(program.main), functions))

    def run(self, refs: Sequence[Ref], inputs: dict[Ref, np.ndarray]) -> list[np.ndarray]:
        """Tensors of the program for inputs in any precision.

        Raises:
            tf.errors.OpError: the program itself fails on these inputs.
        """
        feeds = {ref: variable.array for ref, variable in self.program.variables.items()} | inputs
        with tf.compat.v1.Session(graph=self.graph) as session:
            present = {self.graph.get_tensor_by_name(ref): widened(array) for ref, array in feeds.items()}
            return session.run([self.graph.get_tensor_by_name(plain(ref)) for ref in refs], present)

    # ---- nodes ----

    def _function(self, function: Function) -> Function:
        kinds = {node.name: node for node in function.nodes}
        dtypes = [_WIDE.get(dtype, dtype) for dtype in function.dtypes]
        made: list[NodeDef] = []
        casts: dict[Ref, Ref] = {}
        for node in function.nodes:
            made += self._node(node, kinds, casts)
        results = [casts.get(plain(ref), ref) for ref in function.results]
        for node in made:
            own = node.name.rpartition("/")[2].startswith("porter_")
            if not own:
                renewed = [casts.get(plain(ref), ref) for ref in node.input]
                del node.input[:]
                node.input.extend(renewed)
        return Function(function.name, function.args, made, results, dtypes)

    def _node(self, node: NodeDef, kinds: dict[str, NodeDef], casts: dict[Ref, Ref]) -> list[NodeDef]:
        wide = tf.compat.v1.NodeDef()
        wide.CopyFrom(node)
        changed = [key for key, value in wide.attr.items() if _widen(value)]
        if LAYER in node.attr or node.op in _FUNCTIONAL or (_runs(wide, changed) and not _fixed(node)):
            return [wide]
        self.narrow.add(node.name)
        return self._surrounded(node, casts)

    def _surrounded(self, node: NodeDef, casts: dict[Ref, Ref]) -> list[NodeDef]:
        """The node as it is, its floats cast before and after."""
        kept = tf.compat.v1.NodeDef()
        kept.CopyFrom(node)
        before: list[NodeDef] = []
        for position, dtype in enumerate(_types(op_def(node).input_arg, node)):
            if dtype in _WIDE:
                cast = _cast(f"{node.name}/porter_in_{position}", node.input[position], _WIDE[dtype], dtype)
                before.append(cast)
                kept.input[position] = f"{cast.name}:0"
        after: list[NodeDef] = []
        for position, dtype in enumerate(_types(op_def(node).output_arg, node)):
            if dtype in _WIDE:
                cast = _cast(f"{node.name}/porter_out_{position}", f"{node.name}:{position}", dtype, _WIDE[dtype])
                after.append(cast)
                casts[f"{node.name}:{position}"] = f"{cast.name}:0"
        return [*before, kept, *after]


def truth(ref: Ref, doubled: Doubled) -> Ref:
    """Where the float64 form of a tensor is."""
    base, _, index = plain(ref).partition(":")
    cast = f"{base}/porter_out_{index}"
    try:
        doubled.graph.get_operation_by_name(cast)
    except KeyError:
        return plain(ref)
    return f"{cast}:0"


def widened(array: np.ndarray) -> np.ndarray:
    """Floats in float64, complex numbers in complex128, everything else as it is."""
    dtype = tf.as_dtype(array.dtype)
    if dtype.is_complex:
        return np.asarray(array).astype(np.complex128)
    return np.asarray(array).astype(np.float64) if dtype.is_floating else np.asarray(array)


def _widen(value: Any) -> bool:
    kind = value.WhichOneof("value")
    if kind == "type" and value.type in _WIDE:
        value.type = _WIDE[value.type]
        return True
    if kind == "list" and any(item in _WIDE for item in value.list.type):
        widened_types = [_WIDE.get(item, item) for item in value.list.type]
        del value.list.type[:]
        value.list.type.extend(widened_types)
        return True
    if kind == "tensor" and value.tensor.dtype in _WIDE:
        array = widened(tf.make_ndarray(value.tensor))
        value.tensor.CopyFrom(tf.make_tensor_proto(array, shape=array.shape))
        return True
    return False


def _fixed(node: NodeDef) -> bool:
    """Whether the operator takes or makes float32 whatever its attributes say."""
    definition = op_def(node)
    return any(arg.type in _WIDE for arg in (*definition.input_arg, *definition.output_arg))


def _types(args: Iterable[Any], node: NodeDef) -> list[int]:
    found: list[int] = []
    for arg in args:
        if arg.type_list_attr:
            found += list(node.attr[arg.type_list_attr].list.type)
        else:
            found += [arg.type or node.attr[arg.type_attr].type] * count(arg, node)
    return found


def _runs(wide: NodeDef, changed: list[str]) -> bool:
    """Whether TensorFlow has the operator for the types that it now has."""
    definition = op_def(wide)
    for attr in definition.attr:
        allowed = attr.allowed_values.list.type
        if attr.name in changed and allowed and wide.attr[attr.name].type not in allowed and attr.type == "type":
            return False
    options = _kernels(wide.op)
    types = {attr.name: wide.attr[attr.name].type for attr in definition.attr if attr.type == "type"}
    return not options or any(
        all(
            types.get(name, dtype) == dtype or types.get(name) in dtypes
            for name, dtypes in option.items()
            for dtype in dtypes[:1]
        )
        for option in options
    )


@cache
def _kernels(op: str) -> list[dict[str, tuple[int, ...]]]:
    """{type attribute: types} of each kernel for the CPU."""
    return [
        {constraint.name: tuple(constraint.allowed_values.list.type) for constraint in kernel.constraint}
        for kernel in kernels.get_registered_kernels_for_op(op).kernel
        if kernel.device_type == "CPU"
    ]


def _cast(name: str, source: Ref, before: int, after: int) -> NodeDef:
    node = tf.compat.v1.NodeDef(name=name, op="Cast")
    node.input.append(source)
    node.attr["SrcT"].type, node.attr["DstT"].type = before, after
    return node
