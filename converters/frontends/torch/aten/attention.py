"""Scaled dot-product attention as one node."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten
from porter.errors import UnsupportedError

Value = ir.Value


@aten("scaled_dot_product_attention")
def attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """ONNX takes (batch, heads, time, depth); other ranks are brought to it."""
    if dropout_p:
        raise UnsupportedError("attention dropout that is active in eval mode: its result is random")
    rank = len(query.shape)
    if rank == 3:
        query, key, value = (op.Unsqueeze(t, [1]) for t in (query, key, value))
        if attn_mask is not None and len(attn_mask.shape) == 3:
            attn_mask = op.Unsqueeze(attn_mask, [1])
    elif rank != 4:
        raise UnsupportedError(
            f"scaled_dot_product_attention of rank {rank}; reshape it to (batch, heads, time, depth)"
        )
    number = None if scale is None else float(scale)
    y = op.Attention(query, key, value, attn_mask, is_causal=int(is_causal), scale=number)
    if attn_mask is not None:
        y = _blank_where_nothing_is_seen(op, y, attn_mask)
    return op.Squeeze(y, [1]) if rank == 3 else y


def _blank_where_nothing_is_seen(op: Builder, y: Value, mask: Value) -> Value:
    """A query whose keys are all masked gets zeros in torch; softmax over nothing would be NaN."""
    seen = mask if mask.dtype == ir.DataType.BOOL else op.Greater(mask, op.constant(float("-inf"), mask))
    seen = op.Cast(op.ReduceMax(op.Cast(seen, to=int(ir.DataType.INT32)), [-1], keepdims=1), to=int(ir.DataType.BOOL))
    return op.Where(seen, y, op.constant(0, y))
