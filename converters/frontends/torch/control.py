"""torch's higher-order operators: `cond` becomes `If`, a `no_grad` region is translated in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from porter.converters.frontends.torch.aten.autograd import stopped
from porter.converters.frontends.torch.builder import Builder

# Regions that change nothing in inference, with the position of their body among the arguments.
REGIONS = {"wrap_with_set_grad_enabled": 1, "hints_wrapper": 0}
# What torch.export leaves of its record of module calls inside such a region: its arguments, unchanged.
TRACEPOINT = "_export_tracepoint"
NAMES = {"cond", TRACEPOINT, *REGIONS}


def body_of(node: torch.fx.Node) -> list[torch.fx.GraphModule]:
    """The graphs inside a higher-order node."""
    return [
        _module(argument) for argument in node.args if isinstance(argument, torch.fx.Node) and argument.op == "get_attr"
    ]


def _module(node: torch.fx.Node) -> torch.fx.GraphModule:
    owner = node.graph.owning_module
    assert owner is not None
    return owner.get_submodule(str(node.target))


def translate(
    op: Builder, node: torch.fx.Node, value: Callable[[Any], Any], inline: Callable[[torch.fx.Graph, Any], Any]
) -> Any:
    """The values of a higher-order node; `inline(graph, arguments)` translates a graph where it stands."""
    name = node.target.name()
    if name == TRACEPOINT:
        return [value(argument) for argument in node.args]
    bodies = body_of(node)
    if name in REGIONS:
        before = len(op.nodes)
        results = inline(bodies[0].graph, node.args[REGIONS[name] + 1 :])
        if name != "wrap_with_set_grad_enabled" or node.args[0] is not False:
            return results
        made = {output for each in op.nodes[before:] for output in each.outputs}
        return [stopped(op, result) if result in made else result for result in results]
    condition, operands = node.args[0], node.args[3]
    condition = value(condition)
    for operand in operands:
        value(operand)  # computed outside of the branches
    branches = [
        _branch(op, body, operands, inline, label) for body, label in zip(bodies, ("then", "else"), strict=True)
    ]
    if isinstance(condition, bool | int):
        condition = op.constant(bool(condition), ir.DataType.BOOL)
    count = len(branches[0].outputs)
    condition = op.cast(condition, ir.DataType.BOOL)
    results = op.If(condition, then_branch=branches[0], else_branch=branches[1], outputs=count)
    return [results] if count == 1 else list(results)


def _branch(op: Builder, body: torch.fx.GraphModule, operands: Any, inline: Any, label: str) -> ir.Graph:
    """A branch sees the tensors around it, so it has no inputs of its own."""
    with op.inside() as nodes:
        outputs: list[ir.Value] = []
        for value in inline(body.graph, operands):
            if value.producer() not in nodes or value in outputs:
                copy = op.Identity(value)
                copy.shape, copy.dtype = value.shape, value.dtype
                value = copy
            outputs.append(value)
    return ir.Graph([], outputs, nodes=nodes, name=f"{op.prefix}_{label}")
