"""Attention, stored (batch, time, heads, depth) as Keras has it."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, isclose

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Literal, Ref, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.shape import sizes_of, target_shape
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Tensor


@keras_op("Attention", layout="fixed")
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, *, outs: Sequence[Ref], is_causal: int = 0, scale: float | None = None,
    softcap: float = 0.0, q_num_heads: int = 0, kv_num_heads: int = 0, qk_matmul_output_mode: int = 0,
    softmax_precision: int | None = None,
) -> Expr | tuple[Expr | None, ...]:  # fmt: skip
    """Keras' own operator gives no zeros where a query may attend to nothing, so masks take a function of ours."""
    if past_key is not None or past_value is not None:
        raise CannotBind("a cache of past keys and values has no rule; concatenate it to the keys and values")
    if any(out.value.uses() or out.value.is_graph_output() for out in outs[1:]):
        raise CannotBind("attention scores and present keys cannot be returned")
    if softmax_precision not in (None, int(q.dtype)):
        raise CannotBind("a softmax in another precision than its input's has no rule")
    depth = _depth(q, q_num_heads)
    if depth is None:
        raise CannotBind("the depth of the heads is unknown")
    merged = q.rank == 3
    # One head of keys for all queries fails in Keras on TensorFlow.
    shared = kv_num_heads == 1 < q_num_heads if merged else k.shape[2] == 1 != q.shape[2]
    query, key, value = (
        _heads(x, heads) if merged else x for x, heads in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads))
    )
    result = _attended(query, key, value, mask, shared, depth, scale, bool(is_causal), softcap)
    if merged:
        result = call("ops.reshape", result, target_shape(outs[0], outs[0]))
    return result if len(outs) == 1 else (result, *[None] * (len(outs) - 1))


def _attended(
    query: Expr,
    key: Expr,
    value: Expr,
    mask: Ref | None,
    shared: bool,
    depth: int,
    scale: float | None,
    causal: bool,
    softcap: float,
) -> Expr:
    if scale is not None and isclose(scale, depth**-0.5, rel_tol=1e-6):
        scale = None
    if mask is not None or softcap or shared:
        boolean = mask is not None and mask.dtype == ir.DataType.BOOL
        return call(
            "attention",
            query,
            key,
            value,
            mask=mask if boolean else None,
            bias=None if boolean else mask,
            scale=scale,
            is_causal=causal or None,
            softcap=softcap or None,
        )
    if frexp(depth**-0.5 if scale is None else scale)[0] != 0.5:
        # Keras rounds the scale to float32, which is exact for powers of two alone.
        query, scale = query * (Literal(depth) ** -0.5 if scale is None else scale), 1.0
    return call("ops.dot_product_attention", query, key, value, scale=scale, is_causal=causal or None)


def _depth(q: Ref, heads: int) -> int | None:
    size = q.shape[-1]
    return None if not isinstance(size, int) else size // heads if q.rank == 3 else size


def _heads(x: Ref, heads: int) -> Expr:
    """(batch, time, heads · depth) to (batch, time, heads, depth)."""
    _, time, width = sizes_of(x)
    if not isinstance(width, int):
        raise CannotBind("the depth of the heads is unknown")
    return call("ops.reshape", x, (-1, time, heads, width // heads))
