"""The translation checked operator by operator, before any code is made of it.

The program is run step by step in float64. What each of its operators became in ONNX is evaluated on the *true* inputs
of that operator, so that an error shows where it arises and nowhere else, and compared with what torch gives.
Operators that are alike in target, arguments, shapes and ONNX nodes are compared once.

Convolutions, pools, matrix products, normalisations, resizing, gathering and scattering are evaluated by
`kernels`, written from the ONNX standard; all others by ONNX's reference implementation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch.export import ExportedProgram

from porter.converters.frontends.comparison import difference, external
from porter.converters.frontends.evaluate import as_double, evaluate_nodes
from porter.converters.frontends.torch.cropping import cropped
from porter.converters.frontends.torch.export import call_arguments
from porter.converters.frontends.torch.fxgraph import is_inplace
from porter.converters.frontends.torch.metadata import module_of, source_line
from porter.converters.frontends.torch.stepping import Stepper
from porter.converters.opset import HOLDS, ORIGIN, SIZE
from porter.errors import ExportError

# Which of several equal elements is picked is torch's own choice: what they point at is compared instead.
_PICKING = {"topk": 2, "sort": 1, "argsort": 1}  # and the position of `dim` among the arguments


def check(model: torch.nn.Module, program: ExportedProgram, graph: ir.Model, inputs: Any) -> None:
    """Compare every operator's translation with torch.

    Args:
        model: the source; only named in messages.
        program: what was exported from it.
        graph: what `translate` made of the program, before any other pass.
        inputs: the model's inputs, of sizes that the program accepts.

    Raises:
        ExportError: naming the first operator whose translation differs, its module and its line.
    """
    args, kwargs = call_arguments(inputs)
    smaller = cropped(program, args, kwargs)
    if smaller is not None:
        try:
            _Check(type(model).__name__, program, graph.graph).run(*smaller)
            return
        except ExportError:
            raise
        except Exception:
            pass  # the model itself cannot run at those sizes
    _Check(type(model).__name__, program, graph.graph).run(args, kwargs)


class _Check:
    """The state of one check: which ONNX values are known, and which are still needed."""

    def __init__(self, name: str, program: ExportedProgram, graph: ir.Graph) -> None:
        self.name = name
        self.program = program
        self.groups: dict[str, list[ir.Node]] = {}
        for node in graph:
            self.groups.setdefault(node.metadata_props.get(ORIGIN, ""), []).append(node)
        self.holders: dict[str, list[tuple[ir.Value, int | None]]] = {}
        self.known: dict[ir.Value, np.ndarray] = {}
        self.seen: set[tuple] = set()
        values = [*graph.inputs, *graph.initializers.values(), *(output for node in graph for output in node.outputs)]
        for value in values:
            for held in value.metadata_props.get(HOLDS, "").split():
                name, _, index = held.partition("#")
                self.holders.setdefault(name, []).append((value, int(index) if index else None))
        self.constants = {value for value in graph.initializers.values() if not value.metadata_props.get(HOLDS)}
        self.weights: dict[ir.Value, tuple[str, int | None]] = {}
        self.outputs = list(graph.outputs)
        self.until = self._lifetimes()

    def _lifetimes(self) -> dict[ir.Value, int]:
        """{value: the last step that reads it, or that says that it stands for a tensor}."""
        order = {node.name: position for position, node in enumerate(self.program.graph.nodes)}
        until: dict[ir.Value, int] = {}
        for group, nodes in self.groups.items():
            for value in external(nodes):
                until[value] = max(until.get(value, -1), order[group])
        for name, holders in self.holders.items():
            for value, _ in holders:
                until[value] = max(until.get(value, -1), order[name])
        until.update((value, len(order)) for value in self.outputs)
        return until

    def run(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Step through the program."""
        stepper = Stepper(self.program, args, kwargs)
        for position, node in enumerate(stepper):
            nodes = self.groups.get(node.name, [])
            if stepper.is_weight(node.name):
                self.weights.update((value, (node.name, index)) for value, index in self.holders.get(node.name, []))
                continue
            computed = self._evaluated(node, nodes, stepper)
            made = {output for each in nodes for output in each.outputs}
            for value, truth in list(self._claims(node, made, stepper)):
                if value in computed:
                    self._compare(node, stepper, computed[value], truth)
                elif value not in made and (value in self.known or value in self.weights):
                    self._compare(node, stepper, self._truth(value, stepper), truth)
                if value not in self.weights:
                    self.known[value] = truth
            for value in made:
                if value.metadata_props.get(SIZE) and value in computed:
                    self.known[value] = computed[value]
            self._forget(position)
            if stepper.writes:
                self._reads_truth(stepper, _next(node))

    def _reads_truth(self, stepper: Stepper, node: torch.fx.Node) -> None:
        """What the next step reads of a tensor that was written into must be what the tensor holds by now."""
        nodes = self.groups.get(node.name, [])
        read = self.outputs if node.op == "output" else external(nodes)
        for source in node.all_input_nodes:
            owner = source
            while is_inplace(owner.target):
                owner = owner.args[0]
            for value, index in self.holders.get(owner.name, []) if stepper.written(owner) else []:
                if value not in read or value not in self.known:
                    continue
                truth = stepper.array(owner.name, index)
                if truth is not None and difference(self.known[value], truth):
                    raise ExportError(
                        f"{self._where(node)} reads a tensor that is not equal to torch's there: "
                        f"an in-place change of {owner.name!r} was lost. Write to a copy instead, and please report it."
                    )

    def _claims(
        self, node: torch.fx.Node, made: set[ir.Value], stepper: Stepper
    ) -> Iterator[tuple[ir.Value, np.ndarray]]:
        """The values that stand, from this step on, for tensors of the program."""
        names = [node.name, *(stepper.names() if is_inplace(node.target) else [])]
        for name in names:
            for value, index in self.holders.get(name, []):
                if value in made or name == node.name:
                    truth = stepper.array(name, index)
                    if truth is not None:
                        yield value, truth

    def _evaluated(self, node: torch.fx.Node, nodes: list[ir.Node], stepper: Stepper) -> dict[ir.Value, np.ndarray]:
        """What the ONNX nodes of one step give on true inputs; nothing for a step like one that was compared, or one
        with an operator of a user's own domain, which nothing but the finished port can compute."""
        if not nodes or any(each.domain for each in nodes):
            return {}
        signature = self._signature(node, nodes)
        sizes = any(output.metadata_props.get(SIZE) for each in nodes for output in each.outputs)
        if signature in self.seen and not sizes:
            return {}
        self.seen.add(signature)
        known = {value: self._truth(value, stepper) for value in external(nodes)}
        try:
            evaluate_nodes(nodes, known)
        except Exception as error:
            raise ExportError(f"{self._where(node)} cannot be evaluated: {type(error).__name__}: {error}") from error
        return {output: known[output] for each in nodes for output in each.outputs if output in known}

    def _truth(self, value: ir.Value, stepper: Stepper) -> np.ndarray:
        """What a value holds; weights and constants are widened anew for each step, so that one is alive at a time."""
        if value in self.weights:
            truth = stepper.array(*self.weights[value])
            assert truth is not None
            return truth
        return _constant(value) if value in self.constants else self.known[value]

    def _signature(self, node: torch.fx.Node, nodes: list[ir.Node]) -> tuple:
        """What an operator's translation depends on: its ONNX nodes, how they are wired, shapes and small constants."""
        places: dict[ir.Value, Any] = {}
        for position, source in enumerate(node.all_input_nodes):
            for value, index in self.holders.get(source.name, []):
                places[value] = ("argument", position, index)
        described = []
        for number, each in enumerate(nodes):
            wiring = tuple(None if i is None else places.get(i) or self._outside(i) for i in each.inputs)
            attributes = tuple(sorted((key, str(attribute.value)) for key, attribute in each.attributes.items()))
            described.append((each.op_type, wiring, attributes))
            places.update({output: ("made", number, k) for k, output in enumerate(each.outputs)})
        shapes = tuple(self._shape(value) for value in external(nodes))
        others = tuple(str(a) for a in node.args if not isinstance(a, torch.fx.Node))
        return (str(node.target), others, str(node.kwargs), tuple(described), shapes)

    def _outside(self, value: ir.Value) -> Any:
        if value not in self.constants or value.const_value.size > 64:
            return value.name
        array = _constant(value)
        return (array.dtype.str, array.shape, array.tobytes())

    def _shape(self, value: ir.Value) -> tuple:
        if value.const_value is not None:
            return (value.const_value.dtype, *value.const_value.shape)
        array = self.known.get(value)
        return () if array is None else (array.dtype.str, *array.shape)

    def _compare(self, node: torch.fx.Node, stepper: Stepper, got: np.ndarray, truth: np.ndarray) -> None:
        problem = difference(got, truth)
        picking = getattr(node.target, "_opname", "") in _PICKING and truth.dtype == np.int64
        if problem and picking and got.shape == truth.shape:
            source = next(self._truth(held, stepper) for held, _ in self.holders[node.args[0].name])
            axis = _axis(node)
            problem = difference(np.take_along_axis(source, got, axis), np.take_along_axis(source, truth, axis))
        if problem:
            raise ExportError(
                f"{self._where(node)} is not equal to torch on the same inputs: {problem}. "
                "This is a fault of porter's translation of that operator; please report it with the model."
            )

    def _where(self, node: torch.fx.Node) -> str:
        return f"the ONNX translation of {node.target} in {module_of(node)} of {self.name} ({source_line(node)})"

    def _forget(self, position: int) -> None:
        for value in [v for v in self.known if v.const_value is None and self.until.get(v, -1) <= position]:
            del self.known[value]


def _next(node: torch.fx.Node) -> torch.fx.Node:
    following = node.next
    while following.op == "call_function" and not isinstance(following.target, torch._ops.OpOverload):
        following = following.next
    return following


def _constant(value: ir.Value) -> np.ndarray:
    assert value.const_value is not None
    return as_double(value.const_value.numpy())


def _axis(node: torch.fx.Node) -> int:
    position = _PICKING[node.target._opname]
    return node.args[position] if len(node.args) > position else node.kwargs.get("dim", -1)
