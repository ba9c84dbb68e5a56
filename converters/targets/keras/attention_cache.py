"""Attention where `attention` has no shorter form: with a cache, its scores as a result, or a softmax of its own."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Ref, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.cast import dtype_name
from porter.converters.targets.types import Tensor

_SCORES = ("raw", "capped", "masked", "weights")  # by qk_matmul_output_mode


@keras_op("Attention", layout="fixed")
def attention_with_cache(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, *, outs: Sequence[Ref], is_causal: int = 0, scale: float | None = None,
    softcap: float = 0.0, q_num_heads: int = 0, kv_num_heads: int = 0, qk_matmul_output_mode: int = 0,
    softmax_precision: int | None = None,
) -> Expr | tuple[Expr | None, ...]:  # fmt: skip
    """Caches and scores keep ONNX's order, (batch, heads, time, …)."""
    boolean = mask is not None and mask.dtype == ir.DataType.BOOL
    precise = softmax_precision is not None and softmax_precision != int(q.dtype)
    mode = qk_matmul_output_mode if len(outs) > 3 and _read(outs[3]) else 0
    result = call(
        "cached_attention",
        q,
        k,
        v,
        mask=mask if boolean else None,
        bias=None if boolean else mask,
        past_key=past_key,
        past_value=past_value,
        heads=(q_num_heads, kv_num_heads) if q.rank == 3 else None,
        scale=scale,
        is_causal=bool(is_causal) or None,
        softcap=softcap or None,
        softmax_dtype=dtype_name(ir.DataType(softmax_precision)) if precise else None,
        scores=_SCORES[mode] if mode else None,
    )
    if not any(_read(out) for out in outs[1:]):
        return (result[0], *[None] * (len(outs) - 1)) if len(outs) > 1 else result[0]
    return result if len(outs) == 4 else result[: len(outs)]


def _read(out: Ref) -> bool:
    return bool(out.value.uses()) or out.value.is_graph_output()
