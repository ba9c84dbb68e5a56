"""Blocks of pixels to and from channels. Images are (batch, height, width, channels)."""

from __future__ import annotations

from keras import ops


def pixel_shuffle(x, factor):
    """Channels counted as (depth, row, column) become blocks of `factor` x `factor` pixels: torch's order."""
    _, height, width, channels = ops.shape(x)
    depth = channels // factor**2
    x = ops.reshape(x, (-1, height, width, depth, factor, factor))
    x = ops.transpose(x, (0, 1, 4, 2, 5, 3))
    return ops.reshape(x, (-1, height * factor, width * factor, depth))


def depth_to_space(x, factor):
    """Channels counted as (row, column, depth) become blocks of `factor` x `factor` pixels."""
    _, height, width, channels = ops.shape(x)
    depth = channels // factor**2
    x = ops.reshape(x, (-1, height, width, factor, factor, depth))
    x = ops.transpose(x, (0, 1, 3, 2, 4, 5))
    return ops.reshape(x, (-1, height * factor, width * factor, depth))


def space_to_depth(x, factor):
    """Blocks of `factor` x `factor` pixels become channels counted as (row, column, depth)."""
    _, height, width, channels = ops.shape(x)
    height, width = height // factor, width // factor
    x = ops.reshape(x, (-1, height, factor, width, factor, channels))
    x = ops.transpose(x, (0, 1, 3, 2, 4, 5))
    return ops.reshape(x, (-1, height, width, factor**2 * channels))
