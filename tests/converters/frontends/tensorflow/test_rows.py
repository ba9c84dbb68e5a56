"""Every operator rule, one use at a time, against TensorFlow in float64."""

from __future__ import annotations

from collections import Counter

import pytest

from porter.converters.frontends.tensorflow import table
from tests.converters.frontends.tensorflow import rows_elementwise, rows_index, rows_layers, rows_shape
from tests.converters.frontends.tensorflow.cases import Row
from tests.converters.frontends.tensorflow.comparing import compare

ROWS = [*rows_elementwise.ROWS, *rows_shape.ROWS, *rows_index.ROWS, *rows_layers.ROWS]
# Operators that only graphs written by old versions of TensorFlow hold, or only an optimiser writes.
OLD = {
    "Add", "AccumulateNV2", "BatchMatMul", "BatchMatMulV3", "BiasAddV1", "Concat", "Div", "FusedBatchNorm",
    "FusedBatchNormV2", "Gather", "InTopK", "Inv", "MatrixDiag", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagV2",
    "MaxPoolV2", "Mod", "ParallelDynamicStitch", "PreventGradient", "Snapshot", "TopK",
}  # fmt: skip


def _ids() -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for row in ROWS:
        seen[row.op] += 1
        names.append(f"{row.op}-{seen[row.op]}")
    return names


@pytest.mark.parametrize("row", ROWS, ids=_ids())
def test_operator(row: Row) -> None:
    concrete, _ = compare(row.function, row.inputs, row.also, row.double)
    kinds = {operation.type for operation in concrete.graph.get_operations()}
    assert row.op in kinds, f"traced {sorted(kinds)}"


def test_every_rule_has_a_row() -> None:
    tried = {row.op for row in ROWS} | OLD
    missing = [name for name in table.names() if name not in tried]
    assert not missing, f"rules without a row: {', '.join(missing)}"
