"""Layers of Keras whose `call` cannot run on symbolic tensors, in terms of layers and `keras.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from porter.converters.frontends.keras import internals, running
from porter.converters.frontends.keras.symbolic import Size
from porter.errors import UnsupportedError

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
    """Keras spells its attention out where weights may drop out; outside training it is the one operation.

    But for queries that see no key: spelled out they get nothing, so masks keep it so.
    """
    masks = ("query_mask", "value_mask", "key_mask", "attention_mask")
    masked = any(kwargs.get(name) is not None for name in masks) or internals.mask_of(args[0]) is not None
    if kwargs.get("return_attention_scores") or masked or len(args) > 3:
        return layer.call(*args, **kwargs)
    with running.without_attention_dropout(layer):
        return layer.call(*args, **kwargs)


@rewrite("Discretization")
def discretization(layer: Any, *args: Any, **kwargs: Any) -> Any:
    """The boundaries as an array."""
    with running.with_array(layer, "bin_boundaries"):
        return layer.call(*args, **kwargs)


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


@rewrite("RNN", "LSTM", "GRU", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")
def unrolled(layer: Any, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = None) -> Any:
    """A recurrent layer without an operation of its own: its cell, once for every step.

    Raises:
        UnsupportedError: the number of steps varies, or the layer keeps its state between calls.
    """
    if layer.stateful:
        raise UnsupportedError(
            f"{layer.name}: stateful=True keeps the state between calls; pass initial_state and set stateful=False"
        )
    steps = ops.shape(sequences)[1]
    if isinstance(steps, Size):
        raise UnsupportedError(
            f"{layer.name}: {type(layer.cell).__name__} over a number of steps that varies; fix it in keras.Input, "
            "or with --static"
        )
    states = initial_state
    if states is None:
        states = layer.get_initial_state(batch_size=ops.shape(sequences)[0])
    states = list(states) if isinstance(states, list | tuple) else [states]
    outputs: list[Any] = []
    for step in reversed(range(steps)) if layer.go_backwards else range(steps):
        output, new = layer.cell(sequences[:, step], states)
        new = list(new) if isinstance(new, list | tuple) else [new]
        if mask is not None:
            keep = mask[:, step]
            before = outputs[-1] if outputs and not layer.zero_output_for_mask else ops.zeros_like(output)
            output = _chosen(keep, output, before)
            new = internals.mapped_together(lambda a, b, keep=keep: _chosen(keep, a, b), new, states)
        outputs.append(output)
        states = new
    result = ops.stack(outputs, axis=1) if layer.return_sequences else outputs[-1]
    return (result, *states) if layer.return_state else result


def _chosen(keep: Any, value: Any, other: Any) -> Any:
    """`value` for the examples that keep, else `other`."""
    return ops.where(ops.reshape(keep, (-1, *[1] * (len(value.shape) - 1))), value, other)


@rewrite("CategoryEncoding")
def category_encoding(layer: Any, inputs: Any, count_weights: Any = None) -> Any:
    """Classes as ones at their places, or how often each stands in an example."""
    dtype = layer.compute_dtype
    numbers = ops.cast(inputs, "int32")
    if layer.output_mode == "one_hot":
        single = len(numbers.shape) > 1 and numbers.shape[-1] == 1
        return ops.one_hot(ops.squeeze(numbers, -1) if single else numbers, layer.num_tokens, dtype=dtype)
    ones = ops.one_hot(numbers, layer.num_tokens, dtype=dtype)
    axis = -2 if len(numbers.shape) > 1 else 0
    if layer.output_mode == "multi_hot":
        return ops.max(ones, axis=axis)
    if count_weights is not None:
        ones = ones * ops.expand_dims(ops.cast(count_weights, dtype), -1)
    return ops.sum(ones, axis=axis)
