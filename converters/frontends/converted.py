"""What every front end gives: a structured model and what a port keeps of its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass
class Converted:
    """A structured model and what a port keeps of its source.

    `state` holds the source's own tensors by all their names; `tied` maps the further names of one tensor to its first.
    """

    model: ir.Model
    name: str
    arguments: list[str]
    modules: dict[str, dict[str, Any]]
    state: Mapping[str, Any]
    tied: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    framework: str = "torch"
