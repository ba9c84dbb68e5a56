"""What a row of the Keras tables is: a layer or operation, and the inputs that it is tried with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int | None, ...]
# What an open size is, in the three trials of a row; the tracer sees none of them.
OPEN = (6, 9, 7)


@dataclass(frozen=True)
class Spec:
    """One input without its batch axis: sizes, None where they are open, dtype, and how numbers are drawn."""

    shape: Shape
    dtype: str = "float64"
    low: float = -2.0
    high: float = 2.0

    def draw(self, batch: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """An example with `size` for every open size."""
        shape = (batch, *(size if n is None else n for n in self.shape))
        if self.dtype == "bool":
            return rng.random(shape) < 0.6
        if self.dtype.startswith("float"):
            return rng.uniform(self.low, self.high, shape).astype(self.dtype)
        return rng.integers(int(self.low), int(self.high), shape).astype(self.dtype)


@dataclass(frozen=True)
class Row:
    """`make()` gives the layer, or the function of `keras.ops`, that is called on inputs of these specs.

    `call` says how, where it is not `made(*inputs)`. `rtol` is larger than the tables' for what TensorFlow computes in
    float32 whatever it is given.
    """

    name: str
    make: Callable[[], Any]
    specs: tuple[Spec, ...]
    call: Callable[..., Any] | None = None
    rtol: float = 1e-9

    def outputs(self, made: Any, inputs: list[Any]) -> Any:
        """What the made thing gives for inputs."""
        return self.call(made, *inputs) if self.call is not None else made(*inputs)


def floats(*shape: int | None, low: float = -2.0, high: float = 2.0) -> Spec:
    """Float64 numbers of both signs."""
    return Spec(shape, "float64", low, high)


def positive(*shape: int | None) -> Spec:
    """Float64 numbers from 0.1 to 1."""
    return Spec(shape, "float64", 0.1, 1.0)


def ints(*shape: int | None, low: int = 0, high: int = 5, dtype: str = "int32") -> Spec:
    """Whole numbers from low up to high, that excluded."""
    return Spec(shape, dtype, low, high)


def flags(*shape: int | None) -> Spec:
    """Booleans."""
    return Spec(shape, "bool")


def layer(make: Callable[[], Any], *specs: Spec, call: Callable[..., Any] | None = None, rtol: float = 1e-9) -> Row:
    """A row for a layer."""
    return Row("", make, specs, call, rtol)


def operation(function: Callable[..., Any], *specs: Spec, rtol: float = 1e-9) -> Row:
    """A row for functions of `keras.ops`."""
    return Row("", lambda: function, specs, None, rtol)


def together(made: Any, *inputs: Any) -> Any:
    """Called on a list, as merging layers are."""
    return made(list(inputs))
