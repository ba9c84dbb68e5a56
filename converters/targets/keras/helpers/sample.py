"""Sampling of channels-last tensors at the positions of a grid, as torch's `grid_sample` does.

A grid is (batch, …, n) with positions in x, y[, z] order, -1 … 1 from one end of an axis to the other.
"""

from __future__ import annotations

from keras import ops

from porter.converters.targets.keras.helpers.resize import cubic_weight


def grid_positions(grid, sizes, align_corners):
    """The grid's positions as positions on each spatial axis, in the order of the axes."""
    positions = []
    for axis, size in enumerate(sizes):
        unit = grid[..., len(sizes) - 1 - axis]
        size = ops.cast(size, grid.dtype)
        positions.append((unit + 1) / 2 * (size - 1) if align_corners else ((unit + 1) * size - 1) / 2)
    return positions


def folded_positions(position, size, padding, align_corners):
    """Positions outside an axis moved to its end ("border") or mirrored there ("reflection")."""
    last = ops.cast(size - 1, position.dtype)
    if padding == "reflection":
        start = 0.0 if align_corners else -0.5
        span = ops.maximum(last, 1) if align_corners else last + 1
        turn = ops.mod(position - start, 2 * span)
        position = ops.minimum(turn, 2 * span - turn) + start
    return position if padding == "zeros" else ops.clip(position, 0, last)


def values_at(x, positions):
    """The elements of `x` at whole positions (one tensor per spatial axis), 0 outside."""
    sizes = ops.shape(x)[1:-1]
    index = ops.reshape(ops.arange(ops.shape(x)[0], dtype="int32"), (-1,) + (1,) * len(sizes))
    inside = True
    for position, size in zip(positions, sizes, strict=True):
        last = ops.cast(size - 1, position.dtype)
        inside = ops.logical_and(inside, ops.logical_and(position >= 0, position <= last))
        index = index * size + ops.cast(ops.clip(position, 0, last), "int32")
    values = ops.take(ops.reshape(x, (-1, ops.shape(x)[-1])), index, axis=0)
    return ops.where(ops.expand_dims(inside, -1), values, ops.zeros_like(values))


def grid_sample(x, grid, padding="zeros", align_corners=False):
    """Linear samples of `x`."""
    sizes = ops.shape(x)[1:-1]
    positions = grid_positions(grid, sizes, align_corners)
    positions = [folded_positions(p, s, padding, align_corners) for p, s in zip(positions, sizes, strict=True)]
    lows = [ops.floor(position) for position in positions]
    parts = []
    for corner in range(2 ** len(sizes)):
        steps = [corner >> axis & 1 for axis in range(len(sizes))]
        weight = 1
        for position, low, step in zip(positions, lows, steps, strict=True):
            weight = weight * (position - low if step else low + 1 - position)
        values = values_at(x, [low + step for low, step in zip(lows, steps, strict=True)])
        parts.append(values * ops.expand_dims(weight, -1))
    return sum(parts[1:], parts[0])


def grid_sample_nearest(x, grid, padding="zeros", align_corners=False):
    """The elements of `x` nearest to the grid's positions."""
    sizes = ops.shape(x)[1:-1]
    positions = grid_positions(grid, sizes, align_corners)
    positions = [folded_positions(p, s, padding, align_corners) for p, s in zip(positions, sizes, strict=True)]
    return values_at(x, [ops.round(position) for position in positions])


def grid_sample_cubic(x, grid, padding="zeros", align_corners=False):
    """Cubic samples of images, Keys' kernel with a = -0.75."""
    sizes = ops.shape(x)[1:-1]
    rows, columns = grid_positions(grid, sizes, align_corners)
    parts = []
    for down in (-1, 0, 1, 2):
        for right in (-1, 0, 1, 2):
            row, column = ops.floor(rows) + down, ops.floor(columns) + right
            weight = cubic_weight(ops.abs(rows - row), -0.75) * cubic_weight(ops.abs(columns - column), -0.75)
            row = folded_positions(row, sizes[0], padding, align_corners)
            column = folded_positions(column, sizes[1], padding, align_corners)
            parts.append(values_at(x, [ops.round(row), ops.round(column)]) * ops.expand_dims(weight, -1))
    return sum(parts[1:], parts[0])


def affine_grid(theta, size, align_corners=False):
    """The grid of an affine map for an image or volume of `size`; `theta` is (batch, n, n + 1)."""
    ends = []
    for length in size:
        steps = ops.arange(length, dtype=theta.dtype)
        length = ops.cast(length, theta.dtype)
        if align_corners:
            ends.append(ops.where(length > 1, 2 * steps / ops.maximum(length - 1, 1) - 1, ops.zeros_like(steps)))
        else:
            ends.append((2 * steps + 1) / length - 1)
    axes = ops.meshgrid(*ends, indexing="ij")
    base = ops.stack([*reversed(axes), ops.ones_like(axes[0])], axis=-1)
    flat = ops.matmul(ops.reshape(base, (-1, len(size) + 1)), ops.transpose(theta, (0, 2, 1)))
    return ops.reshape(flat, (-1, *size, len(size)))
