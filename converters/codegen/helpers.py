"""Functions and classes that a target lacks: written once as plain code, copied into the module that needs them."""

from __future__ import annotations

import ast
from functools import cache
from importlib.resources import files

from porter.converters.codegen.nodes import Call, Expr, walk
from porter.converters.codegen.normal import Construct
from porter.converters.codegen.unify import Template


@cache
def library(package: str) -> dict[str, str]:
    """{name: source text} of every top-level function and class of a helpers package."""
    found: dict[str, str] = {}
    for file in sorted(files(package).iterdir(), key=lambda item: item.name):
        if not file.name.endswith(".py") or file.name == "__init__.py":
            continue
        text = file.read_text()
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


def needed(package: str, templates: list[Template]) -> list[str]:
    """The sources of all helpers that the classes use, those that they use first."""
    texts = library(package)
    names = {name for template in templates for expr in _expressions(template) for name in _mentioned(expr)}
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        if name in ordered:
            return
        used = {node.id for node in ast.walk(ast.parse(texts[name])) if isinstance(node, ast.Name)}
        for other in sorted(used & set(texts) - {name}):
            add(other)
        ordered[name] = None

    for name in sorted(names & set(texts)):
        add(name)
    return [texts[name] for name in ordered]


def _expressions(template: Template) -> list[Expr]:
    return [*(line.expr for line in template.body.lines), *template.body.definitions.values()]


def _mentioned(expr: Expr) -> set[str]:
    found = set()
    for part in walk(expr):
        if isinstance(part, Call):
            found.add(part.func)
        elif isinstance(part, Construct):
            found.add(part.cls)
    return found
