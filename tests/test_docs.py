"""What README.md and docs/ show is run: every shell and Python block, document by document, in an empty folder.

The blocks of one document share that folder and nothing else. A comment on the line before a block changes what is
done with it:

    <!-- test: file NAME -->         written to that file, not run
    <!-- test: from FILE -->         an excerpt: it must stand in that file of the checkout, line for line
    <!-- test: exit N -->            ends with exit code N
    <!-- test: real -->              run by `make real`, where the packages of the extra `zoo` are
    <!-- test: skip REASON -->       not run
    <!-- test: xfail REASON -->      does not work yet; the test fails once it does

Blocks of other languages are not run. `make` would run this test again, so its targets are looked up in the Makefile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL, PYTHON = ("bash", "sh"), ("python",)
LIMIT = 300
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- test: (\w+) ?(.*?) -->\n\Z")
_TARGET = re.compile(r"^([\w-]+)(?=[\w -]*:(?!=))", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@dataclass(frozen=True)
class Block:
    """One fenced block; `mark` is what the comment before it says, "" without one."""

    line: int
    language: str
    text: str
    mark: str
    argument: str

    @property
    def runs(self) -> bool:
        return self.language in SHELL + PYTHON and self.mark not in ("file", "from", "skip", "real")


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text("utf-8")
    for match in _FENCE.finditer(text):
        mark = _MARK.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 1
        yield Block(line, match[1], match[2], mark[1] if mark else "", mark[2] if mark else "")


def environment(folder: Path) -> dict[str, str]:
    """The checkout's own interpreter first, and frameworks that are quiet and keep to one thread."""
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **quiet, "PATH": search, "PWD": str(folder)}


def keep_to_one_core() -> None:
    """In the child: frameworks that take every core are slowed down a hundredfold by tests that run beside them."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def outcome(block: Block, folder: Path) -> str | None:
    """What went wrong when the block was run, or None."""
    if block.language in PYTHON:
        command = [sys.executable, "-W", "ignore", "-c", block.text]
    else:
        lines = [line for line in block.text.splitlines() if not line.strip().startswith("make ")]
        command = ["bash", "-e", "-c", "\n".join(lines)]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
            preexec_fn=keep_to_one_core,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {LIMIT} seconds"
    wanted = int(block.argument) if block.mark == "exit" else 0
    if done.returncode == wanted:
        return None
    return f"exit code {done.returncode}, not {wanted}\n{done.stdout[-1500:]}{done.stderr[-1500:]}"


def problems(document: Path, folder: Path, *, real: bool = False) -> str:
    """What went wrong in running the blocks, "" when nothing did; `real`: those of that mark alone."""
    found = []
    for block in blocks(document):
        if block.mark == "file":
            (folder / block.argument).write_text(block.text, "utf-8")
        if not (block.mark == "real" if real else block.runs):
            continue
        problem = outcome(block, folder)
        if block.mark == "xfail":
            problem = None if problem else f"it works now: remove the mark ({block.argument})"
        if problem:
            found.append(f"{document.name}:{block.line}: {problem}\n{block.text}")
    return "\n".join(["", *found]) if found else ""


@pytest.mark.slow
@every_document
def test_blocks_run(document: Path, tmp_path: Path) -> None:
    found = problems(document, tmp_path)
    assert not found, found


@every_document
def test_excerpts_are_real(document: Path) -> None:
    for block in blocks(document):
        if block.mark == "from":
            found = (ROOT / block.argument).read_text("utf-8")
            assert block.text in found, f"{document.name}:{block.line} is no longer in {block.argument}"


@every_document
def test_make_targets_exist(document: Path) -> None:
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text("utf-8")))
    asked = set(re.findall(r"(?:^|`) *make ([a-z][\w-]*)", document.read_text("utf-8"), re.MULTILINE))
    assert asked <= targets, f"{document.name}: no target {', '.join(sorted(asked - targets))} in the Makefile"


@every_document
def test_links_lead_somewhere(document: Path) -> None:
    for link in _LINK.findall(document.read_text("utf-8")):
        if "://" not in link:
            assert (document.parent / link).exists(), f"{document.name}: nothing at {link}"


@every_document
def test_marks_are_known(document: Path) -> None:
    text = document.read_text("utf-8")
    marked = [block.mark for block in blocks(document) if block.mark]
    assert len(marked) == text.count("<!-- test:"), f"{document.name}: a mark that stands before no block"
    assert set(marked) <= {"file", "from", "exit", "real", "skip", "xfail"}
