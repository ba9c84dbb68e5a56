"""What is more than one operator: branches, regions, sizes from data, names, decompositions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from porter.converters.frontends.torch.check import check
from porter.converters.frontends.torch.export import export
from porter.converters.frontends.torch.translate import translate
from tests.converters.frontends.torch.cases import flags, floats, ints
from tests.converters.frontends.torch.comparing import Case, compare


def _branches(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda t: t * 2 + 1, lambda t: (t - 1).relu(), (x,))


def _no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x.softmax(-1)
    return y * x


def _ceil(x: Tensor) -> Tensor:
    half = -((-x.shape[1]) // 2)
    return x[:, :half] + F.pad(x, (0, x.shape[1] % 2))[:, half:].sum(1, keepdim=True)


def _squared(x: Tensor) -> Tensor:
    return x.view(x.shape[0], -1) @ torch.ones(x.shape[1] * x.shape[2], 2, dtype=x.dtype)


def _selected(x: Tensor) -> Tensor:
    return x[x > 0].sum() / (x > 0).sum()


def _padded_mask(x: Tensor, lengths: Tensor) -> Tensor:
    mask = torch.arange(x.shape[1])[None] < lengths[:, None]
    return (x * mask[..., None]).sum(1) / lengths[:, None].clamp(min=1)


PROGRAMS: dict[str, tuple[Any, tuple, list[tuple]]] = {
    "cond": (_branches, (floats(2, 3).abs(),), [(-floats(2, 3).abs(),), (floats(4, 3).abs(),)]),
    "no_grad": (_no_grad, (floats(2, 3),), [(floats(1, 4),)]),
    "ceil": (_ceil, (floats(2, 5),), [(floats(2, 6),), (floats(1, 9),)]),
    "squared": (_squared, (floats(2, 3, 3),), [(floats(1, 3, 3),), (floats(5, 4, 4),)]),
    "selected": (_selected, (floats(2, 5),), [(floats(3, 4),)]),
    "mask": (_padded_mask, (floats(3, 4, 2), torch.tensor([4, 2, 0])), [(floats(1, 6, 2), torch.tensor([3]))]),
    "hypot of parts": (lambda x: torch.hypot(x, x.flip(0)), (floats(2, 3),), [(floats(5, 1),)]),
    "smooth_l1": (F.smooth_l1_loss, (floats(2, 3), floats(2, 3, seed=1)), []),
    "cosine": (lambda x, y: F.cosine_similarity(x, y), (floats(2, 3), floats(2, 3, seed=1)), []),
    "where any": (lambda x, m: torch.where(m.any(0), x, -x), (floats(2, 3), flags(2, 3)), []),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    function, inputs, others = PROGRAMS[name]
    compare(Case(function), inputs, *others, dynamic="auto" if others else "none")
    model = Case(function)
    program = export(model, inputs, "auto" if others else "none")
    check(model, program, translate(program, model), inputs)


class Named(nn.Module):
    """Names that a tracer also likes to give."""

    def __init__(self) -> None:
        super().__init__()
        self.add = nn.Parameter(floats(3))
        self.relu = nn.Parameter(floats(3, seed=1))
        self.silu_ = nn.SiLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(x + self.add) * self.relu
        return self.silu_(self.silu_(self.silu_(y * 1)) + self.silu_(y + 1))


def test_no_two_values_share_a_name() -> None:
    graph = compare(Named(), (floats(2, 3),))
    values = [*graph.graph.inputs, *graph.graph.initializers.values(), *(o for n in graph.graph for o in n.outputs)]
    names = [value.name for value in values]
    assert len(names) == len(set(names))
    assert {"add", "relu"} <= set(graph.graph.initializers)


def test_what_has_no_rule_is_taken_apart_alone() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.drop = nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            return F.huber_loss(self.drop(self.norm(x)), x, reduction="none")

    graph = compare(Model(), (floats(4, 3),))
    kinds = [node.op_type for node in graph.graph]
    assert "BatchNormalization" in kinds and "Dropout" in kinds


def test_keyword_inputs() -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor, *, scale: Tensor, shift: Tensor | None = None) -> Tensor:
            return x * scale if shift is None else x * scale + shift

    dynamic = {"x": {0: "batch"}}
    given = {"x": floats(2, 3), "scale": floats(3)}
    compare(Model(), given, {"x": floats(5, 3), "scale": floats(3)}, dynamic=dynamic)


def test_integer_inputs_keep_their_width() -> None:
    compare(Case(lambda x: x + torch.tensor(3)), (ints(4).int(),))
