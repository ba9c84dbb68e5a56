"""Paddings and broadcasts that PyTorch lacks."""

from __future__ import annotations

import torch


def pad_axes(x, pads, mode):
    """`x` continued at the ends of its axes: "edge" repeats the last element, "reflect" mirrors, "wrap" goes round.

    `pads` holds (before, after) of every axis; negative numbers crop.
    """
    for axis, (before, after) in enumerate(pads):
        size = x.shape[axis]
        at = torch.arange(-before, size + after, device=x.device)
        if mode == "edge":
            at = at.clamp(0, size - 1)
        elif mode == "wrap":
            at = at % size
        elif size > 1:
            at = (at % (2 * size - 2) - (size - 1)).abs().neg() + (size - 1)
        else:
            at = torch.zeros_like(at)
        x = x.index_select(axis, at)
    return x


def expand(x, shape):
    """`x` broadcast to `shape`, a tensor; where `shape` holds 1, `x` keeps its size."""
    return x.expand(torch.broadcast_shapes(x.shape, tuple(shape.tolist())))


def split_evenly(x, count, dim):
    """`count` pieces, the last ones smaller or empty where the size is no multiple; `chunk` would give fewer."""
    size = x.shape[dim]
    part = -(-size // count)
    return x.split([max(min(part, size - part * index), 0) for index in range(count)], dim=dim)
