"""Rules of a user's own: before porter's, for one port, and gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import porter
from porter.converters.frontends.torch import table
from porter.converters.registry import rules_of
from porter.converters.targets import keras

SLOWER = """
from porter.converters.codegen.nodes import call
from porter.converters.frontends.torch.table import aten
from porter.converters.targets.keras import keras_op
from porter.converters.targets.types import Tensor

@aten("relu")
def relu(op, x):
    return op.Clip(x, op.constant(0.0, x), None)

@keras_op("Tanh")
def tanh(x: Tensor):
    return call("ops.multiply", call("ops.tanh", x), 1)
"""


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.relu(x))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SLOWER)
    return path


def source(rules: list[Path]) -> str:
    return porter.port(Net().eval(), (torch.randn(2, 3),), rules=rules).source


def test_own_rules_win_and_leave_with_their_port(file: Path) -> None:
    before = source([])
    assert "ops.relu" in before
    for _ in range(2):  # the same file may be given again
        own = source([file])
        assert "ops.multiply" in own and "ops.relu" not in own
    assert source([]) == before


def test_tables_are_as_before_also_after_an_error(file: Path) -> None:
    counts = len(table._rules["relu.default"]), len(keras.load().rules[("", "Tanh")])
    with pytest.raises(RuntimeError, match="stop"), rules_of([file]):
        assert len(table._rules["relu.default"]) == counts[0] + 1
        raise RuntimeError("stop")
    assert (len(table._rules["relu.default"]), len(keras.load().rules[("", "Tanh")])) == counts


def test_a_file_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise ValueError('no')")
    for path, message in [(broken, r"broken\.py: ValueError: no"), (tmp_path / "none.py", r"no file .*none\.py")]:
        with pytest.raises(porter.PorterError, match=message):
            source([path])
