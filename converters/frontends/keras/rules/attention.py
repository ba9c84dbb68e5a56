"""Attention as one node. Keras has time before heads, ONNX heads before time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.keras.operands import in_dtype, moved
from porter.converters.frontends.keras.table import keras_operation
from porter.converters.opset import TRAINING
from porter.errors import UnsupportedError

Value = ir.Value


@keras_operation("DotProductAttention")
def dot_product_attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    scale: float | None = None,
    *,
    is_causal: bool,
    flash_attention: bool | None,
    attn_logits_soft_cap: float | None,
    owner: Any,
) -> Value:
    """A masked key counts for nothing, but a query whose keys are all masked sees all alike: the mask is a number."""
    if len(query.shape) != 4:
        raise UnsupportedError(f"attention of rank {len(query.shape)}; reshape it to (batch, time, heads, depth)")
    q, k, v = (moved(op, x, [0, 2, 1, 3]) for x in (query, key, value))
    rate = _dropout(owner)
    if mask is not None:
        never = op.constant(-0.7 * float(np.finfo(np.float32).max), query)
        kept = bias if bias is not None else op.constant(0.0, query)
        bias = op.Where(in_dtype(op, mask, ir.DataType.BOOL), kept, never)
    y = op.Attention(
        q,
        k,
        v,
        bias,
        is_causal=int(is_causal),
        scale=None if scale is None else float(scale),
        softcap=None if attn_logits_soft_cap is None else float(attn_logits_soft_cap),
        facts={TRAINING: json.dumps({"dropout": rate})} if rate else None,
    )
    return op.Transpose(y, perm=[0, 2, 1, 3])


def _dropout(owner: Any) -> float:
    """The share of weights that the layer around drops in training."""
    rates = (getattr(owner, name, None) for name in ("_dropout", "dropout"))
    return next((float(rate) for rate in rates if isinstance(rate, int | float)), 0.0)
