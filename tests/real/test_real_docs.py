"""docs/real-weights.md: its blocks run, and its table says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.real.models import MODELS, ported
from tests.test_docs import ROOT, problems

pytestmark = [pytest.mark.real]
DOCUMENT = ROOT / "docs" / "real-weights.md"


def test_blocks_run(tmp_path: Path) -> None:
    found = problems(DOCUMENT, tmp_path, real=True)
    assert not found, found


@pytest.mark.parametrize("name", MODELS)
def test_the_table_says_what_is_so(name: str) -> None:
    """Classes, parameters and lines of each model; that it is equal says the test of its verification."""
    model, _, port = ported(name)
    (row,) = [line for line in DOCUMENT.read_text("utf-8").splitlines() if f"`{name}`" in line and line.startswith("|")]
    classes = len(re.findall(r"^@keras.saving.register_keras_serializable\(\"", port.source, re.MULTILINE))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    lines = port.source.count("\n")
    assert f"| {classes} | {parameters:,} | {lines} | equal |" in row, (classes, parameters, lines)
