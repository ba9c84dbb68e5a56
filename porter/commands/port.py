"""`porter port`: write the model as source code of the other framework."""

from pathlib import Path
from typing import Annotated

import typer

from porter.commands import options, sources
from porter.commands.console import EXIT_NOT_EQUAL, answering
from porter.commands.making import make, refuse_existing

Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Default: ported/NAME.")]
Static = Annotated[bool, typer.Option("--static", help="Fix every size to that of the example inputs.")]
KeepOnnx = Annotated[bool, typer.Option("--keep-onnx", help="Keep the ONNX model in the port.")]


def port(
    reference: options.Reference,
    to: options.To,
    out: Out = None,
    input_specs: options.Input = [],  # noqa: B006 - typer copies the default of a repeated option
    inputs_file: options.Inputs = None,
    verify: options.Verify = None,
    static: Static = False,
    layout: Annotated[options.Layout, typer.Option("--layout", help="Axis order.")] = options.Layout.native,
    signature: options.Signature = None,
    rules: options.Rules = [],  # noqa: B006 - as above
    keep_onnx: KeepOnnx = False,
    force: options.Force = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Write the model as source code of the other framework, with its weights."""
    with answering(as_json=as_json, verbose=verbose) as console:
        refuse_existing(out, force)
        loaded = sources.load(reference, input_specs, inputs_file, to=to, signature=signature)
        made = make(
            loaded,
            to.value,
            out or Path("ported") / loaded.name,
            verify.value if verify else None,
            console.progress,
            static=static,
            layout=layout.value,
            rules=tuple(rules),
            keep_onnx=keep_onnx,
            force=force,
        )
        console.lines(made.lines)
        console.json(made.answer)
    if not made.passed:
        raise typer.Exit(EXIT_NOT_EQUAL)
