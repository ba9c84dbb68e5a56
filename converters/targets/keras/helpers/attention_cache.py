"""Attention with a cache of keys and values, and with its scores as a result."""

from __future__ import annotations

import math

from keras import ops


def split_heads(x, heads):
    """(batch, time, heads · depth) to (batch, time, heads, depth)."""
    _, time, width = ops.shape(x)
    return ops.reshape(x, (-1, time, heads, width // heads))


def cached_attention(
    query, key, value, mask=None, bias=None, past_key=None, past_value=None, heads=None, scale=None, is_causal=False,
    softcap=None, softmax_dtype=None, scores="raw",
):  # fmt: skip
    """Scaled dot-product attention to the keys and values of now and before: (result, keys, values, scores).

    `query`, `key` and `value` are (batch, time, heads, depth), or (batch, time, heads · depth) where `heads` has the
    numbers of heads of queries and keys. Past and resulting keys and values are (batch, heads, time, depth). `mask`
    (True = attend) and `bias` (added to the scores) broadcast to (batch, heads, query time, key time); a query that may
    attend to nothing gives zeros. `scores` says which of them are given: "raw", "capped", "masked" or the "weights".
    """
    if heads is not None:
        query, key, value = split_heads(query, heads[0]), split_heads(key, heads[1]), split_heads(value, heads[1])
    keys, values, past = ops.swapaxes(key, 1, 2), ops.swapaxes(value, 1, 2), 0
    if past_key is not None:
        past = ops.shape(past_key)[2]
        keys, values = ops.concatenate([past_key, keys], axis=2), ops.concatenate([past_value, values], axis=2)
    groups = query.shape[2] // keys.shape[1] if query.shape[2] != keys.shape[1] else 1
    every_key, every_value = ops.repeat(keys, groups, axis=1), ops.repeat(values, groups, axis=1)
    if scale is None:
        scale = ops.cast(ops.shape(query)[-1], query.dtype) ** -0.5
    raw = ops.einsum("bqhd,bhkd->bhqk", query * scale, every_key)
    capped = raw if softcap is None else softcap * ops.tanh(raw / softcap)
    masked = capped
    if is_causal:
        queries, places = (ops.arange(ops.shape(raw)[axis], dtype="int32") for axis in (2, 3))
        masked = ops.where(ops.expand_dims(queries + past, 1) >= places, masked, -math.inf)
    if mask is not None:
        masked = ops.where(mask, masked, -math.inf)
    if bias is not None:
        masked = masked + bias
    weights = ops.cast(weights_of(masked if softmax_dtype is None else ops.cast(masked, softmax_dtype)), query.dtype)
    result = ops.einsum("bhqk,bhkd->bqhd", weights, every_value)
    if heads is not None:
        _, time, count, depth = ops.shape(result)
        result = ops.reshape(result, (-1, time, count * depth))
    given = {"raw": raw, "capped": capped, "masked": masked, "weights": weights}
    return result, keys, values, given[scores]


def weights_of(scores):
    """The softmax of scores over their last axis, zeros where all of them are -inf."""
    highest = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))
    weights = ops.exp(scores - ops.where(highest > -math.inf, highest, 0))
    total = ops.sum(weights, axis=-1, keepdims=True)
    return weights / ops.where(total > 0, total, 1)
