"""Normalisation and dropout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters.codegen.nodes import Binary, Expr, Literal, Ref, Size, call, layer
from porter.converters.targets.table import CannotBind, shortest
from porter.converters.targets.torch import torch_op
from porter.converters.targets.torch.cast import dtype_of
from porter.converters.targets.types import Float, Ints, Number, Tensor, Weight

_BATCH = "training_mode=1: its statistics are those of the batch"


def _all(w: Weight | None, number: float) -> bool:
    """Whether a scale or shift is a constant that does nothing; parameters and buffers are not, whatever they hold."""
    array = w.array() if w is not None else None
    return w is None or (array is not None and bool(np.all(array == number)))


def _affine(scale: Weight | None, b: Weight | None) -> dict[str, Weight | None] | None:
    """What a layer that has a scale and a shift, or neither, holds; a constant one is held and frozen."""
    if _all(scale, 1) and _all(b, 0):
        return None
    if scale is None or b is None:
        raise CannotBind("a scale without a shift, or a shift without a scale")
    return {"weight": scale, "bias": b}


@torch_op("BatchNormalization", layout="spatial")
def batch_normalization(
    x: Tensor,
    scale: Weight,
    b: Weight,
    mean: Weight,
    var: Weight,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    training_facts: Mapping[str, Any],
) -> Expr:
    """PyTorch's momentum weighs the new statistics. Its running variance is unbiased, that of others may not be."""
    if training_mode:
        raise CannotBind(_BATCH)
    if not 2 <= x.rank <= 5:
        raise CannotBind(f"a batch norm of {x.rank} axes")
    affine = _affine(scale, b)
    return layer(
        f"nn.BatchNorm{max(x.rank - 2, 1)}d",
        num_features=mean.shape[0],
        eps=epsilon,
        momentum=round(1 - momentum, 10),
        affine=affine is not None,
        training=True,
        weights={**(affine or {}), "running_mean": mean, "running_var": var},
    )(x)


@torch_op("BatchNormalization", layout="spatial")
def batch_normalization_functional(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Expr:
    """With statistics or scales that are computed or that others share: nothing is left to update."""
    if training_mode:
        raise CannotBind(_BATCH)
    return call("F.batch_norm", x, mean, var, scale, b, eps=epsilon)


@torch_op("BatchNormalization", layout="spatial")
def batch_normalization_of_batch(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    outs: list[Ref],
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Expr | tuple[Expr, ...]:
    """By the statistics of the batch also at inference; the running ones are results."""
    y = call("F.batch_norm", x, None, None, scale, b, training=True, eps=epsilon)
    if len(outs) == 1:
        return y
    axes = (0, *range(2, x.rank))
    of_batch = (call(".mean", x, axes), call(".var", x, axes, correction=0))
    running = (old * momentum + new * (1 - momentum) for old, new in zip((mean, var), of_batch, strict=True))
    return (y, *running)[: len(outs)]


def _channels(x: Tensor, *weights: Weight | None) -> int:
    size = next((w.shape[0] for w in weights if w is not None), x.shape[1])
    if not isinstance(size, int):
        raise CannotBind("a number of channels that varies")
    return size


@torch_op("InstanceNormalization", layout="spatial")
def instance_normalization(x: Tensor, scale: Weight, b: Weight, *, epsilon: float = 1e-5) -> Expr:
    if not 3 <= x.rank <= 5:
        raise CannotBind(f"an instance norm of {x.rank} axes")
    affine = _affine(scale, b)
    channels = _channels(x, scale, b)
    return layer(
        f"nn.InstanceNorm{x.rank - 2}d", num_features=channels, eps=epsilon, affine=affine is not None, weights=affine
    )(x)


@torch_op("InstanceNormalization", layout="spatial")
def instance_normalization_functional(x: Tensor, scale: Tensor, b: Tensor, *, epsilon: float = 1e-5) -> Expr:
    """With a scale that is computed or that others share."""
    return call("F.instance_norm", x, weight=scale, bias=b, eps=epsilon)


@torch_op("GroupNormalization", layout="spatial")
def group_normalization(
    x: Tensor, scale: Weight, b: Weight, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Expr:
    affine = _affine(scale, b)
    channels = _channels(x, scale, b)
    return layer(
        "nn.GroupNorm",
        num_groups=num_groups,
        num_channels=channels,
        eps=epsilon,
        affine=affine is not None,
        weights=affine,
    )(x)


@torch_op("GroupNormalization", layout="spatial")
def group_normalization_functional(
    x: Tensor, scale: Tensor, b: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Expr:
    """With a scale that is computed or that others share."""
    return call("F.group_norm", x, num_groups, scale, b, eps=epsilon)


def _sizes(x: Tensor, axis: int, *weights: Weight | None) -> tuple[int, ...]:
    """The sizes of the last axes; a scale or shift must have just these."""
    known = next((w.shape for w in weights if w is not None), None)
    sizes = known if known is not None and len(known) == x.rank - axis % x.rank else x.shape[axis % x.rank :]
    if not all(isinstance(size, int) for size in sizes):
        raise CannotBind(f"a norm over sizes {sizes}, which vary")
    if any(w is not None and w.shape != tuple(sizes) for w in weights):
        raise CannotBind(f"a scale or shift whose shape is not {sizes}")
    return tuple(int(size) for size in sizes)


def _shape(sizes: tuple[int, ...]) -> int | tuple[int, ...]:
    return sizes[0] if len(sizes) == 1 else sizes


@torch_op("LayerNormalization", layout="fixed")
def layer_normalization(
    x: Tensor,
    scale: Weight,
    b: Weight | None = None,
    *,
    outs: list[Ref],
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr:
    if len(outs) > 1:
        raise CannotBind("the mean and the deviation are results too")
    plain = _all(scale, 1) and _all(b, 0)
    shift = None if _all(b, 0) else b
    sizes = _sizes(x, axis, None if plain else scale, shift)
    return layer(
        "nn.LayerNorm",
        normalized_shape=_shape(sizes),
        eps=epsilon,
        elementwise_affine=not plain,
        bias=True if plain else shift is not None,
        weights=None if plain else {"weight": scale, "bias": shift},
    )(x)


@torch_op("LayerNormalization", layout="fixed")
def layer_normalization_functional(
    x: Tensor,
    scale: Tensor,
    b: Tensor | None = None,
    *,
    outs: list[Ref],
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr | tuple[Expr, ...]:
    """With a scale that is computed, or broadcast, or with the statistics as results."""
    axes = tuple(range(axis % x.rank - x.rank, 0))
    if len(outs) == 1:
        sizes = tuple(Size(size) if isinstance(size, str) else size for size in x.shape[axis % x.rank :])
        y = call("F.layer_norm", x, sizes, eps=epsilon) * scale
        return y if b is None else y + b
    mean = call(".mean", x, axes, keepdim=True)
    inverse = call("torch.rsqrt", call(".var", x, axes, correction=0, keepdim=True) + epsilon)
    y = (x - mean) * inverse * scale
    return (y if b is None else y + b, mean, inverse)[: len(outs)]


@torch_op("RMSNormalization", layout="fixed")
def rms_normalization(x: Tensor, scale: Weight, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Expr:
    plain = _all(scale, 1)
    sizes = _sizes(x, axis, None if plain else scale)
    weights = None if plain else {"weight": scale}
    return layer(
        "nn.RMSNorm", normalized_shape=_shape(sizes), eps=epsilon, elementwise_affine=not plain, weights=weights
    )(x)


@torch_op("RMSNormalization", layout="fixed")
def rms_normalization_functional(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Expr:
    """With a scale that is computed, or broadcast."""
    sizes = tuple(Size(size) if isinstance(size, str) else size for size in x.shape[axis % x.rank :])
    return call("F.rms_norm", x, sizes, eps=epsilon) * scale


@torch_op("LpNormalization", axes=["axis"])
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Expr:
    """ONNX leaves zeros where the norm is 0."""
    norm = call("torch.linalg.vector_norm", x, p, dim=axis, keepdim=True)
    return x / call(".masked_fill", norm, Binary("==", norm, Literal(0)), 1)


@torch_op("MeanVarianceNormalization", axes=["axes"])
def mean_variance_normalization(x: Tensor, *, axes: Ints = (0, 2, 3)) -> Expr:
    """ONNX adds 1e-9 to the deviation, not to the variance."""
    over = tuple(axes)
    deviation = call(".std", x, over, correction=0, keepdim=True)
    return (x - call(".mean", x, over, keepdim=True)) / (deviation + 1e-9)


@torch_op("Dropout", layout="axes")
def dropout(
    x: Tensor,
    ratio: Float | None = None,
    training_mode: Number | None = None,
    *,
    outs: list[Ref],
    training_facts: dict,
    channel_axis: int,
    seed: int | None = None,
) -> Expr | tuple[Expr, ...]:
    """Nothing at inference. What it drops in training (single numbers or whole channels) is no fact of ONNX.

    With `training_mode` it drops at inference too; which numbers is up to each framework's generator.
    """
    rate = 0.5 if ratio is None else shortest(float(ratio))
    if training_mode:
        kept = call("F.dropout", call("torch.ones_like", x), rate)
        return (x * kept, Binary(">", kept, Literal(0))) if len(outs) > 1 else x * kept
    if "noise_shape" in training_facts:
        raise CannotBind(f"PyTorch has no Dropout with a noise_shape, here {training_facts['noise_shape']}")
    noise = training_facts.get("noise")
    swapped = noise == "channel" and channel_axis != 1
    given: Expr = call(".transpose", x, 1, channel_axis) if swapped else x
    y: Expr = _dropout_layer(x.rank, rate, noise)(given)
    y = call(".transpose", y, 1, channel_axis) if swapped else y
    return (y, call("torch.ones_like", x, dtype=dtype_of(ir.DataType.BOOL))) if len(outs) > 1 else y


def _dropout_layer(rank: int, rate: float, noise: str | None) -> Any:
    if noise == "alpha":
        return layer("nn.AlphaDropout", p=rate, training=True)
    if noise == "channel" and rank in (3, 4, 5):
        return layer(f"nn.Dropout{rank - 2}d", p=rate, training=True)
    if noise == "channel" and rank != 2:
        raise CannotBind(f"whole channels dropped of {rank} axes")
    return layer("nn.Dropout", p=rate, training=True)
