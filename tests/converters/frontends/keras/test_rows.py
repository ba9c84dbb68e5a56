"""Every layer and operation of the tables, each in several configurations, compared with Keras in float64."""

from __future__ import annotations

import keras
import pytest

from tests.converters.frontends.keras import rows_conv, rows_layers, rows_sequence
from tests.converters.frontends.keras.cases import Row
from tests.converters.frontends.keras.comparing import compare_row

TABLES = [rows_conv, rows_layers, rows_sequence]
CASES = [
    pytest.param(row, id=f"{name}-{position}")
    for table in TABLES
    for name, rows in table.ROWS.items()
    for position, row in enumerate(rows)
]


@pytest.mark.parametrize("row", CASES)
def test_equal_to_keras(row: Row) -> None:
    keras.backend.clear_session()
    compare_row(row)
