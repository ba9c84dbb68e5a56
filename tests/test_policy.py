"""What holds for the whole tree: what may load what, how large a piece may be, and what must be there."""

import ast
import inspect
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import porter.errors

ROOT = Path(__file__).resolve().parents[1]
# Where each import package lies, as pyproject.toml maps them.
HOMES = {"porter.converters": ROOT / "converters", "porter.zoo": ROOT / "zoo", "porter": ROOT / "porter"}
FRAMEWORKS = ("torch", "tensorflow", "keras")

FILE_LINES, FUNCTION_LINES, VERB_LINES = 400, 60, 80

# Who may import what beyond the standard library and itself: (third parties, parts of porter). None: anything.
GRAPH_LIBRARIES = {"numpy", "onnx", "onnx_ir", "onnxscript", "ml_dtypes"}
BELOW_FRONT_ENDS = ("porter.errors", "porter.converters")
DIRECTIONS: dict[str, tuple[set[str] | None, tuple[str, ...]]] = {
    "porter.zoo": ({"numpy", *FRAMEWORKS}, ("porter.zoo",)),
    "porter.converters.graph": (GRAPH_LIBRARIES, BELOW_FRONT_ENDS),
    "porter.converters.codegen": (GRAPH_LIBRARIES, BELOW_FRONT_ENDS),
    "porter.converters.targets": (GRAPH_LIBRARIES, BELOW_FRONT_ENDS),
    "porter.converters.frontends": (None, BELOW_FRONT_ENDS),
}
SEALED = ("porter.converters.graph", "porter.converters.codegen", "porter.converters.targets")


def module_name(file: Path) -> str:
    for package, home in HOMES.items():
        if file.is_relative_to(home):
            parts = file.relative_to(home).with_suffix("").parts
            return ".".join([package, *(part for part in parts if part != "__init__")])
    raise AssertionError(f"{file} is in no package")


SOURCES = sorted(file for home in HOMES.values() for file in home.rglob("*.py") if "__pycache__" not in file.parts)
TREES = {file: ast.parse(file.read_text("utf-8")) for file in SOURCES}


def place(file: Path, line: int) -> str:
    return f"{file.relative_to(ROOT)}:{line}"


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """(module, line) of every import, those inside functions too."""
    for node in ast.walk(TREES[file]):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place(file, node.lineno)}: a relative import; write it out"
            yield node.module or "", node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def none(offences: list[str]) -> None:
    """Fail with every offence on a line of its own, where assert would cut the list short."""
    assert not offences, "\n" + "\n".join(offences)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def loaded_by(*arguments: str) -> list[str]:
    """The frameworks in sys.modules when `python ARGUMENTS` ends."""
    done = subprocess.run([sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    modules = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    return sorted(modules & set(FRAMEWORKS))


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "import porter"),
        ("-c", "import porter; dir(porter)"),
        ("-m", "porter", "--help"),
        ("-m", "porter", "port", "--help"),
        ("-m", "porter", "zoo", "list"),
        ("-c", "import porter.cli, porter.references, porter.doctor"),
        ("-c", "import porter.converters.graph, porter.converters.codegen, porter.converters.targets.keras"),
    ],
    ids=" ".join,
)
def test_no_framework_is_loaded(arguments: tuple[str, ...]) -> None:
    assert loaded_by(*arguments) == [], f"python {' '.join(arguments)} loads a framework; import it where it is used"


def test_every_exception_is_a_porter_error() -> None:
    raised = [found for _, found in inspect.getmembers(porter.errors, inspect.isclass) if issubclass(found, Exception)]
    assert len(raised) > 1
    stray = [found.__name__ for found in raised if not issubclass(found, porter.errors.PorterError)]
    none(stray)
    documented = porter.errors.__doc__ or ""
    none([f"porter/errors.py: its tree lacks {found.__name__}" for found in raised if found.__name__ not in documented])


def test_exceptions_are_defined_in_one_place() -> None:
    """A public exception anywhere else descends from PorterError by name."""
    known = {name for name, found in vars(porter.errors).items() if inspect.isclass(found)}
    stray = [
        place(file, node.lineno)
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Error", "Error_")) and not node.name.startswith("_")
        if not any(ast.unparse(base).rpartition(".")[2] in known for base in node.bases) and node.name != "PorterError"
    ]
    none(stray)


def test_files_are_small() -> None:
    lengths = {file: len(file.read_text("utf-8").splitlines()) for file in SOURCES}
    none([f"{place(file, n)}: {n} lines" for file, n in lengths.items() if n > FILE_LINES])


def test_verbs_are_small() -> None:
    verbs = {file: len(file.read_text("utf-8").splitlines()) for file in SOURCES if file.parent.name == "commands"}
    # console.py is what every verb writes with, not a verb.
    none([f"{place(file, n)}: {n} lines" for file, n in verbs.items() if n > VERB_LINES and file.stem != "console"])


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    first = node.body[0]
    documented = ast.get_docstring(node) is not None and first.end_lineno is not None
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1 - (first.end_lineno - first.lineno + 1 if documented else 0)


def test_functions_are_small() -> None:
    long = [
        f"{place(file, node.lineno)}: {node.name} has {code_lines(node)} lines"
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if code_lines(node) > FUNCTION_LINES
    ]
    none(long)


@pytest.mark.parametrize("package", DIRECTIONS)
def test_imports_run_one_way(package: str) -> None:
    libraries, parts = DIRECTIONS[package]
    wrong = []
    for file in SOURCES:
        # helpers is code of the target that is copied into ports, and freeze reads the target's signatures by hand.
        written_for_the_target = file.parent.name == "helpers" or file.stem == "freeze"
        if not within(module_name(file), package) or written_for_the_target:
            continue
        for module, line in imports(file):
            top = module.split(".")[0]
            if top == "porter":
                allowed = any(within(module, part) or within(part, module) for part in parts)
                sealed_off = package in SEALED and within(module, "porter.converters.frontends")
                if not allowed or sealed_off:
                    wrong.append(f"{place(file, line)}: {package} may not import {module}")
            elif libraries is not None and top not in libraries and top not in sys.stdlib_module_names:
                wrong.append(f"{place(file, line)}: {package} may not import {module}")
    none(wrong)


def test_folders_are_imported_by_their_installed_names() -> None:
    wrong = [
        f"{place(file, line)}: write porter.{module}"
        for file in SOURCES
        for module, line in imports(file)
        if module.split(".")[0] in ("converters", "zoo")
    ]
    none(wrong)


def test_no_module_hides_a_public_function() -> None:
    for name in ("port", "verify", "benchmark", "inspect_model"):
        assert not (ROOT / "porter" / f"{name}.py").exists(), f"porter.{name} is a function"


def test_every_package_is_listed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    packages = sorted({module_name(file) for file in SOURCES if file.name == "__init__.py"})
    none([f"pyproject.toml: add {name} to packages" for name in packages if name not in listed])
    none([f"pyproject.toml: {name} is listed and has no __init__.py" for name in listed if name not in packages])
    bare = sorted(
        {str(file.parent.relative_to(ROOT)) for file in SOURCES if not (file.parent / "__init__.py").exists()}
    )
    none([f"{folder}: modules without __init__.py" for folder in bare])


def test_the_changelog_has_a_place_for_the_next_change() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "## [Unreleased]" in text, "CHANGELOG.md: no Unreleased section"
