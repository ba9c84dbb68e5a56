"""Multi-head attention as a layer."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, Literal, call, layer
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Str, Tensor, Weight


@keras_op("MultiHeadAttention", layout="fixed", domain="porter", note="nn.MultiheadAttention")
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
) -> Expr:
    """torch keeps the three projections in one matrix, heads side by side; its boolean masks say what to leave out."""
    width = out_weight.shape[0]
    depth = width // num_heads
    weights: dict[str, Weight | None] = {}
    for index, name in enumerate(("query", "key", "value")):
        kernel = in_weight.sliced(0, index * width, (index + 1) * width).transposed([1, 0])
        weights[f"{name}_dense.kernel"] = kernel.reshaped(width, num_heads, depth)
        if in_bias is not None:
            weights[f"{name}_dense.bias"] = in_bias.sliced(0, index * width, (index + 1) * width).reshaped(
                num_heads, depth
            )
    weights["output_dense.kernel"] = out_weight.transposed([1, 0]).reshaped(num_heads, depth, width)
    weights["output_dense.bias"] = out_bias
    if (in_bias is None) != (out_bias is None):
        raise CannotBind("one of the projections has a bias and the other has none")
    heads = layer(
        "MultiHeadAttention",
        num_heads=num_heads,
        key_dim=depth,
        dropout=dropout,
        use_bias=in_bias is not None,
        weights=weights,
        training=dropout > 0,
    )
    arguments: dict[str, object] = {}
    if key.value is not value.value:
        arguments["key"] = key
    if mask is not None:
        keep = call("ops.logical_not", mask)
        arguments["attention_mask"] = keep[:, None] if mask_kind == "key_padding_mask" else keep[None]
    if is_causal:
        arguments["use_causal_mask"] = Literal(True)
    return heads(query, value, **arguments)
