"""The options that several verbs share, spelled once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Target(StrEnum):
    """What `--to` takes."""

    keras = "keras"
    torch = "torch"
    onnx = "onnx"


class Level(StrEnum):
    """How far a pair is compared; each level includes the ones before."""

    forward = "forward"
    modules = "modules"
    gradients = "gradients"
    training = "training"


class Layout(StrEnum):
    """Whose axis order the port uses."""

    native = "native"
    source = "source"


Reference = Annotated[
    str,
    typer.Argument(
        metavar="REF",
        help="torch:PKG.MOD:FACTORY, keras:PKG.MOD:FACTORY, tf:PKG.MOD:FUNCTION, zoo:NAME, timm:NAME, "
        "torchvision:NAME, transformers:CLASS, keras.applications:NAME, or a path.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON on standard output.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show progress and the frameworks' own messages.")]
Input = Annotated[
    list[str],
    typer.Option(
        "--input",
        metavar="NAME:DTYPE[SHAPE]",
        help="An example input, as in x:float32[batch,3,224,224]; a name in the shape is an axis that may vary "
        "(side=96 gives it an example size). May be repeated.",
    ),
]
Inputs = Annotated[Path | None, typer.Option("--inputs", metavar="FILE.npz", help="Example inputs from a file.")]
Rules = Annotated[list[Path], typer.Option("--rules", metavar="FILE.py", help="Operator rules of your own.")]
Signature = Annotated[
    str | None,
    typer.Option(
        "--signature",
        metavar="NAME",
        help="Which signature of a SavedModel; for a graph without any its tensors, as in images,mask->softmax.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an output that exists.")]
Small = Annotated[bool, typer.Option("--small", help="The small width of each zoo model.")]
To = Annotated[Target, typer.Option("--to", help="The framework to port to.")]
Verify = Annotated[Level | None, typer.Option("--verify", help="Verify the port at this level as well.")]
Compare = Annotated[Level, typer.Option("--level", help="How far to compare.")]
