"""Attention where `keras.ops.dot_product_attention` differs: masks and soft capping."""

from __future__ import annotations

import math

from keras import ops


def attention(query, key, value, mask=None, bias=None, scale=None, is_causal=False, softcap=None):
    """Scaled dot-product attention of (batch, time, heads, depth) tensors.

    `mask` (True = attend) and `bias` (added to the scores) broadcast to (batch, heads, query time, key time). A query
    that may attend to nothing gives zeros, where Keras' own operator gives an average or nan. Fewer key than query
    heads are shared by groups of query heads.
    """
    if query.shape[2] != key.shape[2]:
        groups = query.shape[2] // key.shape[2]
        key, value = ops.repeat(key, groups, axis=2), ops.repeat(value, groups, axis=2)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = ops.einsum("bqhd,bkhd->bhqk", query * scale, key)
    if softcap is not None:
        scores = softcap * ops.tanh(scores / softcap)
    if is_causal:
        queries, keys = ops.arange(ops.shape(scores)[2]), ops.arange(ops.shape(scores)[3])
        scores = ops.where(ops.expand_dims(queries, 1) >= keys, scores, -math.inf)
    if mask is not None:
        scores = ops.where(mask, scores, -math.inf)
    if bias is not None:
        scores = scores + bias
    highest = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))
    weights = ops.exp(scores - ops.where(highest > -math.inf, highest, 0))
    total = ops.sum(weights, axis=-1, keepdims=True)
    weights = weights / ops.where(total > 0, total, 1)
    return ops.einsum("bhqk,bkhd->bqhd", weights, value)
