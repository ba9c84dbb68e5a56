"""Normalisation and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from porter.converters.codegen.nodes import Expr, Ref, call, layer
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind, shortest
from porter.converters.targets.types import Float, Ints, Number, Tensor, Weight


def _all(w: Weight | None, number: float) -> bool:
    """Whether a scale or shift is a constant that does nothing; parameters and buffers are not, whatever they hold."""
    array = w.array() if w is not None else None
    return w is None or (array is not None and bool(np.all(array == number)))


def _axis(channel_axis: int, rank: int) -> int:
    """Keras people write the last axis as -1."""
    return -1 if channel_axis == rank - 1 else channel_axis


@keras_op("BatchNormalization", layout="axes")
def batch_normalization(
    x: Tensor,
    scale: Weight,
    b: Weight,
    mean: Weight,
    var: Weight,
    *,
    channel_axis: int,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Expr:
    if training_mode:
        raise CannotBind("training_mode=1: its statistics are those of the batch")
    scaled, centred = not _all(scale, 1), not _all(b, 0)
    return layer(
        "BatchNormalization",
        axis=_axis(channel_axis, x.rank),
        momentum=momentum,
        epsilon=epsilon,
        center=centred,
        scale=scaled,
        training=True,
        weights={
            "gamma": scale if scaled else None,
            "beta": b if centred else None,
            "moving_mean": mean,
            "moving_variance": var,
        },
    )(x)


def _along(vector: Expr, axis: int, rank: int) -> Expr:
    """A vector made ready for a broadcast along one axis."""
    return vector if axis == rank - 1 else call("ops.reshape", vector, (-1, *(1,) * (rank - 1 - axis)))


@keras_op("BatchNormalization", layout="axes")
def batch_normalization_functional(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    channel_axis: int,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Expr:
    """With statistics or scales that are computed or that others share: nothing is left to update."""
    if training_mode:
        raise CannotBind("training_mode=1: its statistics are those of the batch")
    return call(
        "ops.batch_normalization",
        x,
        mean,
        var,
        axis=_axis(channel_axis, x.rank),
        offset=b,
        scale=scale,
        epsilon=epsilon,
    )


@keras_op("BatchNormalization", layout="axes")
def batch_normalization_of_batch(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    outs: list[Ref],
    channel_axis: int,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Expr | tuple[Expr, ...]:
    """By the statistics of the batch also at inference; the running ones are results."""
    axes = tuple(axis for axis in range(x.rank) if axis != channel_axis)
    of_batch = [call(f"ops.{name}", x, axis=axes) for name in ("mean", "var")]
    y = call(
        "ops.batch_normalization",
        x,
        *of_batch,
        axis=_axis(channel_axis, x.rank),
        offset=b,
        scale=scale,
        epsilon=epsilon,
    )
    running = (old * momentum + new * (1 - momentum) for old, new in zip((mean, var), of_batch, strict=True))
    return (y, *running)[: len(outs)] if len(outs) > 1 else y


def _grouped(x: Tensor, groups: int, channel_axis: int, epsilon: float, scale: Weight | None, b: Weight | None) -> Expr:
    """Keras' layer, whose `groups=-1` is one group per channel. It computes in float32 or wider."""
    return layer(
        "GroupNormalization",
        groups=groups,
        axis=_axis(channel_axis, x.rank),
        epsilon=epsilon,
        center=b is not None,
        scale=scale is not None,
        weights={"gamma": scale, "beta": b},
    )(x)


def _unless(w: Weight, number: float) -> Weight | None:
    return None if _all(w, number) else w


@keras_op("InstanceNormalization", layout="axes")
def instance_normalization(x: Tensor, scale: Weight, b: Weight, *, channel_axis: int, epsilon: float = 1e-5) -> Expr:
    return _grouped(x, -1, channel_axis, epsilon, _unless(scale, 1), _unless(b, 0))


@keras_op("InstanceNormalization", layout="axes")
def instance_normalization_functional(
    x: Tensor, scale: Tensor, b: Tensor, *, channel_axis: int, epsilon: float = 1e-5
) -> Expr:
    """With a scale that is computed or that others share."""
    plain = _grouped(x, -1, channel_axis, epsilon, None, None)
    return plain * _along(scale, channel_axis, x.rank) + _along(b, channel_axis, x.rank)


@keras_op("GroupNormalization", layout="axes")
def group_normalization(
    x: Tensor,
    scale: Weight,
    b: Weight,
    *,
    channel_axis: int,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr:
    return _grouped(x, num_groups, channel_axis, epsilon, _unless(scale, 1), _unless(b, 0))


@keras_op("GroupNormalization", layout="axes")
def group_normalization_functional(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    *,
    channel_axis: int,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr:
    """With a scale that is computed or that others share."""
    plain = _grouped(x, num_groups, channel_axis, epsilon, None, None)
    return plain * _along(scale, channel_axis, x.rank) + _along(b, channel_axis, x.rank)


def _last_axes(axis: int, rank: int) -> tuple[int, ...]:
    return tuple(range(axis % rank - rank, 0))


def _axis_argument(axes: tuple[int, ...]) -> int | tuple[int, ...]:
    return axes[0] if len(axes) == 1 else axes


def _covers(x: Tensor, axes: tuple[int, ...], *weights: Weight | None) -> None:
    sizes = tuple(x.shape[axis] for axis in axes)
    if any(w is not None and w.shape != sizes for w in weights):
        raise CannotBind(f"a scale or shift whose shape is not {sizes}")


@keras_op("LayerNormalization", layout="fixed")
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
    """Keras computes in float32 or wider, as `stash_type` 1 asks."""
    if len(outs) > 1:
        raise CannotBind("the mean and the deviation are results too")
    axes = _last_axes(axis, x.rank)
    scaled, centred = not _all(scale, 1), not _all(b, 0)
    _covers(x, axes, scale if scaled else None, b if centred else None)
    return layer(
        "LayerNormalization",
        axis=_axis_argument(axes),
        epsilon=epsilon,
        center=centred,
        scale=scaled,
        weights={"gamma": scale if scaled else None, "beta": b if centred else None},
    )(x)


@keras_op("LayerNormalization", layout="fixed")
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
    """With a scale that is computed or that others share, or with the statistics as results."""
    over = {"axis": _axis_argument(_last_axes(axis, x.rank)), "keepdims": True}
    mean = call("ops.mean", x, **over)
    inverse = call("ops.rsqrt", call("ops.var", x, **over) + epsilon)
    y = (x - mean) * inverse * scale
    y = y if b is None else y + b
    return (y, mean, inverse)[: len(outs)] if len(outs) > 1 else y


@keras_op("RMSNormalization", layout="fixed")
def rms_normalization(x: Tensor, scale: Weight, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Expr:
    axes = _last_axes(axis, x.rank)
    if _all(scale, 1):
        return call("ops.rms_normalization", x, axis=_axis_argument(axes), epsilon=epsilon)
    _covers(x, axes, scale)
    return layer("RMSNormalization", axis=_axis_argument(axes), epsilon=epsilon, weights={"scale": scale})(x)


@keras_op("RMSNormalization", layout="fixed")
def rms_normalization_functional(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Expr:
    """With a scale that is computed or that others share."""
    return call("ops.rms_normalization", x, axis=_axis_argument(_last_axes(axis, x.rank)), epsilon=epsilon) * scale


@keras_op("LpNormalization", axes=["axis"])
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Expr:
    """ONNX leaves zeros where the norm is 0."""
    return call("ops.divide_no_nan", x, call("ops.norm", x, ord=p, axis=axis, keepdims=True))


@keras_op("MeanVarianceNormalization", axes=["axes"])
def mean_variance_normalization(x: Tensor, *, axes: Ints = (0, 2, 3)) -> Expr:
    """ONNX adds 1e-9 to the deviation, not to the variance."""
    over = {"axis": tuple(axes), "keepdims": True}
    return (x - call("ops.mean", x, **over)) / (call("ops.std", x, **over) + 1e-9)


@keras_op("Dropout", layout="axes")
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
        kept = call("keras.random.dropout", call("ops.ones_like", x), rate, seed=seed)
        return (x * kept, call("ops.greater", kept, 0)) if len(outs) > 1 else x * kept
    noise = training_facts.get("noise")
    y = _dropout_layer(x.rank, rate, noise, channel_axis)(x)
    return (y, call("ops.ones_like", x, dtype="bool")) if len(outs) > 1 else y


def _dropout_layer(rank: int, rate: float, noise: str | None, channel_axis: int) -> Any:
    if noise == "alpha":
        return layer("AlphaDropout", rate=rate, training=True)
    if noise == "channel" and rank in (3, 4, 5) and channel_axis == rank - 1:
        return layer(f"SpatialDropout{rank - 2}D", rate=rate, training=True)
    if noise == "channel":
        kept = tuple(None if axis in (0, channel_axis) else 1 for axis in range(rank))
        return layer("Dropout", rate=rate, noise_shape=kept, training=True)
    return layer("Dropout", rate=rate, training=True)
