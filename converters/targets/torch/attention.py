"""Attention over (batch, heads, time, depth)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Any

from porter.converters.codegen.nodes import Expr, Ref, Verbatim, call
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.types import Tensor


@torch_op("Attention", layout="fixed")
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, *, outs: Sequence[Ref], is_causal: int = 0, scale: float | None = None,
    softcap: float = 0.0, q_num_heads: int = 0, kv_num_heads: int = 0, qk_matmul_output_mode: int = 0,
    softmax_precision: int | None = None, training_facts: dict[str, Any],
) -> Expr | tuple[Expr | None, ...]:  # fmt: skip
    """PyTorch takes a mask or causality but not both, and has no soft cap: these take a function of ours."""
    if past_key is not None or past_value is not None:
        raise CannotBind("a cache of past keys and values has no rule; concatenate it to the keys and values")
    if any(out.value.uses() or out.value.is_graph_output() for out in outs[1:]):
        raise CannotBind("attention scores and present keys cannot be returned")
    if softmax_precision not in (None, int(q.dtype)):
        raise CannotBind("a softmax in another precision than its input's has no rule")
    merged = q.rank == 3
    heads = ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads))
    query, key, value = (_heads(x, count) if merged else x for x, count in heads)
    shared = kv_num_heads != q_num_heads if merged else k.shape[1] != q.shape[1]
    depth = q.shape[-1]
    if isinstance(depth, int) and scale is not None:
        depth = depth // q_num_heads if merged else depth
        scale = None if isclose(scale, depth**-0.5, rel_tol=1e-6) else scale
    rate = training_facts.get("dropout")
    given = {
        "attn_mask": mask,
        "dropout_p": Verbatim(f"{rate} if self.training else 0.0") if rate else None,
        "is_causal": bool(is_causal) or None,
        "scale": scale,
        "enable_gqa": shared or None,
    }
    if softcap or (mask is not None and is_causal):
        result: Expr = call("attention", query, key, value, **given, softcap=softcap or None)
    else:
        result = call("F.scaled_dot_product_attention", query, key, value, **given)
    if merged:
        result = call(".flatten", call(".transpose", result, 1, 2), 2)
    return result if len(outs) == 1 else (result, *[None] * (len(outs) - 1))


def _heads(x: Ref, heads: int) -> Expr:
    """(batch, time, heads · depth) to (batch, heads, time, depth)."""
    return call(".transpose", call(".unflatten", x, -1, (heads, -1)), 1, 2)
