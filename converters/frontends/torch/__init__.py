"""PyTorch in, structured ONNX out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.converters.frontends.converted import Converted
from porter.errors import InputError


def to_onnx(
    model: Any, inputs: Any, dynamic: Any = "auto", *, progress: Callable[[str], None] = lambda stage: None
) -> Converted:
    """Trace a model and translate it.

    Raises:
        InputError: there are no example inputs, or they do not fit.
        ExportError: the model cannot be traced, or an operator's translation is not equal to it.
        UnsupportedError: operators without a translation, all of them named.
    """
    import json

    import torch

    from porter.converters.frontends.torch.check import check
    from porter.converters.frontends.torch.export import export, program_arguments, program_inputs
    from porter.converters.frontends.torch.modules import origin_of_module, origin_of_program
    from porter.converters.frontends.torch.translate import translate
    from porter.converters.opset import MODULES
    from porter.converters.signature import argument_names

    if isinstance(model, torch.export.ExportedProgram):
        program, inputs = model, inputs if inputs is not None else program_inputs(model)
        state, arguments = model.state_dict, program_arguments(model)
    elif isinstance(model, torch.nn.Module):
        if inputs is None:
            raise InputError(
                "no example inputs: give a tuple of positional arguments or a dict of keyword arguments "
                "(--input, --inputs)"
            )
        program = export(model, inputs, dynamic)
        state, arguments = model.state_dict(), argument_names(model.forward, inputs)
    else:
        raise InputError(f"a PyTorch model is an nn.Module or an ExportedProgram, not a {type(model).__name__}")
    progress("translate")
    graph = translate(program, model, dict(dynamic) if isinstance(dynamic, dict) else {})
    progress("check the graph against the model")
    check(model, program, graph, inputs)
    origin = origin_of_module(model) if isinstance(model, torch.nn.Module) else origin_of_program(model)
    return Converted(
        graph,
        origin.name,
        arguments,
        json.loads(graph.graph.metadata_props[MODULES]),
        {name: tensor for name, tensor in state.items() if isinstance(tensor, torch.Tensor)},
        origin.ties,
        {"torch": torch.__version__},
    )
