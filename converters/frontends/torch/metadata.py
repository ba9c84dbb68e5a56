"""What an fx node knows about where it comes from: enclosing modules, statements, line of source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import torch

TORCH = str(Path(torch.__file__).parent)
_FRAME = re.compile(r'File "(.+)", line (\d+), in (.*)')
_GENERATED = "<eval_with_key>"  # the code of a graph that torch has made


class Frame(NamedTuple):
    """A statement that was being run, and the function that it is in."""

    file: str
    line: int
    code: str
    function: str


def scope(node: torch.fx.Node) -> list[list[Any]]:
    """[[path, call number, class], …] from the model inwards."""
    stack = node.meta.get("nn_module_stack") or {}
    scopes = []
    for key, (path, kind) in stack.items():
        if key.startswith("_empty"):
            return []
        number = key.rpartition("@")[2] if "@" in key else "0"
        kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        scopes.append([path, int(number) if number.isdigit() else 0, kind])
    return scopes


def module_of(node: torch.fx.Node) -> str:
    """The innermost enclosing module's path, in words for the model itself."""
    scopes = scope(node)
    return (scopes[-1][0] if scopes else "") or "the model itself"


def frames_of(trace: str) -> list[Frame]:
    """The statements of a stack trace, from the outermost to the innermost."""
    found: list[Frame] = []
    for line in map(str.strip, trace.splitlines()):
        match = _FRAME.match(line)
        if match:
            found.append(Frame(match[1], int(match[2]), "", match[3]))
        elif found and line.strip("^~ "):  # not a line that only marks a part of the one above
            found[-1] = found[-1]._replace(code=found[-1].code + line)
    return [frame for frame in found if not frame.file.startswith(_GENERATED)]


def frames(node: torch.fx.Node) -> list[list[Any]]:
    """[[file, line, code], …] of the statement, from the outermost forward to the innermost."""
    return [[frame.file, frame.line, frame.code] for frame in frames_of(node.meta.get("stack_trace") or "")]


def source_line(node: torch.fx.Node) -> str:
    """ "file:line" of the innermost frame of the model's own code."""
    found = frames(node)
    own = [frame for frame in found if not frame[0].startswith(TORCH)] or found
    return f"{own[-1][0]}:{own[-1][1]}" if own else "unknown line"
