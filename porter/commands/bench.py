"""`porter bench`: how fast the two sides of a pair are."""

import json
from pathlib import Path
from typing import Annotated

import typer

from porter.commands import options, sources
from porter.commands.console import answering


def bench(
    source: Annotated[str, typer.Argument(metavar="A", help="The source, or a port directory alone.")],
    target: Annotated[str | None, typer.Argument(metavar="[B]", help="A port directory, or any reference.")] = None,
    input_specs: options.Input = [],  # noqa: B006 - typer copies the default of a repeated option
    inputs_file: options.Inputs = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE.json", help="Keep the numbers.")] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Time two models on the same inputs, interleaved and synchronised."""
    with answering(as_json=as_json, verbose=verbose) as console:
        loaded, other = sources.load_pair(source, target, input_specs, inputs_file)

        import porter

        result = porter.benchmark(loaded.model, other, loaded.inputs)
        console.lines(result.lines())
        if out is not None:
            out.write_text(json.dumps(result.to_json(), indent=2, default=str) + "\n", "utf-8")
            console.lines([f"numbers {out}"])
        console.json(result.to_json())
