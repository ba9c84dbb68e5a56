"""TensorFlow graphs in, structured ONNX out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from porter.converters.frontends.converted import Converted
from porter.errors import ExportError, InputError, UnsupportedError

if TYPE_CHECKING:
    from porter.converters.frontends.tensorflow.calling import Called


def to_onnx(
    model: Any, inputs: Any, dynamic: Any = "auto", *, progress: Callable[[str], None] = lambda stage: None
) -> Converted:
    """Trace a model and translate its graph.

    Args:
        model: a tf.Module, tf.function or ConcreteFunction, or what `loading` reads from disk.
        inputs: example inputs; a model with a signature needs none.
        dynamic: "auto" (every size that can vary does), "none", or {input: {axis: name}}.
        progress: called with the name of each stage.

    Raises:
        InputError: there are no example inputs, or they do not fit.
        ExportError: the model cannot be traced, or an operator's translation is not equal to it.
        UnsupportedError: operators without a translation, all of them named.
    """
    from porter.converters.frontends.tensorflow.calling import attempts

    progress("trace")
    failure: Exception | None = None
    for called in attempts(model, inputs, dynamic):
        try:
            return _converted(called, progress)
        except (UnsupportedError, InputError, ExportError) as error:
            failure = error
    assert failure is not None
    raise failure


def _converted(called: Called, progress: Callable[[str], None]) -> Converted:
    import tensorflow as tf
    from onnx_ir.passes import common

    from porter.converters.frontends.tensorflow.check import check, check_outputs
    from porter.converters.frontends.tensorflow.fusing import fuse
    from porter.converters.frontends.tensorflow.translate import translate

    program = called.program
    progress("translate")
    translation = translate(program, called.symbols)
    progress("check the graph against the model")
    for example in called.examples:
        check(program, translation, example)
    model = translation.model
    common.RemoveUnusedNodesPass()(model)
    if fuse(model.graph):
        common.RemoveUnusedNodesPass()(model)
        check_outputs(program, model, called.examples[0])
    return Converted(
        model,
        program.name,
        called.arguments,
        program.modules,
        {variable.name: variable.array for variable in program.variables.values() if variable.kind != "constant"},
        {},
        {"tensorflow": tf.__version__},
        "tensorflow",
    )
