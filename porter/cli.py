"""The `porter` command: wires the verbs together, and loads no framework until one of them needs it."""

import json
import sys
from importlib import metadata
from typing import Annotated

import typer

from porter.commands import bench, doctor, inspect, ops, port, verify, weights, zoo
from porter.commands.console import EXIT_INPUT

app = typer.Typer(
    name="porter",
    help="Move a model between PyTorch and TensorFlow/Keras as source code, and prove that it is still the same model."
    "\n\nExit codes: 0 done or equal, 1 not equal, 2 bad reference, input or unsupported operator, 3 could not judge.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Markup would swallow the brackets of a shape, in help and in messages alike.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _verb in (port.port, verify.verify, bench.bench, weights.weights, inspect.inspect, ops.ops):
    app.command()(_verb)
app.add_typer(zoo.app, name="zoo")
app.command()(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"porter {metadata.version('porter-ml')}")
        raise typer.Exit


@app.callback()
def _porter(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if "--json" not in arguments:
        app(arguments, prog_name="porter")
        return
    try:
        # Left to itself, the parser would explain a wrong option in prose where JSON was asked for.
        sys.exit(app(arguments, prog_name="porter", standalone_mode=False) or 0)
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        kind = type(error).__name__
        print(json.dumps({"error": {"kind": kind, "message": message(), "exit_code": EXIT_INPUT}}, indent=2))
        sys.exit(EXIT_INPUT)
