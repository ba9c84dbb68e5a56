"""Weight expressions: how a target tensor is made of source tensors, how to evaluate that, and how to undo it.

Only structural steps occur (transpose, reshape, slice, concatenation, flip), so every number of the target is a number
of the source. Expressions are simplified as they are made: slices sink to the sources, neighbouring slices rejoin,
transposes compose: LSTM gates re-ordered for ONNX and back for Keras read `transpose(weight_ih_l0)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from porter.errors import WeightsError

Shape = tuple[int, ...]


@dataclass(frozen=True)
class WeightExpr:
    """A tensor of `shape` computed from source tensors."""

    shape: Shape

    def evaluate(self, sources: Mapping[str, np.ndarray]) -> np.ndarray:
        """The tensor's value; views are returned where numpy can, so nothing is copied needlessly."""
        raise NotImplementedError

    def restore(self, value: np.ndarray, sources: dict[str, np.ndarray]) -> None:
        """Write `value`, an array of this expression's shape, into the `sources` that it came from."""
        raise NotImplementedError

    def leaves(self) -> list[Source]:
        """The boxes of source tensors that it is made of."""
        raise NotImplementedError

    def sources(self) -> dict[str, Shape]:
        """The source tensors that occur, with their shapes."""
        return {leaf.name: leaf.full for leaf in self.leaves()}

    def to_json(self) -> Any:
        """A JSON form that `from_json` reads."""
        raise NotImplementedError


@dataclass(frozen=True)
class Source(WeightExpr):
    """A tensor of the source model by name, or a box of it: `box` holds (start, stop) of every axis."""

    name: str
    full: Shape
    box: tuple[tuple[int, int], ...]

    @property
    def whole(self) -> bool:
        return self.box == tuple((0, size) for size in self.full)

    def evaluate(self, sources: Mapping[str, np.ndarray]) -> np.ndarray:
        if self.name not in sources:
            raise WeightsError(f"the source tensor {self.name!r} is missing")
        array = np.asarray(sources[self.name])
        if np.iscomplexobj(array) and (*array.shape, 2) == self.full:  # ports hold (real, imaginary) as a last axis
            array = np.stack([array.real, array.imag], axis=-1)
        if tuple(array.shape) != self.full:
            raise WeightsError(
                f"the source tensor {self.name!r} has shape {list(array.shape)}, the port needs {list(self.full)}"
            )
        return array[tuple(slice(*bounds) for bounds in self.box)]

    def restore(self, value: np.ndarray, sources: dict[str, np.ndarray]) -> None:
        if self.name not in sources:
            sources[self.name] = np.zeros(self.full, value.dtype)
        sources[self.name][tuple(slice(*bounds) for bounds in self.box)] = value

    def leaves(self) -> list[Source]:
        return [self]

    def to_json(self) -> Any:
        found: dict[str, Any] = {"source": self.name, "shape": list(self.full)}
        if not self.whole:
            found["slice"] = [list(bounds) for bounds in self.box]
        return found


@dataclass(frozen=True)
class Transpose(WeightExpr):
    inner: WeightExpr
    perm: tuple[int, ...]

    def evaluate(self, sources: Mapping[str, np.ndarray]) -> np.ndarray:
        return self.inner.evaluate(sources).transpose(self.perm)

    def restore(self, value: np.ndarray, sources: dict[str, np.ndarray]) -> None:
        self.inner.restore(value.transpose(np.argsort(self.perm)), sources)

    def leaves(self) -> list[Source]:
        return self.inner.leaves()

    def to_json(self) -> Any:
        return {"transpose": self.inner.to_json(), "perm": list(self.perm)}


@dataclass(frozen=True)
class Reshape(WeightExpr):
    inner: WeightExpr

    def evaluate(self, sources: Mapping[str, np.ndarray]) -> np.ndarray:
        return self.inner.evaluate(sources).reshape(self.shape)

    def restore(self, value: np.ndarray, sources: dict[str, np.ndarray]) -> None:
        self.inner.restore(value.reshape(self.inner.shape), sources)

    def leaves(self) -> list[Source]:
        return self.inner.leaves()

    def to_json(self) -> Any:
        return {"reshape": self.inner.to_json(), "shape": list(self.shape)}


@dataclass(frozen=True)
class Concat(WeightExpr):
    parts: tuple[WeightExpr, ...]
    axis: int

    def evaluate(self, sources: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.concatenate([part.evaluate(sources) for part in self.parts], axis=self.axis)

    def restore(self, value: np.ndarray, sources: dict[str, np.ndarray]) -> None:
        stops = np.cumsum([part.shape[self.axis] for part in self.parts])[:-1]
        for part, piece in zip(self.parts, np.split(value, stops, axis=self.axis), strict=True):
            part.restore(piece, sources)

    def leaves(self) -> list[Source]:
        return [leaf for part in self.parts for leaf in part.leaves()]

    def to_json(self) -> Any:
        return {"concat": [part.to_json() for part in self.parts], "axis": self.axis}


@dataclass(frozen=True)
class Flip(WeightExpr):
    inner: WeightExpr
    axes: tuple[int, ...]

    def evaluate(self, sources: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.flip(self.inner.evaluate(sources), self.axes)

    def restore(self, value: np.ndarray, sources: dict[str, np.ndarray]) -> None:
        self.inner.restore(np.flip(value, self.axes), sources)

    def leaves(self) -> list[Source]:
        return self.inner.leaves()

    def to_json(self) -> Any:
        return {"flip": self.inner.to_json(), "axes": list(self.axes)}


def source(name: str, shape: Sequence[int]) -> WeightExpr:
    """A whole tensor of the source model."""
    full = tuple(int(size) for size in shape)
    return Source(full, name, full, tuple((0, size) for size in full))


def transpose(x: WeightExpr, perm: Sequence[int]) -> WeightExpr:
    """numpy's transpose."""
    perm = tuple(int(axis) for axis in perm)
    if perm == tuple(range(len(perm))):
        return x
    shape = tuple(x.shape[axis] for axis in perm)
    if isinstance(x, Transpose):
        return transpose(x.inner, [x.perm[axis] for axis in perm])
    moving = [axis for axis in perm if x.shape[axis] != 1]
    if moving == sorted(moving):
        return reshape(x, shape)
    return Transpose(shape, x, perm)


def reshape(x: WeightExpr, shape: Sequence[int]) -> WeightExpr:
    """numpy's reshape; one size may be -1."""
    shape = tuple(int(size) for size in shape)
    if -1 in shape:
        known = prod(size for size in shape if size != -1)
        shape = tuple(prod(x.shape) // max(known, 1) if size == -1 else size for size in shape)
    if shape == x.shape:
        return x
    if isinstance(x, Reshape):
        return reshape(x.inner, shape)
    if isinstance(x, Concat):
        distributed = _reshape_parts(x, shape)
        if distributed is not None:
            return distributed
    return Reshape(shape, x)


def _without_ones(shape: Shape) -> list[int]:
    return [size for size in shape if size != 1]


def _reshape_parts(x: Concat, shape: Shape) -> WeightExpr | None:
    """A reshape that only adds or removes axes of size one passes through a concatenation."""
    if _without_ones(x.shape) != _without_ones(shape) or x.shape[x.axis] == 1:
        return None
    position = len(_without_ones(x.shape[: x.axis]))
    axis = [index for index, size in enumerate(shape) if size != 1][position]
    parts = [reshape(part, [*shape[:axis], part.shape[x.axis], *shape[axis + 1 :]]) for part in x.parts]
    return concat(parts, axis)


def slice_(x: WeightExpr, axis: int, start: int, stop: int) -> WeightExpr:
    """`x[start:stop]` along one axis, sunk to the sources."""
    size = x.shape[axis]
    start, stop = max(0, start), min(size, stop)
    if (start, stop) == (0, size):
        return x
    shape = (*x.shape[:axis], stop - start, *x.shape[axis + 1 :])
    if isinstance(x, Source):
        base = x.box[axis][0]
        box = (*x.box[:axis], (base + start, base + stop), *x.box[axis + 1 :])
        return Source(shape, x.name, x.full, box)
    if isinstance(x, Transpose):
        return transpose(slice_(x.inner, x.perm[axis], start, stop), x.perm)
    if isinstance(x, Concat):
        if axis != x.axis:
            return concat([slice_(part, axis, start, stop) for part in x.parts], x.axis)
        parts, offset = [], 0
        for part in x.parts:
            low, high = max(start - offset, 0), min(stop - offset, part.shape[axis])
            if low < high:
                parts.append(slice_(part, axis, low, high))
            offset += part.shape[axis]
        return concat(parts, axis)
    if isinstance(x, Reshape) and _without_ones(x.shape) == _without_ones(x.inner.shape) and size != 1:
        position = len(_without_ones(x.shape[:axis]))
        inner_axis = [index for index, extent in enumerate(x.inner.shape) if extent != 1][position]
        return reshape(slice_(x.inner, inner_axis, start, stop), shape)
    if isinstance(x, Reshape) and axis == 0 and x.inner.shape:
        per_row, inner_row = prod(x.shape[1:]), max(prod(x.inner.shape[1:]), 1)
        if start * per_row % inner_row == 0 and stop * per_row % inner_row == 0:
            return reshape(slice_(x.inner, 0, start * per_row // inner_row, stop * per_row // inner_row), shape)
    raise WeightsError("a slice of a reshaped weight has no structural form")


def concat(parts: Sequence[WeightExpr], axis: int) -> WeightExpr:
    """Joined along an axis; neighbouring boxes of one tensor rejoin."""
    merged: list[WeightExpr] = []
    for part in [
        p for outer in parts for p in (outer.parts if isinstance(outer, Concat) and outer.axis == axis else [outer])
    ]:
        joined = _rejoin(merged[-1], part, axis) if merged else None
        if joined is not None:
            merged[-1] = joined
        else:
            merged.append(part)
    if len(merged) == 1:
        return merged[0]
    shape = (*merged[0].shape[:axis], sum(part.shape[axis] for part in merged), *merged[0].shape[axis + 1 :])
    return Concat(shape, tuple(merged), axis)


def _rejoin(a: WeightExpr, b: WeightExpr, axis: int) -> WeightExpr | None:
    if isinstance(a, Source) and isinstance(b, Source) and a.name == b.name:
        apart = [i for i in range(len(a.box)) if a.box[i] != b.box[i]]
        if apart == [axis] and a.box[axis][1] == b.box[axis][0]:
            box = (*a.box[:axis], (a.box[axis][0], b.box[axis][1]), *a.box[axis + 1 :])
            shape = tuple(stop - start for start, stop in box)
            return Source(shape, a.name, a.full, box)
    if isinstance(a, Transpose) and isinstance(b, Transpose) and a.perm == b.perm:
        inner = _rejoin(a.inner, b.inner, a.perm[axis])
        return transpose(inner, a.perm) if inner is not None else None
    return None


def flip(x: WeightExpr, axes: Sequence[int]) -> WeightExpr:
    """numpy's flip."""
    axes = tuple(sorted(axis % len(x.shape) for axis in axes if x.shape[axis] != 1))
    if not axes:
        return x
    if isinstance(x, Flip):
        left = set(x.axes) ^ set(axes)
        return Flip(x.shape, x.inner, tuple(sorted(left))) if left else x.inner
    return Flip(x.shape, x, axes)


def from_json(data: Any) -> WeightExpr:
    """Read what `to_json` wrote.

    Raises:
        WeightsError: the data is no weight expression.
    """
    match data:
        case {"source": str(name), "shape": list(full), "slice": list(box)}:
            bounds = tuple((int(a), int(b)) for a, b in box)
            return Source(tuple(b - a for a, b in bounds), name, tuple(full), bounds)
        case {"source": str(name), "shape": list(full)}:
            return source(name, full)
        case {"transpose": inner, "perm": list(perm)}:
            return transpose(from_json(inner), perm)
        case {"reshape": inner, "shape": list(shape)}:
            return reshape(from_json(inner), shape)
        case {"concat": list(parts), "axis": int(axis)}:
            return concat([from_json(part) for part in parts], axis)
        case {"flip": inner, "axes": list(axes)}:
            return flip(from_json(inner), axes)
    raise WeightsError(f"port.json holds no weight expression where one is needed: {str(data)[:80]}")
