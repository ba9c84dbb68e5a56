"""Every operator rule, one use at a time, against torch in float64."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from porter.converters.frontends.torch import table
from porter.converters.frontends.torch.export import export
from tests.converters.frontends.torch import (
    rows_elementwise,
    rows_index,
    rows_layers,
    rows_products,
    rows_reduce,
    rows_shape,
)
from tests.converters.frontends.torch.cases import Row
from tests.converters.frontends.torch.comparing import Case, compare, doubled

ROWS = [
    *rows_elementwise.ROWS,
    *rows_shape.ROWS,
    *rows_index.ROWS,
    *rows_reduce.ROWS,
    *rows_layers.ROWS,
    *rows_products.ROWS,
]


def _ids() -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for row in ROWS:
        seen[row.op] += 1
        names.append(f"{row.op}-{seen[row.op]}")
    return names


@pytest.mark.parametrize("row", ROWS, ids=_ids())
def test_operator(row: Row) -> None:
    model = row.function if isinstance(row.function, torch.nn.Module) else Case(row.function)
    compare(model, row.inputs, *row.also, dynamic="auto" if row.also else "none", double=row.double)
    given = doubled(row.inputs) if row.double else row.inputs
    program = export(model.double() if row.double else model, given, "auto" if row.also else "none")
    traced = {str(node.target).removeprefix("aten.") for node in program.graph.nodes}
    assert {row.name, f"{row.name.partition('.')[0]}_.{row.name.partition('.')[2]}"} & traced, f"traced {traced}"


def test_every_rule_has_a_row() -> None:
    """Rules for complex tensors have tests of their own."""
    table.names()
    tried = {row.name for row in ROWS} | {"lift_fresh.default"}  # which this version of torch writes as a copy
    missing = sorted(
        name for name in table._rules if name not in tried and not name.startswith(("fft_", "_fft_", "stft", "istft"))
    )
    assert not missing, f"ATen rules without a row: {', '.join(missing)}"
