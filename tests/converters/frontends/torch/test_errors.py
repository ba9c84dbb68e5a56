"""What the front end refuses, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from porter.converters.frontends.torch.export import export
from porter.errors import ExportError, InputError, UnsupportedError
from tests.converters.frontends.torch.cases import floats, ints
from tests.converters.frontends.torch.comparing import Case, graph_of


class Two(nn.Module):
    """Two operators that nobody translates, in different modules."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Case(torch.linalg.qr), Case(lambda x: torch.linalg.qr(x)[0] + torch.lgamma(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x)[0] + self.second(x)


def test_every_missing_operator_is_listed() -> None:
    with pytest.raises(UnsupportedError) as caught:
        graph_of(Two(), (floats(3, 3),), "none")
    message = str(caught.value)
    assert "aten.linalg_qr.default (2x) in first, second" in message
    assert "aten.lgamma.default (1x) in second" in message
    assert message.startswith("2 operator(s) of Two")


def _counting() -> nn.Module:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x + self.calls

    return Counting()


REFUSED: dict[str, tuple[Any, tuple, type[Exception], str]] = {
    "live dropout": (lambda x: F.dropout(x, 0.5, True), (floats(3),), UnsupportedError, "active in eval mode"),
    "live attention dropout": (
        lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.1),
        (floats(1, 1, 2, 3),),
        UnsupportedError,
        "active in eval mode",
    ),
    "own buffer": (_counting(), (floats(3),), ExportError, "'calls'"),
    "bags of their own": (
        lambda w, i, o: F.embedding_bag(i, w, o),
        (floats(4, 3), ints(5, low=0, high=4), torch.tensor([0, 2])),
        UnsupportedError,
        "2-D index",
    ),
    "padding in bags": (
        lambda w, i: F.embedding_bag(i, w, padding_idx=0),
        (floats(4, 3), ints(2, 3, low=0, high=4)),
        UnsupportedError,
        "padding_idx",
    ),
    "indices of a pool": (
        lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
        (floats(1, 1, 4, 4),),
        UnsupportedError,
        "output 1",
    ),
    "one_hot": (lambda i: F.one_hot(i), (ints(3, low=0, high=3),), Exception, ""),
    "bits": (lambda x: x.view(torch.int64), (floats(3),), UnsupportedError, "bits"),
    "projected LSTM": (nn.LSTM(3, 4, proj_size=2), (floats(5, 2, 3).float(),), UnsupportedError, "proj_size"),
    "random": (lambda x: x + torch.rand(3), (floats(3),), UnsupportedError, "aten.rand"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    model, inputs, kind, words = REFUSED[name]
    with pytest.raises(kind) as caught:
        graph_of(model if isinstance(model, nn.Module) else Case(model), inputs, "none")
    assert words in str(caught.value)


def test_the_models_own_error_is_told_with_the_inputs() -> None:
    with pytest.raises(ExportError, match=r"Linear itself fails on these inputs \(\[2, 5\] float32\)"):
        export(nn.Linear(3, 4), (torch.zeros(2, 5),))


def test_a_branch_on_data_names_the_line_and_the_remedy() -> None:
    def model(x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x

    with pytest.raises(ExportError) as caught:
        export(Case(model), (floats(3),))
    assert "torch.cond" in str(caught.value) and "test_errors.py" in str(caught.value)


def test_arguments_that_forward_does_not_take() -> None:
    with pytest.raises(InputError, match=r"Linear\.forward\(input.*cannot be called with 2 positional"):
        export(nn.Linear(3, 4), (floats(2, 3), floats(2)))
    with pytest.raises(InputError, match="cannot be called with 0 positional"):
        export(nn.Linear(3, 4), {"nothing": floats(2, 3)})


def test_dynamic_axes_that_do_not_exist() -> None:
    with pytest.raises(InputError, match="name the input 'y'"):
        export(nn.Linear(3, 4), (floats(2, 3),), {"y": {0: "batch"}})
    with pytest.raises(InputError, match="dynamic axis 2 does not exist"):
        export(nn.Linear(3, 4), (floats(2, 3),), {"input": {2: "batch"}})


def test_gathered_keywords_cannot_vary() -> None:
    class Gathering(nn.Module):
        def forward(self, **inputs: Tensor) -> Tensor:
            return inputs["x"] + inputs["y"]

    with pytest.raises(InputError, match=r"gathers x, y in \*\*inputs"):
        export(Gathering(), {"x": floats(2, 3), "y": floats(2, 3)}, "auto")
    export(Gathering(), {"x": floats(2, 3), "y": floats(2, 3)}, "none")
