"""Keras in, structured ONNX out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.converters.frontends.converted import Converted


def to_onnx(
    model: Any, inputs: Any, dynamic: Any = "auto", *, progress: Callable[[str], None] = lambda stage: None
) -> Converted:
    """Trace a built Keras model on TensorFlow and translate it.

    Args:
        model: a `keras.Model` or layer.
        inputs: example inputs by position or name; a model with `keras.Input`s needs none.
        dynamic: "auto" (every size that the model leaves open), "none", or {input: {axis: name}}.
        progress: called with the name of each stage.

    Raises:
        InputError: there are no example inputs, or they do not fit.
        ExportError: the model cannot be traced, or a translation is not equal to what Keras computes.
        UnsupportedError: layers or operations without a translation, all of them named.
    """
    import json

    import keras

    from porter.converters.frontends.keras.check import check
    from porter.converters.frontends.keras.dims import trace_sizes
    from porter.converters.frontends.keras.interface import interface
    from porter.converters.frontends.keras.paths import variable_names
    from porter.converters.frontends.keras.translate import root_name, translate
    from porter.converters.opset import MODULES

    called = interface(model, inputs, dynamic)
    progress("trace")
    trace, shapes = trace_sizes(model, called.symbolic)
    progress("translate")
    graph = translate(model, trace, shapes, called.names)
    progress("check the graph against the model")
    check(model, trace, graph, called)
    names = variable_names(model)
    return Converted(
        graph,
        root_name(model),
        called.arguments,
        json.loads(graph.graph.metadata_props[MODULES]),
        {names[id(variable)]: variable for variable in model.weights},
        {},
        {"keras": keras.__version__},
        "keras",
    )
