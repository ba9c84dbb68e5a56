"""`porter ops`: which operators have a rule, read from the tables themselves."""

from typing import Annotated

import typer

from porter.commands import options
from porter.commands.console import answering, table


def ops(
    target: Annotated[options.Target | None, typer.Option("--target", help="One target only.")] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """List the operators that porter translates, for each target."""
    with answering(as_json=as_json, verbose=verbose) as console:
        if target is options.Target.onnx:
            console.lines(["onnx    every operator: the graph is written as it is"])
            console.json({})
            return

        from porter.converters.targets import coverage, with_rules

        rows = {name: coverage(name) for name in ([target.value] if target else with_rules())}
        for name, found in rows.items():
            console.lines([f"{name}: {len(found)} operators", *table(found), ""])
        console.json(rows)
