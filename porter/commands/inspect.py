"""`porter inspect`: what a model is made of, and what porter can't translate yet."""

from porter.commands import options, sources
from porter.commands.console import answering


def inspect(
    reference: options.Reference,
    input_specs: options.Input = [],  # noqa: B006 - typer copies the default of a repeated option
    inputs_file: options.Inputs = None,
    rules: options.Rules = [],  # noqa: B006 - as above
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """List modules, operators and parameters, and every operator that has no rule yet."""
    with answering(as_json=as_json, verbose=verbose) as console:
        loaded = sources.load(reference, input_specs, inputs_file)

        import porter

        inspection = porter.inspect_model(loaded.model, loaded.inputs, rules=rules)
        console.lines(inspection.lines())
        console.json(inspection.to_json())
