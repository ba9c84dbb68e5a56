"""Writes the golden ports: `python -m tests.golden.regenerate [NAME…]`, from the root of the checkout.

A golden folder holds the `model.py` and the `port.json` of one model of the zoo, less what differs from one machine or
release to the next. A change of the generated code shows as a diff here, to be read as a user would read it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import porter
from porter.zoo import catalog

HERE = Path(__file__).parent
FULL = "_full"
"""Ends the name of a golden folder whose model has its full width."""


def names() -> Iterator[str]:
    """Every golden folder that there must be: all torch models at small width, and one to read at full width."""
    yield from (entry.name for entry in catalog.originals("torch"))
    yield f"resnet50{FULL}"


def golden(name: str) -> dict[str, str]:
    """{file name: text} of one golden folder, made anew."""
    entry = name.removesuffix(FULL)
    reference = f"zoo:{entry}{'' if name.endswith(FULL) else '@small'}"
    with tempfile.TemporaryDirectory() as folder:
        port = porter.port(reference, to="keras", out=Path(folder) / entry)
        source = port.source.replace(f" by porter {porter.__version__}.", " by porter.")
        return {"model.py": source, "port.json": json.dumps(_settled(port.manifest), indent=1) + "\n"}


def _settled(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest without versions, hashes and what depends on where things are installed."""
    kept = {key: value for key, value in manifest.items() if key not in ("porter", "hashes")}
    kept["source"] = {key: value for key, value in kept["source"].items() if key != "versions"}
    kept["modules"] = [_placed(module) for module in kept["modules"]]
    return kept


def _placed(module: dict[str, Any]) -> dict[str, Any]:
    """A module whose file is named within the zoo; a framework's own files and lines belong to its version."""
    _, found, place = str(module["file"]).replace("\\", "/").rpartition("/zoo/torch/")
    return {**module, "file": f"zoo/torch/{place}", "line": module["line"]} if found else _without_place(module)


def _without_place(module: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in module.items() if key not in ("file", "line")}


def main(wanted: list[str]) -> None:
    """Write the golden folders named in `wanted`, or all of them.

    Raises SystemExit, after the others are written, when a model could not be ported.
    """
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        raise SystemExit(f"no golden folder is called {', '.join(unknown)}: {', '.join(names())}")
    failed = []
    for name in wanted or names():
        try:
            files = golden(name)
        except Exception as error:
            # One model that cannot be ported today must not keep the others from being written.
            failed.append(f"{name}: {type(error).__name__}: {error}")
            continue
        (HERE / name).mkdir(exist_ok=True)
        for file, text in files.items():
            (HERE / name / file).write_text(text, "utf-8")
        print(f"{name}: {files['model.py'].count(chr(10))} lines", flush=True)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
