"""`porter doctor`: what this installation can do, and what it lacks."""

import typer

from porter.commands import options
from porter.commands.console import EXIT_UNJUDGED, answering, table


def doctor(as_json: options.Json = False, verbose: options.Verbose = False) -> None:
    """Show versions, devices and numeric settings; exit 3 when something that porter needs is missing."""
    with answering(as_json=as_json, verbose=verbose) as console:
        from porter.doctor import examine

        found = examine()
        for title, values in found.sections():
            rows = [{"": f"  {key}", " ": value} for key, value in values.items()]
            console.lines([title, *table(rows)[1:], ""])
        for missing in found.missing:
            need = "needed" if missing.required else "optional"
            console.lines([f"missing ({need}): {missing.name}: {missing.purpose}; {missing.remedy}"])
        console.json(found.to_json())
    if not found.healthy:
        raise typer.Exit(EXIT_UNJUDGED)
