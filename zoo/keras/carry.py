"""Copies the weights of a torch model into its hand-written Keras twin.

The twin has the attribute paths of the torch model, so the path finds the layer and the layer's type says how torch
stores the same weight.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
from torch import nn

_Convolution = keras.layers.Conv1D | keras.layers.Conv2D | keras.layers.Conv3D | keras.layers.Conv2DTranspose
_Normalization = keras.layers.BatchNormalization | keras.layers.LayerNormalization
_NORMALIZATION = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}


def carry(
    torch_model: nn.Module, keras_model: keras.Model, *, flattened: Mapping[str, tuple[int, int, int]] | None = None
) -> None:
    """Assign every parameter and running statistic of `torch_model` to the layer at the same path in `keras_model`.

    `flattened` names the linear layers that read a flattened feature map, with its (channels, height, width): torch
    flattens the channels first, Keras last.

    Raises ValueError when a path has no counterpart, or when a Keras weight was not reached.
    """
    flattened = flattened or {}
    reached: set[int] = set()
    for path, module in torch_model.named_modules():
        tensors = dict(_own_tensors(module))
        if not tensors:
            continue
        layer = find_layer(keras_model, path)
        for name, array in tensors.items():
            if path in flattened and name == "weight":
                array = _channels_last_columns(array, flattened[path])
            attribute, value = _translated(layer, name, array)
            variable = getattr(layer, attribute, None)
            if variable is None:
                raise ValueError(f"{path}.{name}: the twin's {type(layer).__name__} has no weight {attribute!r}")
            variable.assign(value)
            reached.add(id(variable))
    missed = [v.path for v in keras_model.weights if id(v) not in reached]
    if missed:
        raise ValueError(f"no torch weight for {', '.join(missed)}: does the twin have the same attribute paths?")


def find_layer(root: Any, path: str) -> Any:
    """The layer at a torch path such as `layer1.0.conv1`; numbers index lists and Sequential models.

    ZeroPadding2D is not counted: torch pads inside its convolution. Raises ValueError when there is nothing at `path`.
    """
    here = root
    for part in path.split(".") if path else ():
        try:
            if not part.isdigit():
                here = getattr(here, part)
                continue
            children = here.layers if isinstance(here, keras.Sequential) else here
            here = [child for child in children if not isinstance(child, keras.layers.ZeroPadding2D)][int(part)]
        except (AttributeError, IndexError, TypeError) as error:
            raise ValueError(f"{path}: the twin has no {part!r} in {type(here).__name__}") from error
    return here


def _own_tensors(module: nn.Module) -> Iterator[tuple[str, np.ndarray]]:
    for name, parameter in module.named_parameters(recurse=False):
        yield name, parameter.detach().numpy()
    for name, buffer in module.named_buffers(recurse=False):
        if name in _NORMALIZATION:
            yield name, buffer.numpy()


def _translated(layer: keras.layers.Layer, name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    """The Keras name and storage of one torch tensor."""
    if isinstance(layer, _Normalization):
        return _NORMALIZATION[name], array
    if name != "weight":
        return name, array
    if isinstance(layer, keras.layers.DepthwiseConv2D):
        return "kernel", array.transpose(2, 3, 0, 1)
    if isinstance(layer, _Convolution):
        # (out, in, *kernel) to (*kernel, in, out); a transposed convolution swaps in and out on both sides.
        return "kernel", np.moveaxis(array, (0, 1), (-1, -2))
    if isinstance(layer, keras.layers.Dense):
        return "kernel", array.T
    if isinstance(layer, keras.layers.Embedding):
        return "embeddings", array
    return name, array


def _channels_last_columns(weight: np.ndarray, feature_map: tuple[int, int, int]) -> np.ndarray:
    """The columns of a linear weight (out, channels * height * width) in the order (height, width, channels)."""
    return weight.reshape(-1, *feature_map).transpose(0, 2, 3, 1).reshape(weight.shape)
