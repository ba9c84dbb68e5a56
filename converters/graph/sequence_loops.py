"""Loops that carry sequences of tensors.

A list that has as many tensors after a turn as before is carried as these. One that only grows at its end, by a tensor
of one shape, is what the turns give, stacked. A loop of a known number of turns with any other list is written out.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from porter.converters.graph.canonical import constant_of, new_constant
from porter.converters.graph.nesting import everywhere, passed_on, put_in_place, replace_results, set_outputs, subgraphs
from porter.converters.graph.sequences import LAST, Dissolver, Pieces, Stack, is_sequence, position

# A loop with more turns than this would not be read as statements.
_MOST_TURNS = 32


def dissolve_loop(run: Dissolver, node: ir.Node) -> bool:
    """Rewrite a loop that carries lists, its body too; false where there are none, or nothing is known of them."""
    body = subgraphs(node)["body"]
    carried = range(2, len(node.inputs))
    lists = [at for at in carried if is_sequence(node.inputs[at]) or is_sequence(body.inputs[at])]
    if not lists:
        return False
    begun = {at: run.of(node.inputs[at]) for at in lists}
    fixed = {at: made for at, made in begun.items() if isinstance(made, list) and _keeps(run, body, at, made)}
    grown = {at: added for at in lists if at not in fixed and (added := _added(run, node, body, at)) is not None}
    if len(fixed) + len(grown) < len(lists):
        return _written_out(run, node, body)
    _spread(run, node, body, fixed, grown)
    return True


def _keeps(run: Dissolver, body: ir.Graph, at: int, initial: list[ir.Value]) -> bool:
    """Whether a turn leaves a list as long as it is."""

    def length(value: ir.Value) -> int | None:
        value = passed_on(value)
        if value is body.inputs[at]:
            return len(initial)
        known = run.of(value)
        if isinstance(known, list):
            return len(known)
        node = value.producer()
        match node.op_type if node is not None and node.graph is body else "":
            case "SequenceConstruct":
                return len(node.inputs)
            case "SequenceEmpty":
                return 0
            case "SequenceInsert" | "SequenceErase" as op_type:
                before = length(node.inputs[0])
                known_place = position(node, 2 if op_type == "SequenceInsert" else 1) is not None
                if before is None or not known_place:
                    return None
                return before + (1 if op_type == "SequenceInsert" else -1)
        return None

    return length(body.outputs[at - 1]) == len(initial)


def _added(run: Dissolver, node: ir.Node, body: ir.Graph, at: int) -> ir.Value | None:
    """What a turn adds at the end of a list that begins empty; None if shapes may differ or more is done with it."""
    insert = passed_on(body.outputs[at - 1]).producer()
    formal = body.inputs[at]
    if insert is None or insert.graph is not body or insert.op_type != "SequenceInsert" or position(insert, 2) != LAST:
        return None
    grows = passed_on(insert.inputs[0]) is formal and len(formal.uses()) == 1 and len(insert.outputs[0].uses()) <= 1
    added = insert.inputs[1]
    return added if grows and run.of(node.inputs[at]) == [] and run.lasting(added) else None


def _spread(
    run: Dissolver,
    node: ir.Node,
    body: ir.Graph,
    fixed: dict[int, list[ir.Value]],
    grown: dict[int, ir.Value],
) -> None:
    """Carry the tensors of the lists `fixed`, and give what the lists `grown` grow by; both by number of the input."""
    inputs: list[ir.Value | None] = list(node.inputs[:2])
    formals = list(body.inputs)
    body.inputs.clear()
    body.inputs.extend(formals[:2])
    for at in range(2, len(node.inputs)):
        if at in fixed:
            items = [ir.Value(name=f"{formals[at].name}_{i}", type=v.type) for i, v in enumerate(fixed[at])]
            run.pieces[formals[at]] = list(items)
            body.inputs.extend(items)
            inputs += fixed[at]
        elif at not in grown:
            body.inputs.append(formals[at])
            inputs.append(node.inputs[at])
    run.visit(body)
    values = [body.outputs[0]]
    outputs: list[ir.Value] = []
    stacks: list[ir.Value] = []
    results: list[ir.Value | Pieces] = []
    for index, out in enumerate(node.outputs):
        result = body.outputs[1 + index]
        if index + 2 in fixed:
            made = run.of(passed_on(result))
            assert isinstance(made, list)
            new = [ir.Value(name=f"{out.name}_{i}", type=value.type) for i, value in enumerate(made)]
            values, outputs = values + made, outputs + new
            results.append(new)
        elif index + 2 in grown:
            stacks.append(ir.Value(name=f"{out.name}_stack", type=grown[index + 2].type))
            results.append(Stack(stacks[-1], 0, False))
        else:
            values.append(result)
            outputs.append(ir.Value(name=out.name, shape=out.shape, type=out.type))
            results.append(outputs[-1])
    set_outputs(body, [*values, *grown.values()])
    run.rebuild(node, inputs, [*outputs, *stacks], results)
    common.RemoveUnusedNodesPass()(run.model)


def _written_out(run: Dissolver, node: ir.Node, body: ir.Graph) -> bool:
    """Put the turns of a loop one after the other, where their number is known and no condition ends them."""
    turns, first, again = constant_of(node.inputs[0]), constant_of(node.inputs[1]), passed_on(body.outputs[0])
    goes_on = again is body.inputs[1] or (constant_of(again) is not None and bool(constant_of(again).reshape(-1)[0]))
    if turns is None or (node.inputs[1] is not None and not (first is not None and first.reshape(-1)[0] and goes_on)):
        return False
    count = len(node.inputs) - 2
    stacked: list[list[ir.Value]] = [[] for _ in node.outputs[count:]]
    if int(turns.reshape(-1)[0]) > _MOST_TURNS or (stacked and not int(turns.reshape(-1)[0])):
        return False
    state = list(node.inputs[2:])
    for turn in range(int(turns.reshape(-1)[0])):
        copy = body.clone(allow_outer_scope_values=True)
        for inner in everywhere(copy):
            inner.name = f"{inner.name}_turn{turn}"
            for out in inner.outputs:
                out.name = f"{out.name}_turn{turn}"
        number, always = (new_constant(run.root, np.asarray(content)) for content in (np.int64(turn), True))
        _, *results = put_in_place(node, copy, [number, always, *state])
        state = results[:count]
        for rows, result in zip(stacked, results[count:], strict=True):
            rows.append(run.make(node, "Unsqueeze", [result, run.constant([0])])[0])
    given = [run.make(node, "Concat", list(rows), axis=0)[0] for rows in stacked]
    replace_results(node, dict(zip(node.outputs, [*state, *given], strict=True)))
    run.changed = True
    return True
