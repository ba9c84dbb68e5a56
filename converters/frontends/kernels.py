"""ONNX operators computed in float64, written from the standard for the check of a translation.

ONNX's own reference implementation serves for the rest. These are here because it is slow on them (convolutions,
pooling, scattering) or because it leaks float32 (normalisation, GELU). Each takes the attributes that the node has and
the inputs as arrays (None for one left out), and returns the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

Array = Any  # np.ndarray, or None for an input left out
Attributes = dict[str, Any]
Kernel = Callable[..., tuple[np.ndarray, ...]]

KERNELS: dict[str, Kernel] = {}


def kernel(function: Kernel) -> Kernel:
    """Register a kernel under the operator's name."""
    KERNELS[function.__name__] = function
    return function


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def _padded(x: torch.Tensor, begins: list[int], ends: list[int], value: float = 0.0) -> torch.Tensor:
    flat = [size for pair in zip(reversed(begins), reversed(ends), strict=True) for size in pair]
    return F.pad(x, flat, value=value) if any(flat) else x


def _spatial(
    attributes: Attributes, sizes: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Strides, dilations, leading pads, trailing pads over axes of these sizes."""
    rank = len(sizes)
    strides = list(attributes.get("strides", [1] * rank))
    dilations = list(attributes.get("dilations", [1] * rank))
    how = attributes.get("auto_pad", "NOTSET")
    if how in ("SAME_UPPER", "SAME_LOWER"):
        spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
        totals = [max((-(-n // s) - 1) * s + span - n, 0) for n, s, span in zip(sizes, strides, spans, strict=True)]
        small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
        return strides, dilations, *((small, large) if how == "SAME_UPPER" else (large, small))
    pads = list(attributes.get("pads", [0] * (2 * rank))) if how == "NOTSET" else [0] * (2 * rank)
    return strides, dilations, pads[:rank], pads[rank:]


@kernel
def Conv(attributes: Attributes, x: Array, w: Array, b: Array = None) -> tuple[np.ndarray, ...]:
    rank = w.ndim - 2
    strides, dilations, begins, ends = _spatial(attributes, x.shape[2:], w.shape[2:])
    run = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    bias = None if b is None else _tensor(b)
    x, even = _tensor(x), begins == ends
    x = x if even else _padded(x, begins, ends)
    return (run(x, _tensor(w), bias, strides, begins if even else 0, dilations, attributes.get("group", 1)).numpy(),)


@kernel
def ConvTranspose(attributes: Attributes, x: Array, w: Array, b: Array = None) -> tuple[np.ndarray, ...]:
    """The full product, extended by output_padding at the end, then cropped by the pads."""
    if "output_shape" in attributes or attributes.get("auto_pad", "NOTSET") != "NOTSET":
        raise NotImplementedError("output_shape, or padding that follows from it")
    rank = w.ndim - 2
    strides, dilations, begins, ends = _spatial(attributes, x.shape[2:], w.shape[2:])
    run = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    y = run(_tensor(x), _tensor(w), None, strides, 0, 0, attributes.get("group", 1), dilations)
    extra = list(attributes.get("output_padding", [0] * rank))
    y = _padded(y, [-size for size in begins], [more - size for more, size in zip(extra, ends, strict=True)])
    return ((y if b is None else y + _tensor(b).reshape(-1, *[1] * rank)).numpy(),)


@kernel
def Gemm(attributes: Attributes, a: Array, b: Array, c: Array = None) -> tuple[np.ndarray, ...]:
    a = a.T if attributes.get("transA") else a
    b = b.T if attributes.get("transB") else b
    y = attributes.get("alpha", 1.0) * (a @ b)
    return (y if c is None else y + attributes.get("beta", 1.0) * c,)


def _pool_extent(attributes: Attributes, x: np.ndarray) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Kernel, strides, dilations, leading pads and the trailing pads that the last window reaches."""
    size = list(attributes["kernel_shape"])
    strides, dilations, begins, ends = _spatial(attributes, x.shape[2:], tuple(size))
    reached = []
    for n, k, s, d, lead, trail in zip(x.shape[2:], size, strides, dilations, begins, ends, strict=True):
        span = n + lead + trail - (d * (k - 1) + 1)
        count = (math.ceil(span / s) if attributes.get("ceil_mode") else span // s) + 1
        if attributes.get("ceil_mode") and (count - 1) * s >= n + lead:
            count -= 1  # a window that would start in the trailing padding
        reached.append((count - 1) * s + d * (k - 1) + 1 - n - lead)
    return size, strides, dilations, begins, reached


@kernel
def MaxPool(attributes: Attributes, x: Array) -> tuple[np.ndarray, ...]:
    size, strides, dilations, begins, ends = _pool_extent(attributes, x)
    padded = _padded(_tensor(x).double(), begins, ends, -math.inf)
    run = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(size) - 1]
    return (run(padded, size, strides, 0, dilations).numpy().astype(x.dtype),)


@kernel
def AveragePool(attributes: Attributes, x: Array) -> tuple[np.ndarray, ...]:
    size, strides, dilations, begins, reached = _pool_extent(attributes, x)
    if any(d != 1 for d in dilations):
        raise NotImplementedError("dilated average pool")
    run = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[len(size) - 1]
    counted = torch.ones(1, 1, *x.shape[2:], dtype=torch.float64)
    given = _spatial(attributes, x.shape[2:], tuple(size))[3]
    inside = [min(end, pad) for end, pad in zip(reached, given, strict=True)]
    counted = _padded(counted, begins, inside, float(attributes.get("count_include_pad", 0)))
    counted = _padded(counted, [0] * len(size), [a - b for a, b in zip(reached, inside, strict=True)])
    total = run(_padded(_tensor(x), begins, reached), size, strides)
    return ((total / run(counted, size, strides)).numpy(),)


def _normalized(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + epsilon)


def _channels(parameter: np.ndarray, rank: int) -> np.ndarray:
    return parameter.reshape(-1, *[1] * (rank - 2))


@kernel
def BatchNormalization(
    attributes: Attributes, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> tuple[np.ndarray, ...]:
    if attributes.get("training_mode"):
        raise NotImplementedError("batch statistics")
    scale, bias, mean, var = (_channels(p, x.ndim) for p in (scale, bias, mean, var))
    return ((x - mean) / np.sqrt(var + attributes.get("epsilon", 1e-5)) * scale + bias,)


@kernel
def InstanceNormalization(attributes: Attributes, x: Array, scale: Array, bias: Array) -> tuple[np.ndarray, ...]:
    y = _normalized(x, tuple(range(2, x.ndim)), attributes.get("epsilon", 1e-5))
    return (y * _channels(scale, x.ndim) + _channels(bias, x.ndim),)


@kernel
def GroupNormalization(attributes: Attributes, x: Array, scale: Array, bias: Array) -> tuple[np.ndarray, ...]:
    groups = x.reshape(x.shape[0], attributes["num_groups"], -1)
    y = _normalized(groups, (2,), attributes.get("epsilon", 1e-5)).reshape(x.shape)
    return (y * _channels(scale, x.ndim) + _channels(bias, x.ndim),)


@kernel
def LayerNormalization(attributes: Attributes, x: Array, scale: Array, bias: Array = None) -> tuple[np.ndarray, ...]:
    axes = tuple(range(attributes.get("axis", -1) % x.ndim, x.ndim))
    y = _normalized(x, axes, attributes.get("epsilon", 1e-5)) * scale
    return (y if bias is None else y + bias,)


@kernel
def RMSNormalization(attributes: Attributes, x: Array, scale: Array) -> tuple[np.ndarray, ...]:
    axes = tuple(range(attributes.get("axis", -1) % x.ndim, x.ndim))
    return (x / np.sqrt((x * x).mean(axes, keepdims=True) + attributes.get("epsilon", 1e-5)) * scale,)


@kernel
def LRN(attributes: Attributes, x: Array) -> tuple[np.ndarray, ...]:
    size, channels = attributes["size"], x.shape[1]
    before = (size - 1) // 2
    squares = np.stack([(x[:, max(c - before, 0) : c - before + size] ** 2).sum(1) for c in range(channels)], axis=1)
    scale = attributes.get("bias", 1.0) + attributes.get("alpha", 1e-4) / size * squares
    return (x / scale ** attributes.get("beta", 0.75),)


@kernel
def Gelu(attributes: Attributes, x: Array) -> tuple[np.ndarray, ...]:
    if attributes.get("approximate", "none") == "tanh":
        return (0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),)
    return (0.5 * x * (1 + torch.erf(_tensor(x / math.sqrt(2))).numpy()),)


@kernel
def Erf(attributes: Attributes, x: Array) -> tuple[np.ndarray, ...]:
    return (torch.erf(_tensor(x)).numpy(),)


@kernel
def GatherElements(attributes: Attributes, x: Array, index: Array) -> tuple[np.ndarray, ...]:
    axis = attributes.get("axis", 0) % x.ndim
    return (x[_places(index, axis, x.shape)],)


def _places(index: np.ndarray, axis: int, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    places: list[np.ndarray] = list(np.indices(index.shape, sparse=True))
    places[axis] = np.where(index < 0, index + shape[axis], index)
    return tuple(places)


_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(x: np.ndarray, places: tuple[np.ndarray, ...], updates: np.ndarray, reduction: str) -> np.ndarray:
    y = x.copy()
    if reduction == "none":
        y[places] = updates
    else:
        _REDUCTIONS[reduction].at(y, places, updates)
    return y


@kernel
def ScatterElements(attributes: Attributes, x: Array, index: Array, updates: Array) -> tuple[np.ndarray, ...]:
    axis = attributes.get("axis", 0) % x.ndim
    return (_scatter(x, _places(index, axis, x.shape), updates, attributes.get("reduction", "none")),)


@kernel
def GatherND(attributes: Attributes, x: Array, index: Array) -> tuple[np.ndarray, ...]:
    if attributes.get("batch_dims", 0):
        raise NotImplementedError("batch_dims")
    return (x[tuple(np.moveaxis(index, -1, 0))],)


@kernel
def ScatterND(attributes: Attributes, x: Array, index: Array, updates: Array) -> tuple[np.ndarray, ...]:
    return (_scatter(x, tuple(np.moveaxis(index, -1, 0)), updates, attributes.get("reduction", "none")),)


@kernel
def AffineGrid(attributes: Attributes, theta: Array, size: Array) -> tuple[np.ndarray, ...]:
    aligned = bool(attributes.get("align_corners", 0))
    return (F.affine_grid(_tensor(theta), [int(n) for n in size], align_corners=aligned).numpy(),)


@kernel
def GridSample(attributes: Attributes, x: Array, grid: Array) -> tuple[np.ndarray, ...]:
    modes = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
    sampled = F.grid_sample(
        _tensor(x),
        _tensor(grid),
        modes[attributes.get("mode", "linear")],
        attributes.get("padding_mode", "zeros"),
        bool(attributes.get("align_corners", 0)),
    )
    return (sampled.numpy(),)
