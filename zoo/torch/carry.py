"""Copies the weights of a Keras model into its hand-written torch twin: the counterpart of `porter.zoo.keras.carry`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import torch
from torch import nn

_NORMALIZATION = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}


def carry(
    keras_model: keras.Model,
    torch_model: nn.Module,
    layer_of: Callable[[str], keras.layers.Layer],
    *,
    flattened: Mapping[str, tuple[int, int, int]] | None = None,
) -> None:
    """Assign every weight of the Keras layer `layer_of(path)` to the module at `path` of `torch_model`.

    `flattened` names the linear modules that read a flattened feature map, with its (channels, height, width): Keras
    flattens the channels last, torch first.

    Raises ValueError when a weight has no counterpart, or when a Keras weight was not reached.
    """
    flattened = flattened or {}
    reached: set[int] = set()
    for path, module in weighted_modules(torch_model):
        layer = layer_of(path)
        for variable in layer.weights:
            value = variable.numpy()
            if path in flattened and variable.name == "kernel":
                value = _channels_first_rows(value, flattened[path])
            name, value = _translated(module, variable.name, value)
            tensor = getattr(module, name, None)
            if tensor is None or tuple(tensor.shape) != value.shape:
                raise ValueError(f"{path}: {type(module).__name__} has no {name} {value.shape} for {variable.path}")
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(value))
            reached.add(id(variable))
    missed = [variable.path for variable in keras_model.weights if id(variable) not in reached and _is_weight(variable)]
    if missed:
        raise ValueError(f"no module of the twin takes {', '.join(missed)}")


def weighted_modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """(path, module) of every module that has parameters of its own, in the order of definition."""
    return (
        (path, module)
        for path, module in model.named_modules()
        if next(module.parameters(recurse=False), None) is not None
    )


def _is_weight(variable: Any) -> bool:
    return "seed_generator" not in variable.path


def _translated(module: nn.Module, name: str, value: np.ndarray) -> tuple[str, np.ndarray]:
    """The torch name and storage of one Keras weight."""
    if isinstance(module, nn.BatchNorm2d):
        return _NORMALIZATION[name], value
    if name == "bias":
        return name, value
    if isinstance(module, nn.Conv2d) and module.groups > 1:
        # A depthwise kernel (height, width, in, 1): torch has one filter for each channel.
        return "weight", np.ascontiguousarray(value.transpose(2, 3, 0, 1))
    if isinstance(module, nn.Conv2d):
        return "weight", np.ascontiguousarray(value.transpose(3, 2, 0, 1))
    if isinstance(module, nn.Linear):
        return "weight", np.ascontiguousarray(value.T)
    raise ValueError(f"no rule says how a {type(module).__name__} stores {name}")


def _channels_first_rows(kernel: np.ndarray, feature_map: tuple[int, int, int]) -> np.ndarray:
    """The rows of a dense kernel (height * width * channels, out) in the order (channels, height, width)."""
    channels, height, width = feature_map
    return kernel.reshape(height, width, channels, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
