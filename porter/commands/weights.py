"""`porter weights`: carry a new checkpoint over to the other side of a port."""

from pathlib import Path
from typing import Annotated

import typer

from porter import modelfiles
from porter.commands import options
from porter.commands.console import answering
from porter.commands.making import refuse_existing
from porter.errors import InputError


def weights(
    port_dir: Annotated[Path, typer.Argument(metavar="PORT_DIR", help="The port whose weight map is used.")],
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="The weights to carry over.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The checkpoint to write.")],
    reverse: Annotated[bool, typer.Option("--reverse", help="From the target's weights to the source's.")] = False,
    force: options.Force = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Carry a checkpoint over without porting again."""
    with answering(as_json=as_json, verbose=verbose) as console:
        if not modelfiles.is_port(port_dir):
            raise InputError(f"{port_dir} is not a port directory: it has no port.json")
        if not checkpoint.exists():
            raise InputError(f"{checkpoint}: there is no such checkpoint")
        refuse_existing(out, force)

        from porter.weights import carry

        carried = carry(port_dir, checkpoint, out, reverse=reverse)
        console.lines(carried.lines())
        answer = {"port": str(port_dir), "checkpoint": str(checkpoint), "out": str(out), "reverse": reverse}
        console.json({**answer, "tensors": carried.tensors, "kept": list(carried.kept)})
