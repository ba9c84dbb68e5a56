"""torch's higher-order operators: `cond` becomes `If`, `while_loop` `Loop`, `scan` and `map` `Scan`.

A `no_grad` region is translated in place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx_ir as ir
import torch

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.aten.autograd import stopped
from porter.converters.frontends.torch.dtypes import from_torch
from porter.converters.frontends.torch.symbols import Names
from porter.converters.opset import FUNCTION

# Regions that change nothing in inference, with the position of their body among the arguments.
REGIONS = {"wrap_with_set_grad_enabled": 1, "hints_wrapper": 0}
# What torch.export leaves of its record of module calls inside such a region: its arguments, unchanged.
TRACEPOINT = "_export_tracepoint"
NAMES = {"cond", "while_loop", "scan", "map_impl", TRACEPOINT, *REGIONS}


def is_control(node: torch.fx.Node) -> bool:
    """Whether a node is one of the operators that are translated here."""
    return isinstance(node.target, torch._ops.HigherOrderOperator) and node.target.name() in NAMES


def body_of(node: torch.fx.Node) -> list[torch.fx.GraphModule]:
    """The graphs inside a higher-order node."""
    return [
        _module(argument) for argument in node.args if isinstance(argument, torch.fx.Node) and argument.op == "get_attr"
    ]


def _module(node: torch.fx.Node) -> torch.fx.GraphModule:
    owner = node.graph.owning_module
    assert owner is not None
    return owner.get_submodule(str(node.target))


@dataclass(frozen=True)
class Translation:
    """What a higher-order node needs of the translator.

    `value(argument)` is the value of an fx argument, `translate(graph, arguments)` translates a graph where it stands,
    `sizes` names the program's sizes.
    """

    op: Builder
    value: Callable[[Any], Any]
    translate: Callable[[torch.fx.Graph, Any], list[Any]]
    sizes: Names

    def node(self, node: torch.fx.Node) -> Any:
        """The values of a higher-order node."""
        name = node.target.name()
        if name == TRACEPOINT:
            return [self.value(argument) for argument in node.args]
        if name in REGIONS:
            return self._region(node, name)
        for argument in node.all_input_nodes:
            if argument.op != "get_attr":
                self.value(argument)  # computed outside of the bodies
        made = {"cond": self._cond, "while_loop": self._while, "scan": self._scan, "map_impl": self._map}[name](node)
        results = list(made) if isinstance(made, tuple) else [made]
        for result, fake in zip(results, node.meta["val"], strict=True):
            result.dtype, shape = self._kind(fake)
            result.shape = ir.Shape(shape)
            if isinstance(fake, torch.SymInt):
                self.op.is_size(str(self.sizes.size(fake)), result)
        return results

    def inline(self, graph: torch.fx.Graph, arguments: Any) -> list[Any]:
        """A graph translated where it stands; what comes after it is again stamped as the operator itself."""
        places = [node.meta.get("val") for node in graph.nodes if node.op == "placeholder"]
        with self.op.apart():
            for place, argument in zip(places, arguments, strict=True):
                name = str(self.sizes.size(place)) if isinstance(place, torch.SymInt) else ""
                if name.isidentifier() and name not in self.op.origins:  # a number that a loop carries
                    self.op.is_size(name, self._tensor(argument))
            return self.translate(graph, arguments)

    # ---- the operators ----

    def _region(self, node: torch.fx.Node, name: str) -> Any:
        """Where gradients are off, what is made inside has none outside."""
        before = len(self.op.nodes)
        results = self.inline(body_of(node)[0].graph, node.args[REGIONS[name] + 1 :])
        if name != "wrap_with_set_grad_enabled" or node.args[0] is not False:
            return results
        made = {output for each in self.op.nodes[before:] for output in each.outputs}
        return [stopped(self.op, result) if result in made else result for result in results]

    def _cond(self, node: torch.fx.Node) -> Any:
        condition, operands = self.value(node.args[0]), node.args[3]
        if isinstance(condition, bool | int):
            condition = self.op.constant(bool(condition), ir.DataType.BOOL)
        branches = [
            self._graph(body, [], partial(self.inline, body.graph, operands), label)
            for body, label in zip(body_of(node), ("then", "else"), strict=True)
        ]
        condition = self.op.cast(condition, ir.DataType.BOOL)
        return self.op.If(condition, then_branch=branches[0], else_branch=branches[1], outputs=len(branches[0].outputs))

    def _while(self, node: torch.fx.Node) -> Any:
        """The condition is asked before the first turn, and at the end of each for the next one."""
        condition, step = body_of(node)
        carried, others = [self._tensor(argument) for argument in node.args[2]], list(node.args[3])
        first = self.inline(condition.graph, [*carried, *others])[0]
        formals = self._formals(step, len(carried))

        def turn() -> list[Any]:
            results = self.inline(step.graph, [*formals, *others])
            return [self.inline(condition.graph, [*results, *others])[0], *results]

        again = [self._formal(ir.DataType.INT64, []), self._formal(ir.DataType.BOOL, [])]
        body = self._graph(step, [*again, *formals], turn, "step", unnamed=2)
        asked = condition.meta.get(FUNCTION, {}).get("name")
        if asked:
            known = json.loads(body.metadata_props.get(FUNCTION, "{}"))
            body.metadata_props[FUNCTION] = json.dumps({**known, "condition": asked})
        return self.op.Loop(None, self.op.cast(first, ir.DataType.BOOL), *carried, body=body, outputs=len(carried))

    def _scan(self, node: torch.fx.Node) -> Any:
        (step,), (initial, sequences, others) = body_of(node), node.args[1:]
        return self._over(node, step, list(initial), list(sequences), list(others))

    def _map(self, node: torch.fx.Node) -> Any:
        (step,), (sequences, others) = body_of(node), node.args[1:]
        return self._over(node, step, [], list(sequences), list(others))

    def _over(self, node: torch.fx.Node, step: Any, initial: list[Any], sequences: list[Any], others: list[Any]) -> Any:
        """`Scan` over the first axes of sequences."""
        formals = self._formals(step, len(initial) + len(sequences))
        body = self._graph(step, formals, lambda: self.inline(step.graph, [*formals, *others]), "step")
        values = [self._tensor(argument) for argument in (*initial, *sequences)]
        return self.op.Scan(*values, body=body, num_scan_inputs=len(sequences), outputs=len(node.meta["val"]))

    # ---- graphs ----

    def _tensor(self, argument: Any) -> ir.Value:
        value = argument if isinstance(argument, ir.Value) else self.value(argument)
        return value if isinstance(value, ir.Value) else self.op.value(value)

    def _kind(self, fake: Any) -> tuple[ir.DataType, list[int | str]]:
        """The type and shape of a fake tensor, or of a number that is traced."""
        if isinstance(fake, torch.Tensor):
            return from_torch(fake.dtype), self.sizes.shape(fake)
        return (ir.DataType.INT64 if isinstance(fake, torch.SymInt | int) else ir.DataType.FLOAT), []

    def _formal(self, dtype: ir.DataType, shape: list[int | str]) -> ir.Value:
        return ir.Value(name=self.op.fresh(), type=ir.TensorType(dtype), shape=ir.Shape(shape))

    def _formals(self, body: torch.fx.GraphModule, count: int) -> list[ir.Value]:
        """Values for the first parameters of a graph."""
        places = [node for node in body.graph.nodes if node.op == "placeholder"][:count]
        return [self._formal(*self._kind(place.meta["val"])) for place in places]

    def _graph(
        self,
        body: torch.fx.GraphModule,
        inputs: Sequence[ir.Value],
        translate: Callable[[], list[Any]],
        label: str,
        unnamed: int = 0,
    ) -> ir.Graph:
        """A subgraph, which sees the tensors around it; its outputs are its own, each once.

        `unnamed` of its inputs come first and are no parameters of the author's function.
        """
        op = self.op
        with op.inside() as nodes:
            outputs: list[ir.Value] = []
            for value in translate():
                value = value if isinstance(value, ir.Value) else op.value(value)
                if value.producer() not in nodes or value in outputs:
                    copy = op.Identity(value)
                    copy.shape, copy.dtype = value.shape, value.dtype
                    value = copy
                outputs.append(value)
        graph = ir.Graph(list(inputs), outputs, nodes=nodes, name=f"{op.prefix}_{label}")
        known = body.meta.get(FUNCTION, {})
        names = known.get("parameters", [])
        if len(names) != len(inputs) - unnamed:
            names = []
        if names or known.get("name"):
            names = [*[""] * unnamed, *names]
            graph.metadata_props[FUNCTION] = json.dumps({"name": known.get("name", ""), "parameters": names})
        return graph
