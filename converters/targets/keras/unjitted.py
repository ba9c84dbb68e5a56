"""Layers with loops, which TensorFlow's XLA cannot differentiate."""

from __future__ import annotations

from dataclasses import replace

from porter.converters.codegen.body import Body
from porter.converters.codegen.nodes import Call, Verbatim, walk

_LOOPS = {"ops.fori_loop", "ops.while_loop", "ops.scan", "scan_results", "tf.while_loop", "while_loop_results"}


def unjitted(body: Body) -> Body:
    """A body with loops says that it is not to be compiled: `fit` would do so by itself where there is a GPU."""
    calls = (part for line in body.lines for part in walk(line.expr) if isinstance(part, Call))
    if not any(call.func in _LOOPS for call in calls):
        return body
    flag = Verbatim('keras.backend.backend() != "tensorflow"  # whose XLA cannot differentiate loops')
    return replace(body, definitions={("supports_jit",): flag, **body.definitions})
