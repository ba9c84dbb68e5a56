"""Gathers, scatters and searches by ONNX's rules: negative indices count from the end, of equals the first is taken."""

from __future__ import annotations

import math

import torch


def gather_nd(x, indices, batch_dims=0):
    """The elements or slices of `x` at `indices`, whose last axis holds one position for each of the first axes of `x`.

    The first `batch_dims` axes of both belong together.
    """
    places = indices.unbind(-1)
    rest = indices.dim() - 1 - batch_dims
    for axis in reversed(range(batch_dims)):
        own = torch.arange(x.shape[axis], device=x.device)
        places = (own.reshape(-1, *[1] * (batch_dims - 1 - axis + rest)), *places)
    return x[places]


def scatter_nd(x, indices, updates, reduce):
    """`x` with `updates` combined with what is there at `indices`, whose last axis holds positions."""
    depth, flat = indices.shape[-1], 0
    for size, position in zip(x.shape[:depth], indices.unbind(-1), strict=True):
        flat = flat * size + position % size
    rows = x.reshape(math.prod(x.shape[:depth]), -1)
    flat = flat.reshape(-1, 1).expand(-1, rows.shape[1])
    return rows.scatter_reduce(0, flat, updates.reshape(flat.shape), reduce).reshape(x.shape)


def one_hot(indices, depth, dim=-1):
    """Whether each index is the position along a new axis."""
    positions = torch.arange(depth, device=indices.device)
    hot = torch.where(indices < 0, indices + depth, indices).unsqueeze(-1) == positions
    return hot.movedim(-1, dim)


def unique(x, dim=None, in_order=False):
    """The distinct elements (or slices along `dim`), sorted or in order of appearance; where each occurs first, where
    each element went, and how often it occurs.
    """
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=dim)
    inverse = inverse.reshape(-1)
    places = torch.arange(inverse.numel(), device=x.device)
    first = torch.full_like(counts, inverse.numel()).scatter_reduce(0, inverse, places, "amin")
    if in_order:
        order = first.argsort()
        values, first, counts = values.index_select(dim or 0, order), first[order], counts[order]
        inverse = order.argsort()[inverse]
    return values, first, inverse, counts


def top_k(x, k, dim=-1, largest=True):
    """The `k` largest or smallest elements along an axis, in order, the first of equals first, and their positions."""
    values, indices = x.sort(dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)


def exclusive_cumsum(x, dim):
    """The sum of all elements before each."""
    total = x.cumsum(dim, dtype=x.dtype)
    return torch.cat([torch.zeros_like(total.narrow(dim, 0, 1)), total.narrow(dim, 0, total.shape[dim] - 1)], dim=dim)
