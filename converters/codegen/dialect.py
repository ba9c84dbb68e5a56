"""What the emitter must know of a target language; each target has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Layer, Weight
from porter.converters.codegen.normal import Construct

if TYPE_CHECKING:
    from porter.converters.codegen.module import Input, Module


class Steps(NamedTuple):
    """The layers of a chain: one by one, and as a list."""

    items: list[str]
    whole: str


class Dialect(Protocol):
    """The target's names and habits."""

    name: str
    collapsible: frozenset[str]  # arguments whose equal tuples are written as one number
    sequential: str  # the class of a chain of layers
    identity: str  # the class of a layer that does nothing
    appends: str  # its method that adds one layer
    added: frozenset[str]  # layers that a chain needs beside the source's own, and that have no number in it
    chains_freeze: bool  # whether a chain that is the whole model keeps what is frozen when it is saved
    chains_loops: bool  # whether a class that is nothing but a loop over its layers becomes a chain of them
    calls_without_inputs: bool  # whether a module may be called without any tensor
    stores_reshaped: bool  # whether a lone variable has the shape in which it is read rather than the source's
    statistics: frozenset[str]  # variables of layers that no gradient reaches in any case
    functions_as_layers: tuple[bool, ...]  # whether to write the author's modules without weights as layers, in order

    @property
    def reserved(self) -> frozenset[str]:
        """Names that an attribute or local must not take."""

    @property
    def reserved_locals(self) -> frozenset[str]:
        """Names that mean something in the module."""

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

    def as_function(self, layer: Layer, value: Expr, held: Mapping[str, Expr]) -> Expr | None:
        """A layer as a function of a value and of parameters that a module holds; None when there is none."""

    def size(self, value: str, axis: int) -> str:
        """One size of a value."""

    def chain_item(self, number: str) -> str:
        """What follows a chain of layers to name one of them."""

    def chain(self, steps: Steps) -> str:
        """A chain of layers as the target's own Sequential."""

    def chain_head(self, inputs: Sequence[Input]) -> list[Expr] | None:
        """What stands first in a chain of layers that is the whole model; None where that has a class all the same."""

    def listed(self, items: str) -> str:
        """A list of layers as an object may hold it."""

    def assigned(self, target: str, definition: Expr, text: str) -> str:
        """The statement that makes an attribute."""

    def variable(self, name: str, weight: Weight) -> Construct:
        """The definition of a parameter, buffer or constant that no layer holds."""

    def in_source(self, weight: Weight) -> bool:
        """Whether the definition of a variable holds its value, so that no file needs to."""

    def array(self, value: Any, dtype: ir.DataType) -> Expr | None:
        """A small constant tensor; None when an object must hold it."""

    def structural(self, kind: str, operand: Expr, **facts: Any) -> Expr:
        """Transpose, reshape, concat or flip of a parameter at run time, or the parameter as a plain tensor."""

    def simplified(self, expr: Expr) -> Expr | None:
        """A call as this target writes it now that its arguments are known, shorter or otherwise; None to keep it."""

    def class_header(self, template: Any, *, root: bool) -> list[str]:
        """Decorators, the class line, nothing else."""

    def class_footer(self, template: Any) -> list[str]:
        """Further methods of the class."""

    def constructor_header(self, arguments: list[str], steps: Steps | None) -> list[str]:
        """The `def __init__` line and the call of the base class; `steps` are the layers of a chain."""

    def freezing(self, paths: Sequence[str]) -> list[str]:
        """The end of the root's constructor, which freezes what lies at attribute paths."""

    def method_header(self, arguments: list[str], *, training: bool, root: bool) -> list[str]:
        """The `def call`/`def forward` line and what must stand first in it."""

    @property
    def padding_forms(self) -> tuple[Any, ...]:
        """Ways to write the padding of a body, the shortest first; each a function from a body to a body."""

    def module_text(self, module: Module) -> str:
        """The whole module, not yet formatted."""
