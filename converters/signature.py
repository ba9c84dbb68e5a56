"""How a model is called: nested inputs of either framework as the flat arrays that a port takes, and back."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from porter.errors import InputError


def leaves(value: Any) -> Iterator[Any]:
    """Arrays and tensors of a nested value, in order; numbers, strings and None are settings, not inputs."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for item in value:
            yield from leaves(item)
    elif hasattr(value, "shape") and hasattr(value, "dtype"):
        yield value


def as_array(value: Any) -> np.ndarray:
    """A tensor of either framework as a numpy array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype).startswith(("torch.bfloat", "torch.float8")):
            return _small_floats(value)
        value = value.resolve_conj().resolve_neg()
    return np.asarray(value)


def _small_floats(tensor: Any) -> np.ndarray:
    """A torch tensor of a dtype that numpy knows only through ml_dtypes, bit for bit."""
    import ml_dtypes
    import torch

    bits = tensor.contiguous().view(torch.uint8 if tensor.itemsize == 1 else torch.uint16).numpy()
    return bits.view(getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch.")))


def ordered(inputs: Any, names: Sequence[str]) -> list[Any]:
    """Arguments in the order of `names`, whether they come by position or by keyword.

    Raises:
        InputError: too many, too few or unknown arguments.
    """
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        missing = [name for name in names if name not in inputs]
        if unknown or missing:
            what = f"there is no input {unknown[0]!r}" if unknown else f"the input {missing[0]!r} is missing"
            raise InputError(f"{what}: the model takes {', '.join(names)}")
        return [inputs[name] for name in names]
    items = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    if len(items) != len(names):
        raise InputError(f"{len(items)} input(s) given, the model takes {len(names)}: {', '.join(names)}")
    return items


def argument_names(forward: Callable[..., Any], inputs: Any) -> list[str]:
    """The names of the arguments that `inputs` gives to `forward`."""
    if isinstance(inputs, Mapping):
        return list(inputs)
    count = len(inputs) if isinstance(inputs, tuple | list) else 1
    known = [
        p.name
        for p in inspect.signature(forward).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return [known[i] if i < len(known) else f"argument_{i}" for i in range(count)]


def filled(template: Any, arrays: Iterator[Any]) -> Any:
    """`template` with its arrays replaced, in order."""
    if isinstance(template, Mapping):
        return type(template)({key: filled(item, arrays) for key, item in template.items()})  # type: ignore[call-arg]
    if dataclasses.is_dataclass(template) and not isinstance(template, type):
        return dataclasses.replace(
            template, **{f.name: filled(getattr(template, f.name), arrays) for f in dataclasses.fields(template)}
        )
    if isinstance(template, tuple) and hasattr(template, "_fields"):
        return type(template)(*(filled(item, arrays) for item in template))
    if isinstance(template, list | tuple):
        return type(template)(filled(item, arrays) for item in template)
    return next(arrays) if hasattr(template, "shape") and hasattr(template, "dtype") else template
