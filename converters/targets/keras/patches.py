"""Blocks that overlap, put together again."""

from __future__ import annotations

from porter.converters.codegen.nodes import Expr, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.types import Dims, Ints, Tensor


@keras_op("Col2Im", layout="fixed")
def col2im(
    x: Tensor, image_shape: Dims, block_shape: Ints, *, dilations: Ints = (), pads: Ints = (), strides: Ints = ()
) -> Expr:
    rank = len(block_shape)
    begins, ends = (pads[:rank], pads[rank:]) if pads else ((0,) * rank, (0,) * rank)
    padding = tuple(zip(begins, ends, strict=True)) if any(pads) else None
    holes = tuple(dilations) if any(number != 1 for number in dilations) else None
    return call(
        "fold", x, image_shape, tuple(block_shape), tuple(strides) or (1,) * rank, padding=padding, dilation_rate=holes
    )
