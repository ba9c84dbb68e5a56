"""What a verb says and how it ends: lines for people, one JSON value with --json, and the exit code.

Standard output carries the answer alone: with --json everything that frameworks and user code print goes to standard
error, so that the answer can be piped.
"""

import contextlib
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO

import typer

from porter.commands.quiet import silence_first_import
from porter.errors import PorterError

EXIT_DONE, EXIT_NOT_EQUAL, EXIT_INPUT, EXIT_UNJUDGED = 0, 1, 2, 3
# What a shell reports for a process that ended by SIGINT or SIGPIPE.
_INTERRUPTED, _NOBODY_READS = 130, 141


@dataclass(frozen=True)
class Console:
    """Where one verb writes."""

    out: TextIO
    as_json: bool
    verbose: bool

    def lines(self, lines: Iterable[str]) -> None:
        """Text for people; silent with --json."""
        if not self.as_json:
            for line in lines:
                print(line, file=self.out)

    def json(self, value: Any) -> None:
        """The answer of the verb; silent without --json."""
        if self.as_json:
            print(json.dumps(value, indent=2, default=str), file=self.out)

    def progress(self, message: str) -> None:
        """A step of a long run, on standard error; only with -v."""
        if self.verbose:
            print(message, file=sys.stderr, flush=True)


@contextlib.contextmanager
def answering(*, as_json: bool, verbose: bool) -> Iterator[Console]:
    """Run a verb: a PorterError becomes one message and its exit code, a bug a traceback and exit code 3."""
    console = Console(sys.stdout, as_json, verbose)
    _quieten(verbose)
    try:
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            yield console
    except PorterError as error:
        report_error(console, error, error.exit_code)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        # The reader has gone (`porter … | head`): that is no failure to explain, and the final flush must not fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(_NOBODY_READS) from None
    except Exception as error:
        if type(error).__module__.startswith(("typer", "click")):
            raise
        traceback.print_exc()
        if as_json:
            report_error(console, error, EXIT_UNJUDGED)
        raise typer.Exit(EXIT_UNJUDGED) from None


def report_error(console: Console, error: Exception, exit_code: int) -> None:
    """One message on standard error, or with --json {"error": {kind, message, exit_code}} on standard output."""
    if console.as_json:
        kind = type(error).__name__.rstrip("_")
        console.json({"error": {"kind": kind, "message": str(error), "exit_code": exit_code}})
    else:
        print(f"porter: {error}", file=sys.stderr)


def table(rows: list[dict[str, Any]], columns: Iterable[str] | None = None) -> list[str]:
    """`rows` as aligned columns under a heading; no row gives no line."""
    if not rows:
        return []
    names = list(columns or rows[0])
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def _cell(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return "" if value is None else str(value)


def _quieten(verbose: bool) -> None:
    """Frameworks greet at length on their first import: only -v lets them."""
    if verbose:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr)
        return
    silence_first_import("tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
