"""Multi-head attention as a layer."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, Literal, call, layer
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.types import Str, Tensor, Weight


@torch_op("MultiHeadAttention", layout="fixed", domain="porter", note="nn.MultiheadAttention")
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    in_weight: Weight,
    in_bias: Weight | None,
    out_weight: Weight,
    out_bias: Weight | None,
    mask: Tensor | None = None,
    *,
    num_heads: int,
    is_causal: int,
    dropout: float,
    mask_kind: Str,
    batch_first: bool,
) -> Expr:
    """The layer's boolean masks say what to leave out; it takes a causal mask by name and as a tensor."""
    if (in_bias is None) != (out_bias is None):
        raise CannotBind("one of the projections has a bias and the other has none")
    heads = layer(
        "nn.MultiheadAttention",
        embed_dim=out_weight.shape[0],
        num_heads=num_heads,
        dropout=dropout,
        bias=in_bias is not None,
        batch_first=batch_first,
        weights={
            "in_proj_weight": in_weight,
            "in_proj_bias": in_bias,
            "out_proj.weight": out_weight,
            "out_proj.bias": out_bias,
        },
        training=dropout > 0,
    )
    arguments: dict[str, object] = {"need_weights": Literal(False)}
    if mask is not None:
        arguments[mask_kind or "attn_mask"] = mask
    if is_causal:
        arguments |= {
            "attn_mask": call("causal_mask", query, key, dim=None if batch_first else 0),
            "is_causal": Literal(True),
        }
    return heads(query, key, value, **arguments)[Literal(0)]
