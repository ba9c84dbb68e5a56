"""From an `nn.Module` with example inputs to a `torch.export.ExportedProgram`, before any decomposition.

The undecomposed program is the richest form that torch gives: BatchNorm and Dropout are single nodes with all their
arguments, each node knows the module call it belongs to, and sizes are symbols.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export import Dim, ExportedProgram
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree

from porter.converters.frontends.torch.fixed_axes import fixed_axes
from porter.converters.frontends.torch.recurrent_shapes import layers_kept_whole
from porter.converters.frontends.torch.regions import describe_regions, regions_kept_readable
from porter.errors import ExportError, InputError


def as_tensors(inputs: Any) -> Any:
    """`inputs` with every array turned into a tensor; nested containers are kept as they are."""
    return pytree.tree_map(
        lambda leaf: torch.from_numpy(np.ascontiguousarray(leaf)) if isinstance(leaf, np.ndarray) else leaf, inputs
    )


def call_arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`(args, kwargs)` from a tuple of positional arguments or a dict of keyword arguments."""
    inputs = _apart(as_tensors(inputs))
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, Sequence):
        return tuple(inputs), {}
    return (inputs,), {}


def _apart(inputs: Any) -> Any:
    """Every tensor as an object of its own: torch.export takes one object that is given twice for one input."""
    seen: set[int] = set()

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or id(leaf) not in seen:
            seen.add(id(leaf))
            return leaf
        return leaf.clone()

    return pytree.tree_map(own, inputs)


def _auto(leaf: Any) -> Any:
    return dict.fromkeys(range(leaf.dim()), Dim.AUTO) if isinstance(leaf, torch.Tensor) else None


def _first(leaf: Any) -> Any:
    return {0: Dim.AUTO} if isinstance(leaf, torch.Tensor) and leaf.dim() else None


def _named(name: str, leaf: Any, axes: Mapping[int, str]) -> Any:
    if not isinstance(leaf, torch.Tensor):
        raise InputError(
            f"dynamic axes were given for the input {name!r}, which is no tensor but {type(leaf).__name__}"
        )
    wrong = [axis for axis in axes if not 0 <= axis < leaf.dim()]
    if wrong:
        raise InputError(f"the input {name!r} has {leaf.dim()} axes; dynamic axis {wrong[0]} does not exist")
    return {axis: Dim.AUTO if axis in axes else Dim.STATIC for axis in range(leaf.dim())}


def dynamic_shapes(model: torch.nn.Module, args: tuple, kwargs: dict[str, Any], dynamic: Any) -> Any:
    """The `dynamic_shapes` argument of `torch.export.export` for porter's `dynamic`.

    "auto" lets every axis vary that can, "batch" the first ones that can, "none" fixes all, a dict
    {input: {axis: name}} names the ones that vary.

    Raises:
        InputError: the arguments do not fit the model's forward, or an axis does not exist.
    """
    given = _arguments(model, args, kwargs)
    if dynamic == "none":
        return None
    for name, parameter in inspect.signature(model.forward).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD and given.get(name):
            raise InputError(
                f"{type(model).__name__}.forward gathers {', '.join(given[name])} in **{name}, and torch.export cannot "
                "vary their sizes: give them names in the signature of forward, or fix all sizes with --static"
            )
    if dynamic in ("auto", "batch"):
        varying = _auto if dynamic == "auto" else _first
        return {name: pytree.tree_map(varying, value) for name, value in given.items()}
    unknown = sorted(set(dynamic) - set(given))
    if unknown:
        raise InputError(f"dynamic axes name the input {unknown[0]!r}; the model takes {', '.join(given)}")
    return {
        name: _named(name, value, dynamic[name]) if name in dynamic else pytree.tree_map(lambda _: None, value)
        for name, value in given.items()
    }


def _arguments(model: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """{parameter of forward: what it gets}; the parameters that gather (`*args`) get a tuple or dict."""
    signature = inspect.signature(model.forward)
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        named = "".join(f", {name}=…" for name in kwargs)
        raise InputError(
            f"{type(model).__name__}.forward{signature} cannot be called with {len(args)} positional input(s){named}: "
            f"{error}"
        ) from error


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The model in eval mode; every module's own mode is restored afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield model
    finally:
        for module, mode in modes:
            module.training = mode


def export(model: torch.nn.Module, inputs: Any, dynamic: Any = "auto") -> ExportedProgram:
    """The model as a program with symbolic sizes, module calls and their signatures.

    Raises:
        ExportError: torch cannot trace the model; the message keeps torch's own words and the line in the model.
        InputError: the inputs or dynamic axes do not fit the model.
    """
    try:
        program = _exported(model, inputs, dynamic)
    except ExportError as error:
        # torch's solver gives up on sizes such as (x // 2) // 2 that some operator fixes: the batch can still vary.
        if dynamic != "auto" or not isinstance(error.__cause__, NotImplementedError):
            raise
        program = _exported(model, inputs, "batch")
    fixed = fixed_axes(program) if dynamic == "auto" else {}
    if not fixed:
        return program
    args, kwargs = call_arguments(inputs)
    leaves = _arguments(model, args, kwargs)
    if not all(isinstance(leaves.get(name), torch.Tensor) for name in fixed):
        return program
    free = {
        name: {axis: "" for axis in range(leaf.dim()) if axis not in fixed.get(name, ())}
        for name, leaf in leaves.items()
        if isinstance(leaf, torch.Tensor)
    }
    return _exported(model, inputs, free)


def _exported(model: torch.nn.Module, inputs: Any, dynamic: Any) -> ExportedProgram:
    args, kwargs = call_arguments(inputs)
    shapes = dynamic_shapes(model, args, kwargs, dynamic)
    paths = tuple(path for path, _ in model.named_modules(remove_duplicate=True) if path)
    trace = partial(torch.export.export, model, args, kwargs, dynamic_shapes=shapes, strict=False)
    with evaluating(model), layers_kept_whole(), regions_kept_readable(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Signatures of module calls only serve names: a model that cannot give them is traced without.
        with suppress(Exception):
            program = trace(preserve_module_call_signature=paths)
            describe_regions(program, model)
            return program
        try:
            program = trace()
        except Exception as error:
            raise ExportError(_explain(model, args, kwargs, error)) from error
        inside = describe_regions(program, model)
        with suppress(Exception):
            if inside:  # modules that a branch or loop calls have none, which all others may still have
                again = trace(preserve_module_call_signature=tuple(path for path in paths if path not in inside))
                describe_regions(again, model)
                return again
    return program


def program_inputs(program: ExportedProgram) -> Any:
    """The example inputs that a program keeps: a tuple, or a dict where all are keywords.

    Raises:
        InputError: the program was saved without them.
    """
    if program.example_inputs is None:
        raise InputError("the program holds no example inputs: give some with --input or --inputs")
    args, kwargs = program.example_inputs
    return dict(kwargs) if kwargs and not args else tuple(args)


def program_arguments(program: ExportedProgram) -> list[str]:
    """The names of a program's arguments, positional ones as its graph names them."""
    kwargs = program.example_inputs[1] if program.example_inputs else {}
    names = list(program.graph_signature.user_inputs)
    return [*(str(name) for name in names[: len(names) - len(kwargs)]), *kwargs]


def _explain(model: torch.nn.Module, args: tuple, kwargs: dict[str, Any], error: Exception) -> str:
    """One message for a failed export: the model's own error if it has one, else torch's with a remedy."""
    name = type(model).__name__
    try:
        with torch.no_grad():
            model(*args, **kwargs)
    except Exception as own:
        given = ", ".join(
            f"{list(leaf.shape)} {str(leaf.dtype).removeprefix('torch.')}"
            for leaf in pytree.tree_leaves((args, kwargs))
            if isinstance(leaf, torch.Tensor)
        )
        return (
            f"{name} itself fails on these inputs ({given}): {type(own).__name__}: {own}\n"
            f"at {_line(own)}. Give inputs that the model accepts, with --input or --inputs."
        )
    text = str(error).strip().split("\n\n")[0]
    return f"torch.export cannot trace {name}: {type(error).__name__}: {text}\nat {_line(error)}. {_remedy(error)}"


def _line(error: BaseException) -> str:
    """The innermost frame outside torch: where in the model's own code the error arose."""
    import traceback

    others = ("<", str(Path(torch.__file__).parent), str(Path(__file__).parent))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(others)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown line"


def _remedy(error: BaseException) -> str:
    import traceback

    text = str(error)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if any(isinstance(value, PackedSequence) for frame in frames for value in frame.f_locals.values()):
        return (
            "torch.export has no pack_padded_sequence and pad_packed_sequence: run the recurrent layer over the padded "
            "sequences and mask what lies behind their ends, or gather the states there."
        )
    if "data-dependent" in text or "GuardOnDataDependent" in text:
        return (
            "A branch or size depends on the data: express it with torch.where or torch.cond, "
            "or fix the sizes with --static."
        )
    if "ConstraintViolation" in text or "specialized" in text:
        return "A size cannot vary: leave that axis out of the dynamic axes, or fix all sizes with --static."
    return "Fixed sizes (--static) may help; otherwise rewrite that line so that torch.export accepts it."
