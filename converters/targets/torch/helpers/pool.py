"""Pooling that PyTorch lacks."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def window_sum(x, size, stride, dilation=None):
    """The sum over each window along the spatial axes, one axis after the other."""
    for axis in range(len(size)):
        step = dilation[axis] if dilation else 1
        windows = x.unfold(axis + 2, (size[axis] - 1) * step + 1, stride[axis])
        x = windows[..., ::step].sum(-1)
    return x


def average_pool(x, size, stride, padding, counted=None, dilation=None):
    """The mean of each window over the elements inside the input and the `counted` part of its `padding`.

    Both paddings hold (begin, end) for each spatial axis.
    """
    counted = counted or ((0, 0),) * len(size)
    rest = [(p[0] - c[0], p[1] - c[1]) for p, c in zip(padding, counted, strict=True)]
    ones = F.pad(torch.ones_like(x[:1, :1]), [end for pair in reversed(counted) for end in pair], value=1)
    ones = F.pad(ones, [end for pair in reversed(rest) for end in pair])
    x = F.pad(x, [end for pair in reversed(padding) for end in pair])
    return window_sum(x, size, stride, dilation) / window_sum(ones, size, stride, dilation)


def pad_same(x, reach, stride, value=0.0, lower=False):
    """`value` around the spatial axes, so that a window of `reach` elements starts at every stride.

    An odd padding has its larger half behind, or with `lower` in front.
    """
    ends = []
    for length, extent, step in zip(x.shape[2:], reach, stride, strict=True):
        total = max((-(-length // step) - 1) * step + extent - length, 0)
        smaller = total // 2
        ends = [*((total - smaller, smaller) if lower else (smaller, total - smaller)), *ends]
    return F.pad(x, ends, value=value)


def max_pool_with_indices(x, kernel_size, ends=None, column_major=False, **arguments):
    """The maximum of each window and where it lies in the input as one row.

    `ends` are (begin, end) of a padding for each spatial axis; with `column_major` these count in reverse order.
    """
    sizes, before = x.shape[2:], [0] * (x.dim() - 2)
    padded = x
    if ends is not None:
        before = [begin for begin, _ in ends]
        padded = F.pad(x, [end for pair in reversed(ends) for end in pair], value=float("-inf"))
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[x.dim() - 3]
    values, flat = pool(padded, kernel_size, return_indices=True, **arguments)
    places = []
    for size, begin in zip(reversed(padded.shape[2:]), reversed(before), strict=True):
        places.insert(0, flat % size - begin)
        flat = flat // size
    index = torch.arange(x.shape[0] * x.shape[1], device=x.device).reshape(x.shape[:2] + (1,) * len(sizes))
    index = index * math.prod(sizes)
    for axis, place in enumerate(places):
        index = index + place * math.prod(sizes[:axis] if column_major else sizes[axis + 1 :])
    return values, index
