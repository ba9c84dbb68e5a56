"""What the emitter must know of a target language; each target has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr
from porter.converters.codegen.normal import Construct


class Dialect(Protocol):
    """The target's names and habits."""

    name: str
    reserved: frozenset[str]  # names that an attribute or local must not take
    collapsible: frozenset[str]  # arguments whose equal tuples are written as one number
    shape: str  # the function that gives a value's sizes
    method: str  # of a module that computes: "call" or "forward"

    def qualified(self, cls: str) -> str:
        """A layer class as it is written: `layers.Conv2D`."""

    def positional(self, func: str) -> int:
        """How many leading keyword arguments are written by position."""

    def order(self, func: str) -> list[str]:
        """The parameters of a layer's constructor in its own order; empty where it is not known."""

    def defaults(self, func: str) -> Mapping[str, Any]:
        """The defaults of a layer's constructor or a function."""

    def as_layer(self, expr: Expr, value: Expr) -> Construct | None:
        """A function of one value as a layer, for a Sequential; None when there is no such layer."""

    def variable(self, name: str, shape: Sequence[int], dtype: ir.DataType, *, trainable: bool) -> Construct:
        """The definition of a parameter that no layer holds."""

    def array(self, value: Any, dtype: ir.DataType) -> Expr:
        """A small constant tensor."""

    def structural(self, kind: str, operand: Expr, **facts: Any) -> Expr:
        """Transpose, reshape, concat or flip of a parameter at run time, or the parameter as a plain tensor."""

    def simplified(self, expr: Expr) -> Expr | None:
        """A call whose arguments make it shorter than its rule could know; None to keep it."""

    def class_header(self, template: Any, *, root: bool) -> list[str]:
        """Decorators, the class line, nothing else."""

    def class_footer(self, template: Any) -> list[str]:
        """Further methods of the class."""

    def constructor_header(self, arguments: list[str], steps: str) -> list[str]:
        """The `def __init__` line and the call of the base class; `steps` is the list of a chain's layers, or empty."""

    def method_header(self, arguments: list[str], *, training: bool, root: bool) -> list[str]:
        """The `def call`/`def forward` line and what must stand first in it."""

    @property
    def padding_forms(self) -> tuple[Any, ...]:
        """Ways to write the padding of a body, the shortest first; each a function from a body to a body."""

    reserved_locals: frozenset[str]
