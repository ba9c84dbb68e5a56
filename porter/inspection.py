"""`porter.inspect_model`: what a model is made of, and all that porter has no rule for."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from porter.converters.problems import WHOLE, Problem
from porter.errors import ExportError, InputError


@dataclass(frozen=True)
class Module:
    """One module: `parameters` counts its own, shared ones at their first owner; `onnx` what it becomes."""

    path: str
    cls: str
    parameters: int
    buffers: int
    operators: dict[str, int] = field(default_factory=dict)
    onnx: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Inspection:
    """A model's modules in order, and its problems; without any, the model can be written for the target."""

    name: str
    target: str
    modules: list[Module]
    parameters: int
    trainable: int
    problems: list[Problem]

    @property
    def operators(self) -> dict[str, int]:
        """The source's operators in the whole model, the most frequent first."""
        total: Counter[str] = Counter()
        for module in self.modules:
            total.update(module.operators)
        return dict(total.most_common())

    def lines(self) -> list[str]:
        """For people: the tree, the operators, and what is missing."""
        said = [f"{self.name}: {self.parameters:,} parameters, {self.trainable:,} of them trained", ""]
        for module in self.modules:
            depth = module.path.count(".") + bool(module.path)
            label = module.path.rpartition(".")[2] or self.name
            counted = f"  {module.parameters:,}" if module.parameters else ""
            became = ", ".join(f"{op} {count}" if count > 1 else op for op, count in module.onnx.items())
            said.append(
                f"{'  ' * depth}{label} ({module.cls.rpartition('.')[2]}){counted}{f'  {became}' if became else ''}"
            )
        said += ["", *(f"{count:6}  {op}" for op, count in self.operators.items()), ""]
        if not self.problems:
            return [*said, f"every operator can be written for {self.target}"]
        if len(self.problems) == 1 and self.problems[0].line == WHOLE:
            return [*said, self.problems[0].reason]
        grouped = Counter((p.stage, p.operator, p.reason) for p in self.problems)
        places: dict[Any, list[str]] = defaultdict(list)
        for p in self.problems:
            places[p.stage, p.operator, p.reason].append(f"{p.module or 'the model itself'} ({p.line})")
        said.append(f"{len(self.problems)} node(s) cannot be ported:")
        for key, count in grouped.items():
            stage, operator, reason = key
            where = "no translation from the source" if stage == "trace" else f"no rule for {stage}"
            said.append(f"  {operator} ({count}x, {where}): {reason}")
            said += [f"    {place}" for place in dict.fromkeys(places[key])]
        return said

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "target": self.target,
            "parameters": self.parameters,
            "trainable": self.trainable,
            "modules": [{("class" if key == "cls" else key): v for key, v in vars(m).items()} for m in self.modules],
            "operators": self.operators,
            "problems": [vars(problem) for problem in self.problems],
            "portable": not self.problems,
        }


def inspect_model(model: Any, inputs: Any = None, to: str = "keras", *, rules: Sequence[str | Path] = ()) -> Inspection:
    """Look at a model that may or may not be portable.

    Args:
        model: an `nn.Module` or an `ExportedProgram`, which brings its inputs.
        inputs: example inputs, as `porter.port` takes them.
        to: the target whose rules are looked at.
        rules: Python files with rules of your own.

    Raises:
        InputError: there are no inputs, they do not fit, or it is no PyTorch model.
    """
    import torch

    from porter.converters.frontends.torch.survey import UNTRANSLATED, Survey, origin_of, survey
    from porter.converters.graph.nesting import everywhere
    from porter.converters.opset import SCOPE
    from porter.converters.pipeline import unsupported
    from porter.converters.registry import rules_of

    if not isinstance(model, torch.nn.Module | torch.export.ExportedProgram):
        raise InputError(f"this version inspects PyTorch models, not a {type(model).__name__}")
    if inputs is None and isinstance(model, torch.nn.Module):
        raise InputError("no example inputs: give a tuple of positional arguments or a dict (--input, --inputs)")
    origin = origin_of(model)
    with rules_of(rules):
        try:
            found = survey(model, inputs)
        except ExportError as error:
            found = Survey({}, [Problem("trace", origin.name, "", WHOLE, str(error))])
        problems, onnx = list(found.problems), defaultdict[str, Counter[str]](Counter)
        if found.graph is not None:
            problems += [p for p in unsupported(found.graph, to) if p.operator != "Untranslated"]
    if found.graph is not None:
        for node in everywhere(found.graph.graph):
            if node.domain != UNTRANSLATED:
                scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
                onnx[scope[-1][0] if scope else ""][node.op_type] += 1
    parameters = {name: p for name, p in model.named_parameters() if name not in origin.ties}
    own, buffers = _by_owner(parameters), _by_owner(dict(model.named_buffers()))
    modules = [
        Module(path, facts["class"], own[path], buffers[path], dict(found.operators.get(path, {})), dict(onnx[path]))
        for path, facts in origin.modules.items()
    ]
    trained = sum(p.numel() for p in parameters.values() if p.requires_grad)
    return Inspection(origin.name, to, modules, own.total(), trained, problems)


def _by_owner(tensors: dict[str, Any]) -> Counter[str]:
    """How many numbers each module holds itself."""
    counted: Counter[str] = Counter()
    for name, tensor in tensors.items():
        counted[name.rpartition(".")[0]] += tensor.numel()
    return counted
