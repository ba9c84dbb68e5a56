"""Blocks that overlap, put together again."""

from __future__ import annotations

import math

from keras import ops


def fold(x, image_size, block_size, strides, padding=None, dilation_rate=None):
    """The sum of blocks where they overlap: (batch, channels · block, blocks) to (batch, channels, …).

    `padding` holds (begin, end) of every spatial axis of the image: what of the blocks lies there is left out.
    """
    rank = len(block_size)
    padding, dilation_rate = padding or ((0, 0),) * rank, dilation_rate or (1,) * rank
    axes = list(zip(image_size, block_size, strides, padding, dilation_rate, strict=True))
    counts = [
        (size + begin + end - (block - 1) * dilation - 1) // stride + 1
        for size, block, stride, (begin, end), dilation in axes
    ]
    x = ops.reshape(x, (-1, ops.shape(x)[1] // math.prod(block_size), *block_size, *counts))
    for number, (size, block, stride, (begin, _), dilation) in enumerate(axes):
        inside, starts = ops.arange(block, dtype="int32"), ops.arange(counts[number], dtype="int32") * stride - begin
        places = ops.expand_dims(ops.expand_dims(inside * dilation, 1) + starts, 2)
        weights = ops.cast(places == ops.arange(size, dtype="int32"), x.dtype)
        x = ops.tensordot(x, weights, axes=[[2, 2 + rank - number], [0, 1]])
    return x
