"""`porter zoo`: the models that come with porter, listed, and the other verbs over many of them at once."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from porter.commands import options, sweep
from porter.commands.console import answering, table
from porter.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List the models that come with porter, or port, verify or time them.",
)

Names = Annotated[list[str], typer.Argument(metavar="[NAME]...", help="Models; all of them when left out.")]
Framework = Annotated[str | None, typer.Option("--framework", help="Definitions in torch, keras or tensorflow only.")]
Folder = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder that gets the ports.")]


@app.command("list")
def show(framework: Framework = None, as_json: options.Json = False, verbose: options.Verbose = False) -> None:
    """List the models, without building any."""
    with answering(as_json=as_json, verbose=verbose) as console:
        from porter.zoo import catalog

        if framework not in (None, *catalog.FRAMEWORKS):
            raise InputError(f"--framework {framework!r}: choose one of {', '.join(catalog.FRAMEWORKS)}")
        rows = [asdict(entry) for entry in catalog.entries(framework)]
        console.lines(table(rows, ("name", "framework", "kind", "summary")))
        console.json(rows)


@app.command()
def port(
    to: options.To,
    names: Names = [],  # noqa: B006 - typer copies the default of a repeated argument
    out: Folder = Path("ported"),
    verify: options.Verify = None,
    small: options.Small = False,
    force: options.Force = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Port models, each into a folder of its own."""
    work = sweep.Port(to.value, out, verify.value if verify else None, force=force)
    sweep.run(names, work, small=small, as_json=as_json, verbose=verbose)


@app.command()
def verify(
    to: options.To,
    names: Names = [],  # noqa: B006 - as above
    level: options.Compare = options.Level.forward,
    small: options.Small = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Port models into a temporary folder and verify every port."""
    with tempfile.TemporaryDirectory() as folder:
        work = sweep.Port(to.value, Path(folder), level.value)
        sweep.run(names, work, small=small, as_json=as_json, verbose=verbose)


@app.command()
def bench(
    to: options.To,
    names: Names = [],  # noqa: B006 - as above
    small: options.Small = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Port models into a temporary folder and time every pair."""
    with tempfile.TemporaryDirectory() as folder:
        work = sweep.Port(to.value, Path(folder), None, timed=True)
        sweep.run(names, work, small=small, as_json=as_json, verbose=verbose)
