"""The check of a translation: it passes what is right and names what is wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from porter.converters.frontends.torch import table
from porter.converters.frontends.torch.check import check
from porter.converters.frontends.torch.export import export
from porter.converters.frontends.torch.translate import translate
from porter.errors import ExportError
from porter.zoo import catalog
from tests.converters.frontends.torch.cases import flags, floats, ints
from tests.converters.frontends.torch.comparing import Case


def checked(model: nn.Module, inputs: Any, dynamic: Any = "none", later: Any = None) -> ir.Model:
    program = export(model, inputs, dynamic)
    graph = translate(program, model, dynamic if isinstance(dynamic, dict) else None)
    check(model, program, graph, inputs if later is None else later)
    return graph


@pytest.mark.parametrize("entry", catalog.originals("torch"), ids=lambda entry: entry.name)
def test_zoo(entry: catalog.Entry) -> None:
    model = entry.make(small=True)
    checked(model, entry.inputs(small=True), entry.dynamic, entry.inputs(small=True, batch=3, seed=1))


class Inner(nn.Module):
    """A module around one operator, so that a message has a path to name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Outer(nn.Module):
    """Something before and after the operator."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any) -> Any:
        moved = [torch.cos(a) if a.is_floating_point() else a.clone() for a in args]
        return self.inner(*moved)


def _without(*forgotten: str) -> Callable[[Callable], Callable]:
    """A rule whose ONNX nodes lose attributes."""

    def spoil(right: Callable) -> Callable:
        def wrong(op: Any, *args: Any, **kwargs: Any) -> Any:
            first = len(op.nodes)
            result = right(op, *args, **kwargs)
            for node in op.nodes[first:]:
                for name in forgotten:
                    node.attributes.pop(name, None)
            return result

        return wrong

    return spoil


def _with(**changed: Any) -> Callable[[Callable], Callable]:
    """A rule called with other arguments."""
    return lambda right: lambda op, *args, **kwargs: right(op, *args, **{**kwargs, **changed})


def _swapped(right: Callable) -> Callable:
    return lambda op, x, y, *rest, **kwargs: right(op, y, x, *rest, **kwargs)


def _identity(right: Callable) -> Callable:
    return lambda op, x, *args, **kwargs: x


def _shifted(right: Callable) -> Callable:
    """The right answer, moved by a thousandth."""

    def wrong(op: Any, *args: Any, **kwargs: Any) -> Any:
        result = right(op, *args, **kwargs)
        first = result[0] if isinstance(result, tuple) else result
        moved = op.Mul(first, op.constant(1.001, first))
        return (moved, *result[1:]) if isinstance(result, tuple) else moved

    return wrong


IMAGE = floats(2, 4, 9, 8).float()
WRONG: dict[str, tuple[Callable, Callable[..., Any], tuple]] = {
    "conv2d.default": (_without("strides"), nn.Conv2d(4, 3, 3, stride=2, padding=1), (IMAGE,)),
    "conv_transpose2d.input": (_without("pads"), nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1), (IMAGE,)),
    "max_pool2d.default": (_without("dilations"), nn.MaxPool2d(3, 1, 1, dilation=2), (IMAGE,)),
    "avg_pool2d.default": (_without("count_include_pad"), nn.AvgPool2d(3, 2, 1), (IMAGE,)),
    "adaptive_avg_pool2d.default": (_shifted, nn.AdaptiveAvgPool2d(3), (IMAGE,)),
    "batch_norm.default": (_without("epsilon"), nn.BatchNorm2d(4, eps=0.1).eval(), (IMAGE,)),
    "layer_norm.default": (_without("epsilon"), nn.LayerNorm(8, eps=0.1), (IMAGE,)),
    "group_norm.default": (_shifted, nn.GroupNorm(2, 4), (IMAGE,)),
    "add.Tensor": (_shifted, lambda x, y: x + y, (IMAGE, IMAGE + 1)),
    "sub.Tensor": (_swapped, lambda x, y: x - y, (IMAGE, IMAGE * 2)),
    "remainder.Tensor": (
        lambda right: lambda op, x, y: op.Mod(x, y, fmod=1),
        torch.remainder,
        (ints(20), ints(20, low=1)),
    ),
    "relu.default": (_identity, F.relu, (IMAGE,)),
    "gelu.default": (_with(approximate="tanh"), F.gelu, (IMAGE,)),
    "softmax.int": (
        lambda right: lambda op, x, dim, dtype=None: right(op, x, 0),
        lambda x: x.softmax(-1),
        (IMAGE,),
    ),
    "linear.default": (_shifted, nn.Linear(8, 3), (IMAGE,)),
    "matmul.default": (_swapped, torch.matmul, (IMAGE[..., :8, :], 2 + IMAGE[..., :8, :])),
    "sum.dim_IntList": (
        lambda right: lambda op, x, dim, *rest: right(op, x, [1], *rest),
        lambda x: x.sum(2),
        (floats(3, 3, 3).float(),),
    ),
    "argmax.default": (
        lambda right: lambda op, x, dim: right(op, x, 0),
        lambda x: x.argmax(-1),
        (floats(3, 3).float(),),
    ),
    "topk.default": (_with(largest=False), lambda x: x.topk(2), (floats(3, 5).float(),)),
    "transpose.int": (_identity, lambda x: x.transpose(-1, -2), (floats(3, 3).float(),)),
    "slice.Tensor": (
        lambda right: lambda op, x, dim=0, start=None, end=None, step=1: right(op, x, dim, 0, end, step),
        lambda x: x[:, 1:, 1:],
        (IMAGE,),
    ),
    "gather.default": (
        lambda right: lambda op, x, dim, index: right(op, x, 0, index),
        lambda x, i: x.gather(1, i),
        (floats(3, 3).float(), ints(3, 3, low=0, high=3)),
    ),
    "index_put.default": (
        lambda right: lambda op, x, *rest, **kwargs: x,
        lambda x, m: x.masked_fill(m, 0).index_put((m,), torch.tensor(2.0)),
        (floats(4, 3).float(), flags(4, 3)),
    ),
    "embedding.default": (_shifted, nn.Embedding(5, 3), (ints(4, low=0, high=5),)),
    "upsample_bilinear2d.vec": (
        lambda right: lambda op, x, size, align, scales=None: right(op, x, size, not align, scales),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        (IMAGE,),
    ),
    "lstm.input": (_shifted, nn.LSTM(8, 3), (floats(4, 2, 8).float(),)),
    "gru.input": (_without("linear_before_reset"), nn.GRU(8, 3), (floats(4, 2, 8).float(),)),
    "scaled_dot_product_attention.default": (
        _with(scale=0.1),
        F.scaled_dot_product_attention,
        (IMAGE, IMAGE + 1, IMAGE + 2),
    ),
    "zeros.default": (
        lambda right: lambda op, *args, **kwargs: op.Expand(op.constant(1, op.dtype), op.shape_of_output()),
        lambda x: torch.zeros(9) + x[..., :1],
        (IMAGE,),
    ),
    "arange.default": (_shifted, lambda x: torch.arange(8.0) + x, (IMAGE,)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, function, inputs = WRONG[name]
    model = Outer(function if isinstance(function, nn.Module) else Inner(function)).eval()
    checked(model, inputs)
    (right,) = table._rules[name]
    wrong = dataclasses.replace(right, function=spoil(right.function))
    monkeypatch.setitem(table._rules, name, [wrong])
    with pytest.raises(ExportError) as caught:
        checked(model, inputs)
    message = str(caught.value)
    assert f"aten.{name}" in message and "in inner of Outer" in message and ".py:" in message, message


def test_a_lost_write_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from porter.converters.frontends.torch.aliases import Aliases

    def model(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[:, 1:2, 3:5, 1::2].relu_()
        return y * 2

    checked(Case(model), (IMAGE,))
    monkeypatch.setattr(Aliases, "_mutate_base", lambda self, view, value: None)
    with pytest.raises(ExportError, match="not equal to torch"):
        checked(Case(model), (IMAGE,))


def test_alike_operators_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from porter.converters.frontends.torch import check as module

    evaluated = []

    def counted(nodes: list[ir.Node], known: Any) -> None:
        evaluated.append([node.op_type for node in nodes])
        original(nodes, known)

    original = module.evaluate_nodes
    monkeypatch.setattr(module, "evaluate_nodes", counted)
    checked(nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(5))), (floats(2, 4).float(),))
    assert sum(types == ["Gemm"] for types in evaluated) == 1
    assert sum(types == ["Relu"] for types in evaluated) == 1


def test_half_precision_models_are_checked_in_double() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU()).to(torch.bfloat16)
    checked(model, (floats(2, 4).to(torch.bfloat16),))
