"""Attention where PyTorch's own differs: a mask and causality at once, and soft capping."""

from __future__ import annotations

import torch


def attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, softcap=None
):
    """Scaled dot-product attention of (batch, heads, time, depth) tensors.

    A query that may attend to nothing gives zeros. With `enable_gqa` groups of query heads share the heads of the keys.
    """
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    nothing = (scores == float("-inf")).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(nothing, 0), dim=-1).masked_fill(nothing, 0)
    return torch.dropout(weights, dropout_p, dropout_p > 0) @ value


def causal_mask(query, key, dim=1):
    """What each query leaves out: the keys that come later. Time is the axis `dim`."""
    sizes = query.shape[dim], key.shape[dim]
    return torch.ones(sizes, dtype=torch.bool, device=query.device).triu(1)
