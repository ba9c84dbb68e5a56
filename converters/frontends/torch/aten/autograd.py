"""Where autograd stops: without meaning in ONNX, kept as a training fact of an Identity."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.converters.opset import KIND, STOP_GRADIENT, TRAINING

Value = ir.Value


@aten("detach")
def detach(op: Builder, x: Value) -> Value:
    return stopped(op, x)


def stopped(op: Builder, x: Value) -> Value:
    """The value without its gradient; constants, buffers and integers have none."""
    if x.dtype is None or not x.dtype.is_floating_point() or x.metadata_props.get(KIND) in ("constant", "buffer"):
        return x
    producer = x.producer()
    if producer is not None and producer.metadata_props.get(TRAINING) == STOP_GRADIENT:
        return x
    result = op.Identity(x, facts={TRAINING: STOP_GRADIENT})
    result.shape = x.shape
    return result
