"""Regions and lists: `If` and `While` become `If` and `Loop`, TensorArrays become tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.tensorflow import table
from porter.converters.frontends.tensorflow.functions import Function, Ref, plain, producer
from porter.converters.frontends.tensorflow.lists import TensorList
from porter.errors import UnsupportedError

if TYPE_CHECKING:
    from porter.converters.frontends.tensorflow.translate import Translator

LISTS = {
    "TensorListReserve",
    "EmptyTensorList",
    "TensorListFromTensor",
    "TensorListGetItem",
    "TensorListSetItem",
    "TensorListStack",
    "TensorListLength",
}


def translate(run: Translator, operation: Any, values: list[Any]) -> list[Any]:
    """The results of a region or of an operator on lists."""
    kind = operation.type
    if kind in ("If", "StatelessIf"):
        return _if(run, operation, values)
    if kind in ("While", "StatelessWhile"):
        return _while(run, operation, values)
    return [_LISTS[kind](run, operation, *values)]


# ---- If ----


def _if(run: Translator, operation: Any, values: list[Any]) -> list[Any]:
    op = run.op
    condition, arguments = _truth(run, values[0]), values[1:]
    known = op.array(condition)
    functions = [run.program.functions[operation.get_attr(name).name] for name in ("then_branch", "else_branch")]
    if known is not None:
        return run.region(functions[0 if known else 1], arguments)
    branches = [
        _body(run, [], lambda f=f: run.region(f, arguments), label)
        for f, label in zip(functions, ("then", "else"), strict=True)
    ]
    results = op.If(condition, then_branch=branches[0], else_branch=branches[1], outputs=len(operation.outputs))
    results = list(results) if isinstance(results, tuple) else [results]
    for result, then, other in zip(results, branches[0].outputs, branches[1].outputs, strict=True):
        result.dtype = then.dtype
        if then.shape is not None and other.shape is not None and len(then.shape) == len(other.shape):
            pairs = zip(op.shape_of(then), op.shape_of(other), strict=True)
            result.shape = ir.Shape([a if a == b else None for a, b in pairs])
    return results


def _truth(run: Translator, value: ir.Value) -> ir.Value:
    """TensorFlow takes a number for a condition too: zero is false."""
    if value.dtype == ir.DataType.BOOL:
        return value
    return run.op.Not(run.op.Equal(value, run.op.like(0, value)))


# ---- While ----


def _while(run: Translator, operation: Any, values: list[Any]) -> list[Any]:
    """The condition is asked before the first turn, and at the end of each for the next one.

    What a turn hands on unchanged is no part of the loop, and neither is a counter that nothing reads.
    """
    cond = run.program.functions[operation.get_attr("cond").name]
    body = run.program.functions[operation.get_attr("body").name]
    passed = [_passes(body, ref) == name for ref, name in zip(body.results, body.args, strict=True)]
    used = [bool(tensor.consumers()) or tensor.name in _results(run) for tensor in operation.outputs]
    needed = _needed(cond, body, used)
    carried = [i for i in range(len(values)) if needed[i] and not passed[i]]
    values = [_filled(run, value, body, values, i) if i in carried else value for i, value in enumerate(values)]
    op = run.op
    formals = {i: _formal(run, values[i], operation.outputs[i]) for i in carried}
    starts = [value.value if isinstance(value, TensorList) else value for value in (values[i] for i in carried)]
    first = _truth(run, run.region(cond, values)[0])

    def turn() -> list[Any]:
        inside = [formals.get(i, None if not passed[i] and not needed[i] else v) for i, v in enumerate(values)]
        results = run.region(_only(body, carried), inside)
        after = [*inside]
        for position, i in enumerate(carried):
            after[i] = results[position]
        again = _truth(run, run.region(cond, after)[0])
        return [again, *(r.value if isinstance(r, TensorList) else r for r in results)]

    def inputs() -> list[ir.Value]:
        return [f.value if isinstance(f, TensorList) else f for f in formals.values()]

    counters = [
        ir.Value(name=op.fresh(), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([])),
        ir.Value(name=op.fresh(), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([])),
    ]
    graph = _body(run, [*counters, *inputs()], turn, "step")
    made = op.Loop(None, first, *starts, body=graph, outputs=len(carried))
    made = list(made) if isinstance(made, tuple) else [made]
    results: list[Any] = [None if not passed[i] else values[i] for i in range(len(values))]
    for value, formal, i in zip(made, inputs(), carried, strict=True):
        value.dtype, value.shape = formal.dtype, formal.shape
        source = values[i]
        results[i] = (
            TensorList(source.dtype, source.length, source.element, value) if isinstance(source, TensorList) else value
        )
    return results


def _results(run: Translator) -> set[Ref]:
    found = {output.tensor for output in run.program.outputs}
    return found.union(*(map(plain, f.results) for f in run.program.functions.values()))


def _passes(function: Function, ref: Ref) -> str:
    """The argument that a result is, unchanged; empty where it is none."""
    kinds = {node.name: node for node in function.nodes}
    name = producer(ref)
    while name in kinds and kinds[name].op == "Identity":
        name = producer(kinds[name].input[0])
    return name if name in function.args else ""


def _reads(function: Function, refs: Sequence[Ref]) -> set[str]:
    """The arguments that results are computed from."""
    kinds = {node.name: node for node in function.nodes}
    seen: set[str] = set()
    waiting = [producer(ref) for ref in refs]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [producer(ref) for ref in kinds[name].input] if name in kinds else []
    return seen & set(function.args)


def _needed(cond: Function, body: Function, used: list[bool]) -> list[bool]:
    asked = _reads(cond, cond.results)
    needed = [use or name in asked for use, name in zip(used, cond.args, strict=True)]
    while True:
        wanted = [ref for ref, need in zip(body.results, needed, strict=True) if need]
        read = _reads(body, wanted)
        more = [need or name in read for need, name in zip(needed, body.args, strict=True)]
        if more == needed:
            return needed
        needed = more


def _only(body: Function, carried: list[int]) -> Function:
    """The body with the results that the loop hands on, and the nodes that they need."""
    results = [body.results[i] for i in carried]
    kinds = {node.name: node for node in body.nodes}
    seen: set[str] = set()
    waiting = [producer(ref) for ref in results]
    while waiting:
        name = waiting.pop()
        if name in kinds and name not in seen:
            seen.add(name)
            waiting += [producer(ref) for ref in kinds[name].input]
    return Function(body.name, body.args, [n for n in body.nodes if n.name in seen], results, body.dtypes)


def _formal(run: Translator, start: Any, result: Any) -> Any:
    """The value inside the loop for what it starts with; sizes that turns may change are not known there."""
    op = run.op
    source = start.value if isinstance(start, TensorList) else start
    shape = op.shape_of(source) if source.shape is not None else None
    if not isinstance(start, TensorList) and shape is not None:
        static = result.shape.as_list() if result.shape.rank is not None else None
        shape = [
            size if static is None or static[axis] is not None or isinstance(size, str) else None
            for axis, size in enumerate(shape)
        ]
    formal = ir.Value(
        name=op.fresh(), type=ir.TensorType(source.dtype), shape=None if shape is None else ir.Shape(shape)
    )
    return TensorList(start.dtype, start.length, start.element, formal) if isinstance(start, TensorList) else formal


def _filled(run: Translator, value: Any, body: Function, values: list[Any], position: int) -> Any:
    """A list that was only reserved, with zeros of the shape that the loop puts into it."""
    if not isinstance(value, TensorList) or value.value is not None:
        return value
    element = value.element
    if element is None or any(size is None for size in element):
        element = _written(run, body, values, position)
    sizes = [value.length, *element]
    zeros = run.op.ConstantOfShape(run.op.dims(sizes), value=ir.tensor(np.zeros(1, dtype=value.dtype.numpy())))
    zeros.dtype = value.dtype
    return TensorList(value.dtype, value.length, element, zeros)


def _written(run: Translator, body: Function, values: list[Any], position: int) -> list[Any]:
    """The shape of what a turn writes into a list: the turn is translated once for it, and thrown away."""
    kinds = {node.name: node for node in body.nodes}
    name = producer(body.results[position])
    while name in kinds and kinds[name].op == "Identity":
        name = producer(kinds[name].input[0])
    if name not in kinds or kinds[name].op != "TensorListSetItem":
        raise UnsupportedError(
            "a TensorArray whose element shape nothing tells: give it element_shape=, or write it in every turn"
        )
    item = Function(body.name, body.args, body.nodes, [kinds[name].input[2]], body.dtypes)
    item = Function(item.name, item.args, _only_nodes(item), item.results, item.dtypes)
    with run.op.inside():
        inside = run.region(item, values)[0]
    return list(run.op.shape_of(inside))


def _only_nodes(function: Function) -> list[Any]:
    return _only(function, [0]).nodes


def _body(run: Translator, inputs: Sequence[ir.Value], translate: Any, label: str) -> ir.Graph:
    """A subgraph, which sees the tensors around it; its outputs are its own, each once."""
    op = run.op
    prefix = op.prefix
    with op.inside() as nodes:
        outputs: list[ir.Value] = []
        for value in translate():
            if value.producer() not in nodes or value in outputs:
                copy = op.Identity(value)
                copy.shape, copy.dtype = value.shape, value.dtype
                value = copy
            outputs.append(value)
    op.prefix = prefix
    return ir.Graph(list(inputs), outputs, nodes=nodes, name=f"{prefix}_{label}")


# ---- lists ----


def _reserve(run: Translator, operation: Any, element_shape: ir.Value, num_elements: ir.Value) -> TensorList:
    dtype = table.data_type(operation.get_attr("element_dtype"))
    length = run.op.content(num_elements)
    return TensorList(dtype, length[0] if length else num_elements, _element(run, element_shape))


def _element(run: Translator, element_shape: ir.Value) -> list[Any] | None:
    content = run.op.content(element_shape)
    if content is None or (content == [-1] and element_shape.shape is not None and len(element_shape.shape) == 0):
        return None
    return [None if size == -1 else size for size in content]


def _from_tensor(run: Translator, operation: Any, tensor: ir.Value, element_shape: ir.Value) -> TensorList:
    shape = run.op.shape_of(tensor)
    length = shape[0] if shape[0] is not None else run.op.Squeeze(run.op.Shape(tensor, start=0, end=1), [0])
    return TensorList(tensor.dtype, length, shape[1:], tensor)


def _stacked(run: Translator, held: TensorList) -> ir.Value:
    if held.value is None:
        raise UnsupportedError("a TensorArray is read before anything is written into it")
    return held.value


def _get_item(run: Translator, operation: Any, held: TensorList, index: ir.Value, element_shape: ir.Value) -> ir.Value:
    return run.op.Gather(_stacked(run, held), index, axis=0)


def _set_item(run: Translator, operation: Any, held: TensorList, index: ir.Value, item: ir.Value) -> TensorList:
    op = run.op
    if held.value is None:
        sizes = [held.length, *op.shape_of(item)]
        zeros = op.ConstantOfShape(op.dims(sizes), value=ir.tensor(np.zeros(1, dtype=held.dtype.numpy())))
        held = TensorList(held.dtype, held.length, op.shape_of(item), zeros)
    where = op.Reshape(op.cast(index, ir.DataType.INT64), [1, 1])
    made = op.ScatterND(held.value, where, op.Unsqueeze(item, [0]))
    return TensorList(held.dtype, held.length, held.element, made)


def _stack(run: Translator, operation: Any, held: TensorList, element_shape: ir.Value) -> ir.Value:
    return _stacked(run, held)


def _length(run: Translator, operation: Any, held: TensorList) -> ir.Value:
    if isinstance(held.length, ir.Value):
        return run.op.cast(held.length, ir.DataType.INT32)
    length = run.op.size(held.length) if isinstance(held.length, str) else held.length
    return run.op.cast(run.op.value(length), ir.DataType.INT32)


def _empty(run: Translator, operation: Any, element_shape: ir.Value, max_num_elements: ir.Value) -> TensorList:
    raise UnsupportedError("a TensorArray that grows: give it its size, and write to it by index")


_LISTS: dict[str, Callable[..., Any]] = {
    "TensorListReserve": _reserve,
    "EmptyTensorList": _empty,
    "TensorListFromTensor": _from_tensor,
    "TensorListGetItem": _get_item,
    "TensorListSetItem": _set_item,
    "TensorListStack": _stack,
    "TensorListLength": _length,
}
assert set(_LISTS) == LISTS
