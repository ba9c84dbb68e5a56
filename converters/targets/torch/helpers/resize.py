"""Interpolation along the spatial axes where `F.interpolate` finds other samples.

`size` holds the new size of each spatial axis, or `scale` the factor; an entry None leaves the axis alone.
"""

from __future__ import annotations

import math

import torch


def resized_axes(x, size, scale):
    """(axis, old size, new size, step between samples) of every axis that is resized."""
    for axis, given in enumerate(size or scale, start=2):
        if given is not None:
            old = x.shape[axis]
            yield axis, old, math.floor(old * given) if scale else given, 1 / given if scale else None


def source_positions(x, old, new, step, coordinates):
    """Where the samples of an axis of `new` elements lie on the axis of `old` elements that they are made of."""
    position = torch.arange(new, dtype=x.dtype, device=x.device)
    if coordinates == "align_corners":
        return position * ((old - 1) / max(new - 1, 1))
    if coordinates == "asymmetric":
        return position * (old / new if step is None else step)
    centre = (position + 0.5) * (old / new if step is None else step) - 0.5
    if coordinates == "pytorch_half_pixel" and new <= 1:
        return torch.zeros_like(centre)
    if coordinates == "half_pixel_symmetric" and step is not None:
        return centre + old / 2 * (1 - new * step / old)
    return centre


def along(weights, axis, rank):
    """A vector made ready for a broadcast along an axis."""
    return weights.reshape(-1, *(1,) * (rank - 1 - axis))


def resize_nearest(x, size=None, scale=None, coordinates="half_pixel", rounding="round_prefer_floor"):
    """Each sample is its nearest neighbour. Halfway cases are found in float32, as `F.interpolate` does."""
    for axis, old, new, step in resized_axes(x, size, scale):
        if coordinates == "half_pixel" and rounding == "round_prefer_ceil":
            position = (source_positions(x, old, new, step, "half_pixel") + 0.5).float().floor()
        else:
            position = source_positions(x, old, new, step, coordinates).float()
        if rounding == "floor":
            position = position.floor()
        elif rounding == "ceil":
            position = position.ceil()
        elif rounding == "round_prefer_floor":
            position = (position - 0.5).ceil()
        elif coordinates != "half_pixel":
            position = (position + 0.5).floor()
        x = x.index_select(axis, position.long().clamp(0, old - 1))
    return x


def resize_linear(x, size=None, scale=None, coordinates="half_pixel"):
    """Linear interpolation; beyond its ends an axis goes on as it ends."""
    for axis, old, new, step in resized_axes(x, size, scale):
        position = source_positions(x, old, new, step, coordinates).clamp(0, old - 1)
        low = position.floor()
        share = along(position - low, axis, x.dim())
        low = low.long()
        high = (low + 1).clamp(max=old - 1)
        x = x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share
    return x


def resize_rounded(x, size):
    """Linear interpolation of whole numbers to whole numbers, in float32 whatever the model computes in.

    Every step is TensorFlow's own, so that samples halfway between two numbers become the same one.
    """
    y = x.float()
    for axis in range(len(size) + 1, 1, -1):
        old, new = x.shape[axis], size[axis - 2]
        if new is not None:
            position = (torch.arange(new, device=x.device).float() + 0.5) * (old / new) - 0.5
            low = position.floor()
            first = y.index_select(axis, low.long().clamp(min=0))
            second = y.index_select(axis, position.ceil().long().clamp(max=old - 1))
            y = first + (second - first) * along(position - low, axis, x.dim())
    return y.round()


def cubic_weight(distance, a):
    """Keys' kernel: the weight of a neighbour at a distance."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return torch.where(distance <= 1, near, torch.where(distance < 2, far, 0))


def resize_cubic(x, size=None, scale=None, coordinates="half_pixel", a=-0.75, exclude_outside=False):
    """Cubic interpolation; neighbours beyond an end repeat it, or do not count."""
    for axis, old, new, step in resized_axes(x, size, scale):
        position = source_positions(x, old, new, step, coordinates)
        low = position.floor()
        taps = [(low + offset, cubic_weight((position - low - offset).abs(), a)) for offset in (-1, 0, 1, 2)]
        if exclude_outside:
            taps = [(at, torch.where((at >= 0) & (at <= old - 1), weight, 0)) for at, weight in taps]
            total = sum(weight for _, weight in taps)
            taps = [(at, weight / total) for at, weight in taps]
        x = sum(x.index_select(axis, at.long().clamp(0, old - 1)) * along(weight, axis, x.dim()) for at, weight in taps)
    return x


def resize_antialiased(x, size=None, scale=None, a=None):
    """Linear interpolation, or cubic by `a`, with a kernel that widens as the axis shrinks.

    Neighbours beyond an end do not count.
    """
    for axis, old, new, step in resized_axes(x, size, scale):
        position = source_positions(x, old, new, step, "half_pixel")
        widening = max(old / new if step is None else step, 1)
        own = torch.arange(old, dtype=x.dtype, device=x.device)
        distance = (position.unsqueeze(1) - own).abs() / widening
        weights = torch.relu(1 - distance) if a is None else cubic_weight(distance, a)
        weights = weights / weights.sum(1, keepdim=True)
        x = torch.tensordot(x, weights, dims=([axis], [1])).movedim(-1, axis)
    return x
