"""The generated code as it stands in tests/golden: equal to what is generated now, and fit to be kept."""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from porter.zoo import catalog
from tests.golden import regenerate

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).resolve().parents[1]
NAMES = list(regenerate.names())
PINS: dict[str, dict[str, Any]] = tomllib.loads((GOLDEN / "pins.toml").read_text("utf-8"))
TWINS = {entry.name for entry in catalog.twins("keras")}
# What makes, fills and feeds a model rather than being it: in a port, and in a twin.
PORT_PLUMBING = {"build", "create_variables", "symbolic_inputs", "FROZEN", "load_weights", "find", "initialize", "draw"}
TWIN_PLUMBING = {"make", "inputs", "DYNAMIC", "copy_weights"}
THIRD_PARTIES = {"keras", "tensorflow", "safetensors"}

every_golden = pytest.mark.parametrize("name", NAMES)


@cache
def text(name: str) -> str:
    return (GOLDEN / name / "model.py").read_text("utf-8")


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(text(name))


def pin(name: str, what: str, default: float) -> float:
    return PINS.get(name, {}).get(what, default)


def equals_pin(name: str, what: str, found: list[str]) -> None:
    allowed = pin(name, what, 0)
    listed = ", ".join(found) or "none"
    assert len(found) <= allowed, f"{name}: {len(found)} {what}, pinned at {allowed}: {listed}"
    assert len(found) == allowed, f"{name}: {len(found)} {what} are fewer than before; lower its pin to {len(found)}"


@every_golden
def test_it_is_what_porter_writes_now(name: str) -> None:
    for file, now in regenerate.golden(name).items():
        kept = (GOLDEN / name / file).read_text("utf-8")
        assert kept == now, f"{name}/{file} is out of date: run `make golden` and read the diff"


def test_there_is_a_folder_for_every_model_and_no_other() -> None:
    folders = {folder.name for folder in GOLDEN.iterdir() if folder.is_dir() and folder.name != "__pycache__"}
    assert folders == set(NAMES)
    assert set(PINS) <= set(NAMES), "pins.toml names a model that is not there"


@pytest.mark.parametrize(
    "command", [("check",), ("check", "--isolated", "--line-length", "120"), ("format", "--check")], ids=" ".join
)
def test_the_linter_and_the_formatter_are_silent(command: tuple[str, ...]) -> None:
    files = [str(GOLDEN / name / "model.py") for name in NAMES]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, *files], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@every_golden
def test_it_needs_keras_alone(name: str) -> None:
    imported = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    stray = imported - THIRD_PARTIES - set(sys.stdlib_module_names)
    assert not stray, f"{name}: imports {', '.join(sorted(stray))}"
    uses = any(isinstance(node, ast.Name) and node.id == "tf" for node in ast.walk(tree(name)))
    assert ("tensorflow" in imported) == uses, f"{name}: imports tensorflow and does not use it, or the reverse"


@every_golden
def test_it_names_its_arguments(name: str) -> None:
    """`**{…}` is how a program writes a call; the one place where a person does is get_config."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call):
            spread = [k for k in node.keywords if k.arg is None and isinstance(k.value, ast.Dict)]
            assert not spread, f"{name}/model.py:{node.lineno}: `**{{` in a call"
    configs = [n for n in ast.walk(tree(name)) if isinstance(n, ast.FunctionDef) and n.name == "get_config"]
    inside = {id(part) for function in configs for part in ast.walk(function)}
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Dict) and None in node.keys:
            assert id(node) in inside, f"{name}/model.py:{node.lineno}: `**` in a dictionary outside get_config"


@every_golden
def test_names_that_only_count(name: str) -> None:
    known = source_words(name)
    counted = sorted(word for word in _bound_names(tree(name)) if re.search(r"\d$", word) and word not in known)
    equals_pin(name, "counters", counted)


@every_golden
def test_classes_are_those_of_the_source(name: str) -> None:
    manifest = json.loads((GOLDEN / name / "port.json").read_text("utf-8"))
    equals_pin(name, "variants", [cls for cls in manifest["classes"] if cls not in source_classes(name)])
    written = [node.name for node in tree(name).body if isinstance(node, ast.ClassDef)]
    assert set(manifest["classes"]) <= set(written)


def test_resnet50_has_exactly_its_two_classes() -> None:
    for name in ("resnet50", f"resnet50{regenerate.FULL}"):
        assert {node.name for node in tree(name).body if isinstance(node, ast.ClassDef)} == {"Bottleneck", "ResNet"}


@every_golden
def test_transposes(name: str) -> None:
    """Those in the classes: a helper that rearranges pixels does so because that is its purpose.

    A channels-last CNN needs none.
    """
    found = [
        f"line {node.lineno}"
        for cls in tree(name).body
        if isinstance(cls, ast.ClassDef)
        for node in ast.walk(cls)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("transpose", "moveaxis", "Permute"))
    ]
    equals_pin(name, "transposes", found)


@pytest.mark.parametrize("name", [name for name in NAMES if name.removesuffix(regenerate.FULL) in TWINS])
def test_it_is_not_much_longer_than_code_by_hand(name: str) -> None:
    """Lines of code of the models alone, counted alike on both sides.

    Every line of a class, of a helper and of a table of sizes counts, decorators and what a port needs to be saved and
    exported among them. Blank lines, comments, docstrings and imports do not, nor does the plumbing: how either side
    makes the model, gets its weights, and says what its inputs are (the twins' is longer, and half of it is in
    zoo/keras/carry.py and seeding.py).
    """
    twin = ROOT / "zoo" / "keras" / f"{name.removesuffix(regenerate.FULL)}.py"
    by_hand = twin.read_text("utf-8")
    ratio = model_lines(text(name), PORT_PLUMBING) / model_lines(by_hand, TWIN_PLUMBING)
    allowed = pin(name, "length", 1.3)
    assert ratio <= allowed, f"{name}: {ratio:.2f} times the lines of zoo/keras/{twin.name}, {allowed} is the limit"


def test_resnet50_can_be_read_at_one_sitting() -> None:
    assert len(text(f"resnet50{regenerate.FULL}").splitlines()) <= 130


@pytest.mark.parametrize("name", ["lenet", "bert_tiny", "lstm_classifier"])
def test_it_runs_without_porter(name: str, tmp_path: Path) -> None:
    """On its own, in a process that cannot import porter, with as many variables as the manifest names."""
    manifest = json.loads((GOLDEN / name / "port.json").read_text("utf-8"))
    script = (
        "import runpy, sys; sys.modules['porter'] = None; "
        f"model = runpy.run_path({str(GOLDEN / name / 'model.py')!r})['build'](weights=False); "
        "print(len([v for v in model.variables if 'seed' not in v.path]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) == len(manifest["weight_map"])


def model_lines(source: str, plumbing: set[str]) -> int:
    """Lines of code at the top of a module, less its imports and the names of `plumbing`."""
    lines = {
        token.start[0] + more
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NO_CODE
        for more in range(token.end[0] - token.start[0] + 1)
    }
    module = ast.parse(source)
    for node in ast.walk(module):
        first = node.body[0] if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines -= _lines(first)
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom) or _defined(node) & plumbing:
            lines -= _lines(node)
    return len(lines)


_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def _lines(node: ast.stmt) -> set[int]:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return set(range(first, (node.end_lineno or first) + 1))


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement at the top of a module defines."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {getattr(node, "name", "")} | {target.id for target in targets if isinstance(target, ast.Name)}


def _bound_names(module: ast.Module) -> set[str]:
    """Locals, arguments and attributes of self."""
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


@cache
def _modules(name: str) -> list[Any]:
    return list(catalog.find(name.removesuffix(regenerate.FULL)).make(small=True).modules())


def source_classes(name: str) -> set[str]:
    return {type(module).__name__ for module in _modules(name)}


@cache
def source_words(name: str) -> set[str]:
    """Every identifier in the source of the model's own classes and of the framework's that it is made of."""
    files = {inspect.getsourcefile(type(module)) for module in _modules(name)}
    return {word for file in files if file for word in re.findall(r"\w+", Path(file).read_text("utf-8"))}
