"""`porter verify`: whether two models are the same model."""

from pathlib import Path
from typing import Annotated

import typer

from porter.commands import options, sources
from porter.commands.console import EXIT_NOT_EQUAL, answering


def verify(
    source: Annotated[str, typer.Argument(metavar="A", help="The source, or a port directory alone.")],
    target: Annotated[str | None, typer.Argument(metavar="[B]", help="A port directory, or any reference.")] = None,
    level: options.Compare = options.Level.forward,
    input_specs: options.Input = [],  # noqa: B006 - typer copies the default of a repeated option
    inputs_file: options.Inputs = None,
    draws: Annotated[int, typer.Option("--draws", min=1, metavar="N", help="Ordinary random inputs.")] = 3,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.")] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare two models: exit 0 when they are equal, 1 when not, 3 when it can't be judged."""
    with answering(as_json=as_json, verbose=verbose) as console:
        loaded, other = sources.load_pair(source, target, input_specs, inputs_file)

        import porter

        report = porter.verify(loaded.model, other, loaded.inputs, level=level.value, draws=draws)
        console.lines(report.lines())
        if html is not None:
            report.to_html(html)
            console.lines([f"report  {html}"])
        console.json(report.to_json())
    if not report.passed:
        raise typer.Exit(EXIT_NOT_EQUAL)
