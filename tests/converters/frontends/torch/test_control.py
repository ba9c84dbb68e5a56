"""Branches, loops and scans of torch's as ONNX: the graphs, and what they know of the author's functions."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops import map as over

from porter.converters.frontends.torch.check import check
from porter.converters.frontends.torch.export import export
from porter.converters.frontends.torch.translate import translate
from porter.converters.graph.nesting import everywhere, function_facts, graphs, subgraphs
from porter.converters.opset import SCOPE, SOURCE
from porter.errors import ExportError, UnsupportedError
from tests.converters.frontends.torch.cases import floats, seeded
from tests.converters.frontends.torch.comparing import Case, compare

START = torch.zeros((), dtype=torch.int64)


def _branch_in_loop(x: Tensor) -> Tensor:
    def step(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, torch.cond(x.sum() > 3, lambda x: x - 1, lambda x: x * 2 + 1, (x,))

    return while_loop(lambda i, x: i < 4, step, (START, x))[1]


def _loop_in_branch(x: Tensor) -> Tensor:
    def grown(x: Tensor) -> Tensor:
        return while_loop(lambda x: x.sum() < 50, lambda x: (x * 1.5 + 1,), (x,))[0]

    return torch.cond(x.sum() > 0, grown, lambda x: x * 3, (x,))


def _scan_in_branch(x: Tensor) -> Tensor:
    def summed(x: Tensor) -> Tensor:
        h, ys = scan(lambda h, t: (h + t, h * t), x[0].clone(), x)
        return ys + h

    return torch.cond(x.sum() > 0, summed, lambda x: x * 3, (x,))


def _branch_in_scan(x: Tensor) -> Tensor:
    def step(h: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.cond(t.sum() > 0, lambda h, t: h + t, lambda h, t: h - 2 * t, (h, t))
        return h, h.sum()

    return scan(step, torch.zeros_like(x[0]), x)[1]


def _loop_in_loop(x: Tensor) -> Tensor:
    def inner(j: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return j + 1, y * 2 + 1

    def outer(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, while_loop(lambda j, y: j < i, inner, (torch.zeros_like(i), x))[1]

    return while_loop(lambda i, x: i < 3, outer, (START, x))[1]


def _sized(x: Tensor) -> Tensor:
    ones = lambda x: torch.ones_like(x) * x.shape[0]  # noqa: E731 - a function without a name
    return torch.cond(x.sum() > 0, lambda x: x.reshape(-1).sum() * x.shape[0] + x, ones, (x,))


X = floats(3, 4)
Function = Callable[[Tensor], Any]
PROGRAMS: dict[str, tuple[Function, list[Tensor]]] = {
    "number that is counted": (
        lambda x: while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2 + i), (0, x))[1],
        [X, floats(2, 4)],
    ),
    "no turn": (lambda x: while_loop(lambda x: x.sum() < 5, lambda x: (x + 1,), (x,))[0], [X, X * 0 + 10]),
    "branch in loop": (_branch_in_loop, [X, floats(2, 4) + 9]),
    "loop in branch": (_loop_in_branch, [X.abs(), -X.abs(), X.abs()[:2]]),
    "scan in branch": (_scan_in_branch, [X.abs(), -X.abs(), X.abs()[:2]]),
    "branch in scan": (_branch_in_scan, [floats(5, 4), floats(7, 4)]),
    "loop in loop": (_loop_in_loop, [X, floats(2, 4)]),
    "map": (lambda x: over(lambda t, s: t.cumsum(0) * s, x, x.sum()), [X, floats(2, 4)]),
    "scan of two": (lambda x: scan(lambda h, t: (h + t[0] * t[1], h.sum()), x[0] * 0, (x, x * x)), [X, floats(6, 4)]),
    "scan backwards": (
        lambda x: scan(lambda h, t: (h * t, h + t), x[:, 0] * 0 + 1, x, dim=1, reverse=True),
        [X, X[:2]],
    ),
    "sizes": (_sized, [X, floats(2, 4), -floats(5, 4).abs()]),
    "known branch": (lambda x: torch.cond(torch.tensor(True), torch.exp, torch.neg, (x,)), [X]),
    "given twice": (
        lambda x: torch.cond(x.sum() > 0, lambda x: (x.clone(), x + 1), lambda x: (x + 0, x.clone()), (x,)),
        [X, -X.abs()],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    """As torch computes them, by ONNX's own implementation and by porter's check of operators."""
    function, inputs = PROGRAMS[name]
    compare(Case(function), *((x,) for x in inputs), dynamic="auto")
    model = Case(function)
    program = export(model, (inputs[0],), "auto")
    check(model, program, translate(program, model), (inputs[0],))


class Gated(nn.Module):
    """Branches with children, one of them a child itself."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU())
        self.b = nn.Conv2d(3, 3, 1)
        self.weight = nn.Parameter(torch.ones(3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        def scaled(image: Tensor) -> Tensor:
            y = self.b(image)
            return y * self.weight

        x = torch.cond(x.mean() > 0, self.a, scaled, (x,))
        return torch.cond(x.mean() > 0, self.a, scaled, (x,))


IMAGE = floats(2, 3, 5, 5)


def test_functions_keep_name_lines_and_modules() -> None:
    graph = compare(seeded(Gated()), (IMAGE.abs(),), (-IMAGE.abs(),), (IMAGE[:, :, :3].abs(),), dynamic="auto").graph
    first, second = [node for node in graph if node.op_type == "If"]
    branch = subgraphs(first)["else_branch"]
    assert function_facts(branch)["name"] == "scaled"
    conv, times = branch
    assert [path for path, _, _ in json.loads(conv.metadata_props[SCOPE])] == ["", "b"]
    assert json.loads(times.metadata_props[SOURCE])[-1][2] == "return y * self.weight"
    calls = [
        tuple(json.loads(node.metadata_props[SCOPE])[-1][:2]) for node in everywhere(graph) if node.op_type == "Conv"
    ]
    assert len(set(calls)) == 4, "every call of a module has a number of its own"
    assert subgraphs(second)["then_branch"][1].op_type == "BatchNormalization"


def test_parameters_of_a_step_keep_their_names() -> None:
    def forward(x: Tensor) -> Any:
        def going(count: Tensor, value: Tensor) -> Tensor:
            return count < 3

        def advance(count: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
            value = value * 2
            return count + 1, value

        return while_loop(going, advance, (START, x))

    graph = compare(Case(forward), (X,)).graph
    facts = [function_facts(inner) for inner in graphs(graph) if function_facts(inner)]
    assert facts == [{"name": "advance", "parameters": ["", "", "count", "value"], "condition": "going"}]


def test_a_saved_program_has_neither_and_is_translated() -> None:
    model = seeded(Gated()).double()
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(model, (IMAGE,), strict=False), buffer)
    buffer.seek(0)
    program = torch.export.load(buffer)
    graph = translate(program, program)
    check(model, program, graph, (IMAGE,))
    assert all(not function_facts(inner) for inner in graphs(graph.graph))


def test_a_wrong_branch_is_found() -> None:
    """The check compares an operator with graphs inside as a whole."""
    model = Case(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)))
    program = export(model, (X,), "auto")
    graph = translate(program, model)
    for node in everywhere(graph.graph):
        if node.op_type == "Sin":
            node.op_type = "Sinh"
    with pytest.raises(ExportError, match="cond"):
        check(model, program, graph, (X.abs(),))
    check(model, program, graph, (-X.abs(),))


def test_a_wrong_loop_is_found() -> None:
    model = Case(lambda x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (START, x))[1])
    program = export(model, (X,), "auto")
    graph = translate(program, model)
    for node in everywhere(graph.graph):
        if node.op_type == "Mul":
            node.op_type = "Add"
    with pytest.raises(ExportError, match="while_loop"):
        check(model, program, graph, (X,))


def test_an_associative_scan_is_refused_by_name() -> None:
    model = Case(lambda x: associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic"))
    with pytest.raises(UnsupportedError, match=r"torch\.vmap"):
        translate(export(model, (X,), "none"), model)


def test_operators_without_translation_are_found_inside() -> None:
    model = Case(lambda x: torch.cond(x.sum() > 0, lambda x: torch.lgamma(x), lambda x: x.cos(), (x,)))
    with pytest.raises(UnsupportedError, match=r"aten\.lgamma\.default \(1x\)"):
        translate(export(model, (X,), "none"), model)


def test_every_value_has_shape_and_type() -> None:
    graph = compare(Case(_branch_in_loop), (X,), (floats(2, 4),), dynamic="auto").graph
    loop = next(node for node in graph if node.op_type == "Loop")
    values: list[ir.Value] = [*loop.outputs, *subgraphs(loop)["body"].inputs]
    assert all(value.shape is not None and value.dtype is not None for value in values)
