"""Layers of Keras whose `call` cannot run on symbolic tensors, in terms of layers and `keras.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from porter.converters.frontends.keras import internals

_rewrites: dict[str, Callable[..., Any]] = {}


def rewrite(*names: str) -> Callable:
    """Register what stands for the `call` of the Keras layers of these names."""

    def register(function: Callable) -> Callable:
        for name in names:
            _rewrites[name] = function
        return function

    return register


def find(layer: Any) -> Callable[..., Any] | None:
    """What stands for the layer's `call`, unless a class of the user's has one of its own."""
    line: Any = type(layer).__mro__
    for kind in line:
        if kind.__module__.startswith("keras."):
            return _rewrites.get(kind.__name__) if type(layer).call is kind.call else None
    return None


@rewrite("MultiHeadAttention", "GroupedQueryAttention")
def attention(layer: Any, *args: Any, **kwargs: Any) -> Any:
    """Keras spells its attention out where weights may drop out; outside training it is the one operation."""
    if kwargs.get("return_attention_scores"):
        return layer.call(*args, **kwargs)
    with internals.without_attention_dropout(layer):
        return layer.call(*args, **kwargs)


@rewrite("Softmax")
def softmax(layer: Any, inputs: Any, mask: Any = None) -> Any:
    """Where the mask says no, nothing; over several axes at once."""
    x = inputs
    if mask is not None:
        if keras.backend.standardize_dtype(mask.dtype) != "bool":
            mask = ops.greater(mask, 0.5)
        x = ops.where(mask, x, -3e4 if x.dtype == "float16" else -1e9)
    axes = layer.axis if isinstance(layer.axis, list | tuple) else [layer.axis]
    if len(axes) > 1:
        y = ops.exp(x - ops.logsumexp(x, axis=tuple(axes), keepdims=True))
    else:
        y = keras.activations.softmax(x, axis=axes[0])
    return y if mask is None else ops.where(mask, y, 0.0)


@rewrite("TimeDistributed")
def time_distributed(layer: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
    """Every step by itself: all steps of all examples as one batch."""
    shape = ops.shape(inputs)
    merged = ops.reshape(inputs, (-1, *shape[2:]))
    arguments = {}
    if mask is not None and layer.layer._call_has_mask_arg:
        arguments["mask"] = ops.reshape(mask, (-1, *ops.shape(mask)[2:]))
    outputs = layer.layer(merged, **arguments)
    return internals.mapped(lambda y: ops.reshape(y, (-1, shape[1], *ops.shape(y)[1:])), outputs)


@rewrite("Bidirectional")
def bidirectional(layer: Any, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = None) -> Any:
    """Both directions by themselves, then merged."""
    half = len(initial_state) // 2 if initial_state is not None else 0
    states = (initial_state[:half], initial_state[half:]) if half else (None, None)
    results = []
    for inner, state in zip((layer.forward_layer, layer.backward_layer), states, strict=True):
        arguments = {"mask": mask} if mask is not None and inner._call_has_mask_arg else {}
        results.append(inner(sequences, initial_state=state, **arguments))
    finals: tuple = ()
    if layer.return_state:
        finals = tuple(results[0][1:]) + tuple(results[1][1:])
        results = [result[0] for result in results]
    y, back = results
    if layer.return_sequences:
        back = ops.flip(back, axis=1)
    merged = _merged(layer.merge_mode, y, back)
    return merged if not layer.return_state else (*(merged if layer.merge_mode is None else (merged,)), *finals)


def _merged(mode: str | None, y: Any, back: Any) -> Any:
    match mode:
        case "concat":
            return ops.concatenate([y, back], axis=-1)
        case "sum":
            return y + back
        case "ave":
            return (y + back) / 2
        case "mul":
            return y * back
    return y, back


@rewrite("Resizing")
def resizing(layer: Any, data: Any, training: Any = None) -> Any:
    """TensorFlow resizes whole numbers as floats; the layer rounds what comes out."""
    if layer.interpolation == "nearest" or keras.backend.is_float_dtype(data.dtype):
        return _resized(layer, data)
    dtype = keras.backend.standardize_dtype(data.dtype)
    return ops.saturate_cast(ops.round(_resized(layer, ops.cast(data, "float32"))), dtype)


def _resized(layer: Any, images: Any) -> Any:
    return ops.image.resize(
        images,
        size=(layer.height, layer.width),
        interpolation=layer.interpolation,
        antialias=layer.antialias,
        data_format=layer.data_format,
        crop_to_aspect_ratio=layer.crop_to_aspect_ratio,
        pad_to_aspect_ratio=layer.pad_to_aspect_ratio,
        fill_mode=layer.fill_mode,
        fill_value=layer.fill_value,
    )
