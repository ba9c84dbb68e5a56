"""Blocks of pixels to and from channels, in TensorFlow's order of channels."""

from __future__ import annotations


def depth_to_space(x, factor):
    """Channels counted as (row, column, depth) become blocks of `factor` x `factor` pixels."""
    batch, channels, height, width = x.shape
    x = x.reshape(batch, factor, factor, channels // factor**2, height, width)
    return x.permute(0, 3, 4, 1, 5, 2).reshape(batch, -1, height * factor, width * factor)


def space_to_depth(x, factor):
    """Blocks of `factor` x `factor` pixels become channels counted as (row, column, depth)."""
    batch, channels, height, width = x.shape
    x = x.reshape(batch, channels, height // factor, factor, width // factor, factor)
    return x.permute(0, 3, 5, 1, 2, 4).reshape(batch, -1, height // factor, width // factor)
