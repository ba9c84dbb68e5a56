"""How rules get into their tables, porter's own and, for the length of one port, a user's."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from porter.errors import InputError

R = TypeVar("R")

# What a file of rules has registered so far: (the operator's list of rules, the rule).
_own: ContextVar[list[tuple[list[Any], Any]] | None] = ContextVar("own", default=None)


def register(rules: list[R], rule: R, function: Callable[..., Any]) -> None:
    """Put a rule into its operator's list: behind the others, or, from a user's file, before porter's own."""
    own = _own.get()
    if own is None or function.__module__.startswith("porter."):
        rules.append(rule)
        return
    rules.insert(sum(1 for kept, _ in own if kept is rules), rule)
    own.append((rules, rule))


@contextmanager
def rules_of(files: Sequence[str | Path]) -> Iterator[None]:
    """Within this block the rules that Python files register win over porter's; afterwards they are gone.

    Raises:
        InputError: a file does not exist or cannot be run.
    """
    own: list[tuple[list[Any], Any]] = []
    token = _own.set(own)
    try:
        for file in map(Path, files):
            if not file.is_file():
                raise InputError(f"--rules: there is no file {file}")
            try:
                runpy.run_path(str(file))
            except Exception as error:
                raise InputError(f"--rules {file}: {type(error).__name__}: {error}") from error
        yield
    finally:
        _own.reset(token)
        for rules, rule in own:
            rules[:] = [kept for kept in rules if kept is not rule]
