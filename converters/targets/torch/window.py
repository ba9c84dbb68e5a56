"""Sliding windows: how ONNX and PyTorch pad them, and how many of them there are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from porter.converters.codegen.nodes import Expr, call
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Ints, Tensor

Ends = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Window:
    """A window of convolution or pooling, one entry per spatial axis; `ends` are (begin, end) of the padding.

    `same` says that the source pads so that one window starts every stride, at whatever size comes; with `lower` the
    larger half of an odd padding comes first.
    """

    size: Ints
    strides: Ints
    ends: Ends
    dilations: Ints
    same: bool = False
    lower: bool = False

    @property
    def rank(self) -> int:
        return len(self.size)

    @property
    def reach(self) -> Ints:
        """From the first to the last element of a window, holes included."""
        return tuple((size - 1) * dilation + 1 for size, dilation in zip(self.size, self.dilations, strict=True))

    @property
    def dilated(self) -> bool:
        return any(dilation != 1 for dilation in self.dilations)

    @property
    def even(self) -> Ints | None:
        """The padding of every axis where both ends are alike."""
        return tuple(begin for begin, _ in self.ends) if all(begin == end for begin, end in self.ends) else None

    @property
    def bare(self) -> Window:
        """The window over what is padded already."""
        return replace(self, ends=((0, 0),) * self.rank, same=False, lower=False)

    def overhang(self, shape: tuple[int | str, ...], ceil_mode: int) -> Ints:
        """What to add at the end of every axis so that floor counts the windows that `ceil_mode` counts.

        A last window may hang over the padded end but must start before the end padding does. Where the size is known
        and the windows fit, nothing is added.
        """
        if not ceil_mode:
            return (0,) * self.rank
        found = []
        for size, stride, reach, (begin, end) in zip(shape[2:], self.strides, self.reach, self.ends, strict=True):
            extra = min(end + stride - 1, reach - 1) - end
            if isinstance(size, int) and extra > 0:
                rest = (size + begin + end - reach) % stride
                extra = stride - rest if rest and stride - rest <= extra else 0
            found.append(max(extra, 0))
        return tuple(found)


def window(
    size: Ints, strides: Ints, pads: Ints, dilations: Ints, auto_pad: str, shape: tuple[int | str, ...]
) -> Window:
    """A window from a node's attributes, absent ones at their defaults.

    Raises:
        CannotBind: more axes than PyTorch has layers for.
    """
    rank = len(size)
    if rank > 3:
        raise CannotBind(f"{rank} spatial axes, PyTorch has layers for at most 3")
    pads = tuple(pads) or (0,) * (2 * rank)
    ends = tuple(zip(pads[:rank], pads[rank:], strict=True))
    made = Window(tuple(size), tuple(strides) or (1,) * rank, ends, tuple(dilations) or (1,) * rank)
    if auto_pad in ("NOTSET", ""):
        return made
    if auto_pad == "VALID":
        return made.bare
    lower = auto_pad == "SAME_LOWER"
    found = _same_ends(made, lower, shape)
    return replace(made, ends=found) if found is not None else replace(made.bare, same=True, lower=lower)


def _same_ends(over: Window, lower: bool, shape: tuple[int | str, ...]) -> Ends | None:
    """The padding that one window every stride asks for; None where it depends on a size that varies."""
    ends = []
    for length, stride, reach in zip(shape[2:], over.strides, over.reach, strict=True):
        if stride == 1:
            total = reach - 1
        elif isinstance(length, int):
            total = max(0, (-(-length // stride) - 1) * stride + reach - length)
        else:
            return None
        small, large = total // 2, total - total // 2
        ends.append((large, small) if lower else (small, large))
    return tuple(ends)


def padded_with(x: Expr, ends: Ends, value: float = 0) -> Expr:
    """`value` around the spatial axes; PyTorch counts them from the last one."""
    if not any(begin or end for begin, end in ends):
        return x
    flat = tuple(side for pair in reversed(ends) for side in pair)
    return call("F.pad", x, flat, value=value or None)


def explicit(x: Tensor, over: Window, value: float = 0) -> tuple[Expr, Window]:
    """`x` with all of its padding, and the window that needs no more of it."""
    if over.same:
        given = {"value": value or None, "lower": over.lower or None}
        return call("pad_same", x, over.reach, over.strides, **given), over.bare
    return padded_with(x, over.ends, value), over.bare


def one(values: Ints) -> int | Ints:
    """(3, 3) as 3."""
    return values[0] if len(set(values)) == 1 else values


def unless(value: object, default: object) -> object:
    """None, which `call` leaves out, for what a function assumes anyway."""
    return None if value == default else value
