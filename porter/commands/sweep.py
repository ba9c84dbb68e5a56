"""The work of one verb over many zoo models: a model that fails is reported and the next one is taken."""

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from porter import references
from porter.commands.console import EXIT_DONE, EXIT_NOT_EQUAL, EXIT_UNJUDGED, Console, answering
from porter.commands.making import make
from porter.errors import PorterError


@dataclass(frozen=True)
class Port:
    """What is done with each model: port it into `out`, verify it at `level`, time it when `timed`."""

    to: str
    out: Path
    level: str | None
    force: bool = False
    timed: bool = False

    def __call__(self, reference: str, console: Console) -> tuple[dict[str, Any], bool]:
        """(the answer for one model, whether it passed)."""
        loaded = references.load(reference, self.to)
        made = make(loaded, self.to, self.out / loaded.name, self.level, console.progress, force=self.force)
        if not self.timed:
            return made.answer, made.passed
        import porter

        bench = porter.benchmark(loaded.model, made.port, loaded.inputs)
        console.lines(bench.lines())
        return {**made.answer, "bench": bench.to_json()}, made.passed


def run(names: list[str], work: Port, *, small: bool, as_json: bool, verbose: bool) -> None:
    """Do `work` on the named models, or on all that can be ported there; one line each as it ends.

    Exits 1 when a pair differs, else with the least exit code of those that failed.
    """
    with answering(as_json=as_json, verbose=verbose) as console:
        chosen = _references(names, work.to, small)
        rows = []
        for reference in chosen:
            row, code = _one(reference, work, console)
            rows.append({"reference": reference, "exit_code": code, **row})
            word = "ok      " if code == EXIT_DONE else "FAILED  "
            console.lines([f"{word}{reference}  {row.get('error', row.get('source', ''))}".rstrip()])
        codes = [row["exit_code"] for row in rows]
        console.lines([f"{codes.count(EXIT_DONE)} of {len(rows)} passed"])
        console.json(rows)
    worst = min((code for code in codes if code), default=EXIT_DONE)
    if worst:
        raise typer.Exit(worst)


def _references(names: list[str], to: str, small: bool) -> list[str]:
    from porter.zoo import catalog

    chosen = names or [f"{entry.framework}/{entry.name}" for entry in catalog.sources(to)]
    return [f"zoo:{name}{'@small' if small and '@' not in name else ''}" for name in chosen]


def _one(reference: str, work: Port, console: Console) -> tuple[dict[str, Any], int]:
    try:
        row, passed = work(reference, console)
    except PorterError as error:
        return {"error": str(error)}, error.exit_code
    except Exception as error:
        # A bug in one model must not hide what the rest of a long sweep finds.
        console.progress(traceback.format_exc())
        return {"error": f"{type(error).__name__}: {error} (-v shows the traceback)"}, EXIT_UNJUDGED
    return row, EXIT_DONE if passed else EXIT_NOT_EQUAL
