"""What rules return: expressions over values, layers and sizes. They are data; only the printer makes text of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from porter.converters import weights as wx


class Expr:
    """Any expression of the target language; Python's operators on it make larger ones."""

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return ()

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        """The same expression over other subexpressions."""
        return self

    def __add__(self, other: Any) -> Expr:
        return Binary("+", self, wrap(other))

    def __radd__(self, other: Any) -> Expr:
        return Binary("+", wrap(other), self)

    def __sub__(self, other: Any) -> Expr:
        return Binary("-", self, wrap(other))

    def __rsub__(self, other: Any) -> Expr:
        return Binary("-", wrap(other), self)

    def __mul__(self, other: Any) -> Expr:
        return Binary("*", self, wrap(other))

    def __rmul__(self, other: Any) -> Expr:
        return Binary("*", wrap(other), self)

    def __truediv__(self, other: Any) -> Expr:
        return Binary("/", self, wrap(other))

    def __rtruediv__(self, other: Any) -> Expr:
        return Binary("/", wrap(other), self)

    def __floordiv__(self, other: Any) -> Expr:
        return Binary("//", self, wrap(other))

    def __pow__(self, other: Any) -> Expr:
        return Binary("**", self, wrap(other))

    def __neg__(self) -> Expr:
        return Unary("-", self)

    def __getitem__(self, items: Any) -> Expr:
        return Index(self, tuple(wrap(item) for item in (items if isinstance(items, tuple) else (items,))))


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything below it."""
    yield expr
    for child in expr.children():
        yield from walk(child)


def transform(expr: Expr, change: Any) -> Expr:
    """Bottom-up rewrite: `change(node)` gives the node's replacement, or None to keep it."""
    children = expr.children()
    new = tuple(transform(child, change) for child in children)
    if any(a is not b for a, b in zip(children, new, strict=True)):
        expr = expr.rebuilt(new)
    replaced = change(expr)
    return expr if replaced is None else replaced


@dataclass(frozen=True, eq=False)
class Ref(Expr):
    """A value of the graph."""

    value: ir.Value

    @property
    def shape(self) -> tuple[int | str, ...]:
        """Sizes, symbolic ones as expressions."""
        return dims(self.value)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> ir.DataType:
        assert self.value.dtype is not None
        return self.value.dtype


def dims(value: ir.Value) -> tuple[int | str, ...]:
    """A value's shape with ints and symbolic expressions (an unknown size is "?")."""
    assert value.shape is not None, f"{value.name} has no shape"
    return tuple(d if isinstance(d, int) else (d.value or "?") for d in value.shape)


@dataclass(frozen=True)
class Literal(Expr):
    """A Python value that prints as source: number, string, None, slice, dtype name, nested lists."""

    value: Any


@dataclass(frozen=True)
class Verbatim(Expr):
    """A name of the target's own (`keras.ops`, an inf), never text that came from a model."""

    text: str


@dataclass(frozen=True)
class Ambient(Expr):
    """What a class computes in, its "dtype" or its "device", read from a value in scope when the body is printed."""

    kind: str


@dataclass(frozen=True)
class Member(Expr):
    """`base.name`: a fact of a tensor that every tensor has."""

    base: Expr
    name: str

    def children(self) -> tuple[Expr, ...]:
        return (self.base,)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Member(children[0], self.name)


@dataclass(frozen=True)
class Size(Expr):
    """A symbolic size, found in scope when the body is printed."""

    expression: str


@dataclass(frozen=True)
class Items(Expr):
    """A tuple (or list) of expressions."""

    items: tuple[Expr, ...]
    brackets: str = "()"

    def children(self) -> tuple[Expr, ...]:
        return self.items

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return replace(self, items=children)


@dataclass(frozen=True)
class Call(Expr):
    """`func(*args, **kwargs)`; `func` is a dotted name of the target or a helper's name, or a method of the first
    argument (".sum").
    """

    func: str
    args: tuple[Expr, ...]
    kwargs: tuple[tuple[str, Expr], ...] = ()

    def children(self) -> tuple[Expr, ...]:
        return (*self.args, *(value for _, value in self.kwargs))

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        count = len(self.args)
        names = [name for name, _ in self.kwargs]
        return replace(self, args=children[:count], kwargs=tuple(zip(names, children[count:], strict=True)))


@dataclass(frozen=True)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Binary(self.op, *children)


@dataclass(frozen=True)
class Unary(Expr):
    op: str
    operand: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Unary(self.op, *children)


@dataclass(frozen=True)
class Index(Expr):
    """`base[items]`; a Literal slice prints as `a:b`."""

    base: Expr
    items: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        return (self.base, *self.items)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Index(children[0], children[1:])


@dataclass(frozen=True)
class Slice(Expr):
    """`start:stop:step` inside an index, of expressions or None."""

    bounds: tuple[Expr, Expr, Expr]

    def children(self) -> tuple[Expr, ...]:
        return self.bounds

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Slice((children[0], children[1], children[2]))


@dataclass(frozen=True)
class Weight(Expr):
    """A parameter, buffer or large constant, with how it is stored.

    `constants` are the values of those of its sources that are no parameters of the source model.
    """

    expr: wx.WeightExpr
    dtype: ir.DataType
    kind: str = "parameter"
    trainable: bool = True
    constants: Mapping[str, np.ndarray] = field(default_factory=dict, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.expr.shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def spatial(self) -> tuple[int, ...]:
        """The kernel sizes of a convolution's weight."""
        return self.shape[2:]

    def with_expr(self, expr: wx.WeightExpr) -> Weight:
        """Another part or form of it; what is made of constants alone is a constant."""
        if self.kind != "constant" and set(expr.sources()) <= set(self.constants):
            return replace(self, expr=expr, kind="constant", trainable=False)
        return replace(self, expr=expr)

    def moved(self, pattern: str) -> Weight:
        """Axes re-ordered by letters: `"OI*->*IO"`, the star standing for all that are left."""
        before, after = pattern.split("->")
        star = self.rank - len(before.replace("*", ""))
        axes: dict[str, list[int]] = {}
        position = 0
        for letter in before:
            count = star if letter == "*" else 1
            axes[letter] = list(range(position, position + count))
            position += count
        return self.transposed([axis for letter in after for axis in axes[letter]])

    def transposed(self, perm: list[int]) -> Weight:
        return self.with_expr(wx.transpose(self.expr, perm))

    def reshaped(self, *shape: int) -> Weight:
        return self.with_expr(wx.reshape(self.expr, shape))

    def sliced(self, axis: int, start: int, stop: int) -> Weight:
        return self.with_expr(wx.slice_(self.expr, axis, start, stop))

    def joined(self, others: list[Weight], axis: int) -> Weight:
        """This weight and `others` along an axis."""
        return joint([self, *others], wx.concat([self.expr, *(other.expr for other in others)], axis))

    def array(self) -> np.ndarray | None:
        """The value of a constant; None for parameters and buffers, whose values must not shape the source."""
        if not set(self.expr.sources()) <= set(self.constants):
            return None
        return self.expr.evaluate(self.constants)


def joint(parts: Sequence[Weight], expr: wx.WeightExpr) -> Weight:
    """What `expr` makes of several weights: a parameter, unless all of them are of another kind."""
    kinds = {part.kind for part in parts}
    return Weight(
        expr,
        parts[0].dtype,
        kinds.pop() if len(kinds) == 1 else "parameter",
        any(part.trainable for part in parts),
        {name: array for part in parts for name, array in part.constants.items()},
    ).with_expr(expr)


@dataclass(frozen=True)
class Nested(Expr):
    """What gives its values in groups: `(1, 2)` is one value and a pair, unpacked as `a, (b, c)`."""

    operand: Expr
    groups: tuple[int, ...]

    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Nested(children[0], self.groups)

    def targets(self, names: list[str]) -> str:
        """The names as they stand before the equals sign."""
        parts, rest = [], list(names)
        for count in self.groups:
            group, rest = rest[:count], rest[count:]
            parts.append(group[0] if count == 1 else "_" if set(group) == {"_"} else f"({', '.join(group)})")
        return ", ".join(parts)


@dataclass(frozen=True)
class Layer:
    """A layer object: class, constructor arguments, and where its variables come from.

    `name` is a suffix for a second layer that one source module becomes (`pad`, `l1`); `inner` are layers that are
    constructor arguments (what Bidirectional wraps); `takes_training` says that it does something else in training.
    """

    cls: str
    kwargs: tuple[tuple[str, Any], ...] = ()
    weights: tuple[tuple[str, Weight], ...] = ()
    name: str = ""
    takes_training: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Apply:
        return Apply(self, tuple(wrap(a) for a in args), tuple((k, wrap(v)) for k, v in kwargs.items()))


@dataclass(frozen=True)
class Apply(Expr):
    """A layer applied to arguments."""

    layer: Layer
    args: tuple[Expr, ...]
    kwargs: tuple[tuple[str, Expr], ...] = ()

    def children(self) -> tuple[Expr, ...]:
        return (*self.args, *(value for _, value in self.kwargs))

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        count = len(self.args)
        names = [name for name, _ in self.kwargs]
        return replace(self, args=children[:count], kwargs=tuple(zip(names, children[count:], strict=True)))


def wrap(value: Any) -> Expr:
    """Python values as expressions; tuples and lists item by item."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, slice) and any(isinstance(part, Expr) for part in (value.start, value.stop, value.step)):
        return Slice((wrap(value.start), wrap(value.stop), wrap(value.step)))
    if isinstance(value, tuple | list):
        items = tuple(wrap(item) for item in value)
        if any(isinstance(item, Expr) for item in value) or not all(isinstance(item, Literal) for item in items):
            return Items(items, "()" if isinstance(value, tuple) else "[]")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return Literal(value)


def call(func: str, *args: Any, **kwargs: Any) -> Call:
    """A function call; arguments that are None are left out."""
    given = tuple((name, wrap(value)) for name, value in kwargs.items() if value is not None)
    return Call(func, tuple(wrap(arg) for arg in args), given)


def layer(
    cls: str, *, weights: dict[str, Weight | None] | None = None, name: str = "", training: bool = False, **kwargs: Any
) -> Layer:
    """A layer; weights and arguments that are None are left out."""
    kept = tuple((slot, weight) for slot, weight in (weights or {}).items() if weight is not None)
    return Layer(cls, tuple((key, value) for key, value in kwargs.items() if value is not None), kept, name, training)
