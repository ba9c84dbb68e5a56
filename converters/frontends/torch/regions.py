"""What the author wrote in the functions that `torch.cond`, `while_loop` and their like are given.

torch traces these functions apart and forgets their lines and modules on the way. While a model is exported its tracer
is told to keep them; afterwards each node inside knows its modules and lines as every other node does, and each graph
inside the name and the parameters of its function.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._higher_order_ops import utils
from torch.export import ExportedProgram

from porter.converters.frontends.torch.control import REGIONS, body_of, is_control
from porter.converters.frontends.torch.metadata import TORCH, frames_of
from porter.converters.opset import FUNCTION

_INTERPRETED = "_maybe_run_with_interpreter"


@contextmanager
def regions_kept_readable() -> Iterator[None]:
    """Graphs inside an operator are traced with the lines and modules of their nodes; undone on leaving."""
    before = getattr(utils, _INTERPRETED, None)
    if before is None:  # a version of torch that does it in another way: the names are lost, nothing else
        yield
        return

    def interpreted(function: Any) -> Callable[..., Any]:
        if not isinstance(function, torch.fx.GraphModule):
            return before(function)

        def run(*args: Any) -> Any:
            with torch.fx.traceback.preserve_node_meta():
                return torch.fx.Interpreter(function).run(*args)

        return run

    setattr(utils, _INTERPRETED, interpreted)
    try:
        yield
    finally:
        setattr(utils, _INTERPRETED, before)


def describe_regions(program: ExportedProgram, model: torch.nn.Module) -> set[str]:
    """Write modules, lines and names of functions on the graphs inside a program that was exported so.

    Returns:
        The paths of the modules that are called in such a graph.
    """
    paths = {str(id(module)): path for path, module in model.named_modules()}
    numbers = Counter[str]()
    for node in program.graph.nodes:
        for key, (path, _) in (node.meta.get("nn_module_stack") or {}).items():
            numbers[path] = max(numbers[path], _number(key))
    called: set[str] = set()
    for node in _traced_apart(program.graph):
        calls: dict[tuple[str, int], int] = {}
        _describe(node, paths, numbers, calls)
        called |= {path for path, _ in calls}
    return called


def _traced_apart(graph: torch.fx.Graph) -> Iterator[torch.fx.Node]:
    """The operators whose functions torch traced apart; in a `no_grad` region it did not, and some may lie in it."""
    for node in graph.nodes:
        if is_control(node) and node.target.name() in REGIONS:
            yield from (inner for body in body_of(node) for inner in _traced_apart(body.graph))
        elif is_control(node):
            yield node


def _number(key: str) -> int:
    number = key.rpartition("@")[2] if "@" in key else "0"
    return int(number) if number.isdigit() else 0


def _describe(
    node: torch.fx.Node, paths: dict[str, str], numbers: Counter[str], calls: dict[tuple[str, int], int]
) -> None:
    """`calls` gives the calls of modules that were traced together their numbers in the whole program."""
    outer = dict(node.meta.get("nn_module_stack") or {})
    for body in body_of(node):
        for inner in body.graph.nodes:
            if inner.op != "call_function":
                continue
            stack = dict(outer)
            for key, (_, kind) in (inner.meta.get("nn_module_stack") or {}).items():
                path = paths.get(key.partition("@")[0])
                if path is not None:
                    call = (path, _number(key))
                    if call not in calls:
                        numbers[path] += 1
                        calls[call] = numbers[path]
                    stack[f"{path}@{calls[call]}"] = (path, kind)
            inner.meta["nn_module_stack"] = stack
            own = _own_frames(inner.meta.get("stack_trace") or "")
            body.meta.setdefault(FUNCTION, _function(own))
            inner.meta["stack_trace"] = f"{node.meta.get('stack_trace') or ''}\n{own}"
            if is_control(inner):
                _describe(inner, paths, numbers, calls)


def _own_frames(trace: str) -> str:
    """A stack trace without torch's own frames that it begins with."""
    frames = re.split(r"^(?=\s*File )", trace, flags=re.MULTILINE)
    own = itertools.dropwhile(lambda frame: not frame.strip() or f'"{TORCH}' in frame.partition("\n")[0], frames)
    return "".join(own)


def _function(trace: str) -> dict[str, Any]:
    """The name and parameters of the function that the first frame outside torch is in."""
    place = next((frame for frame in frames_of(trace) if not frame.file.startswith(TORCH)), None)
    if place is None:
        return {}
    name = place.function if place.function.isidentifier() and place.function != "forward" else ""
    return {"name": name, "parameters": _parameters(place.file, place.line, place.function)}


def _parameters(file: str, line: int, name: str) -> list[str]:
    """The parameters of the function of that name around a line; none where more than one stands there."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    kind = ast.Lambda if name == "<lambda>" else ast.FunctionDef
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, kind)
        and node.lineno <= line <= (node.end_lineno or 0)
        and getattr(node, "name", name) == name
    ]
    if not around or (kind is ast.Lambda and len(around) > 1):
        return []
    inmost = max(around, key=lambda node: node.lineno)
    return [argument.arg for argument in inmost.args.args if argument.arg != "self"]
