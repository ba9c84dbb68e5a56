"""What a model is made of, and all that has no translation: a trace that goes on where a port would stop."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram

from porter.converters.frontends.torch.export import export
from porter.converters.frontends.torch.fxgraph import everywhere, operator_name
from porter.converters.frontends.torch.metadata import scope, source_line
from porter.converters.frontends.torch.modules import Origin, origin_of_module, origin_of_program
from porter.converters.frontends.torch.translate import Translator
from porter.converters.problems import WHOLE, Problem
from porter.errors import PorterError

# The domain of nodes that stand for operators without a translation.
UNTRANSLATED = "porter.untranslated"


@dataclass
class Survey:
    """A model's operators by module path, and what keeps it from ONNX.

    `graph` has a node of the domain `UNTRANSLATED` for each operator without a translation; it is None when the model
    cannot be traced at all.
    """

    operators: dict[str, Counter[str]]
    problems: list[Problem]
    graph: ir.Model | None = None


class _Surveyor(Translator):
    """Translates what it can."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.problems: list[Problem] = []

    def _refuse_missing(self) -> None:
        pass

    def _call(self, node: torch.fx.Node, stands: bool = True) -> Any:
        try:
            if self._has_rule(node):
                return super()._call(node, stands)
            reason = "there is no translation to ONNX"
        except PorterError as error:
            reason = str(error).partition("): ")[2] or str(error)
        self.problems.append(Problem("trace", operator_name(node.target), _path(node), source_line(node), reason))
        return self._stand_in(node)

    def _stand_in(self, node: torch.fx.Node) -> Any:
        """A node of no meaning with the inputs, dtypes and shapes of the operator."""
        self._stamp(node)
        known = [self.env[source] for source in node.all_input_nodes if source.op != "get_attr"]
        values = [value for value in known if isinstance(value, ir.Value)]
        meta = node.meta.get("val")
        fakes = meta if isinstance(meta, list | tuple) else [meta]
        made = self.op.Untranslated(*values, outputs=len(fakes), domain=UNTRANSLATED)
        results = list(made) if isinstance(made, tuple) else [made]
        return tuple(results) if isinstance(meta, list | tuple) else results[0]


def survey(model: torch.nn.Module | ExportedProgram, inputs: Any, dynamic: Any = "auto") -> Survey:
    """Look at the whole of a model; a program is taken as it was exported.

    Raises:
        InputError: the inputs do not fit the model.
        ExportError: torch cannot trace the model.
    """
    program = model if isinstance(model, ExportedProgram) else export(model, inputs, dynamic)
    origin = origin_of(model)
    operators: dict[str, Counter[str]] = defaultdict(Counter)
    for node in everywhere(program.graph):
        if node.op == "call_function" and isinstance(
            node.target, torch._ops.OpOverload | torch._ops.HigherOrderOperator
        ):
            operators[_path(node)][str(node.target)] += 1
    surveyor = _Surveyor(program, origin, dict(dynamic) if isinstance(dynamic, dict) else {}, {})
    try:
        graph = surveyor.run()
    except PorterError as error:
        whole = Problem("trace", origin.name, "", WHOLE, str(error))
        return Survey(dict(operators), [*surveyor.problems, whole], None)
    return Survey(dict(operators), surveyor.problems, graph)


def origin_of(model: torch.nn.Module | ExportedProgram) -> Origin:
    """What is known of the model beside its program."""
    return origin_of_program(model) if isinstance(model, ExportedProgram) else origin_of_module(model)


def _path(node: torch.fx.Node) -> str:
    scopes = scope(node)
    return scopes[-1][0] if scopes else ""
