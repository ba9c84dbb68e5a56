"""Sliding windows: how ONNX and Keras pad them, and how many of them there are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from porter.converters.codegen.nodes import Expr, call, layer
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Ints, Tensor


@dataclass(frozen=True)
class Window:
    """A window of convolution or pooling, one entry per spatial axis; `pads` holds the begins, then the ends.

    `same` says that the source pads so that one window starts every stride, at whatever size comes (SAME_UPPER, which
    is Keras' "same"); with `lower` the larger half of an odd padding comes first (SAME_LOWER).
    """

    size: Ints
    strides: Ints
    pads: Ints
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
    def padding(self) -> str | None:
        """Keras' name for the padding; None when it has no name that is right at every input size.

        "same" depends on the input's size at strides above 1. The smaller half comes first.
        """
        if self.same:
            return None if self.lower else "same"
        if not any(self.pads):
            return "valid"
        same = (*((reach - 1) // 2 for reach in self.reach), *(reach // 2 for reach in self.reach))
        return "same" if same == self.pads and set(self.strides) == {1} else None

    @property
    def ends(self) -> tuple[tuple[int, int], ...]:
        """(begin, end) of every axis."""
        return tuple(zip(self.pads[: self.rank], self.pads[self.rank :], strict=True))

    def overhang(self, shape: tuple[int | str, ...], ceil_mode: int) -> Ints:
        """What to add at the end of every axis so that floor counts the windows that `ceil_mode` counts.

        A last window may hang over the padded end but must start before the end padding does. Where the size is known
        and the windows fit, nothing is added.
        """
        if not ceil_mode:
            return (0,) * self.rank
        found = []
        for size, stride, reach, (begin, end) in zip(shape[1:-1], self.strides, self.reach, self.ends, strict=True):
            extra = min(end + stride - 1, reach - 1) - end
            if isinstance(size, int) and extra > 0:
                rest = (size + begin + end - reach) % stride
                extra = stride - rest if rest and stride - rest <= extra else 0
            found.append(extra)
        return tuple(found)

    def hangs_over_as_same(self, shape: tuple[int | str, ...], overhang: Ints) -> bool:
        """Whether Keras' "same" pads just what `overhang` adds to an input that has no other padding.

        At sizes that vary that is so for windows of two next to each other: "same" pads larger ones at both ends.
        """
        if self.same or self.dilated or any(self.pads) or not any(overhang):
            return False
        for size, stride, reach, more in zip(shape[1:-1], self.strides, self.reach, overhang, strict=True):
            if not isinstance(size, int):
                if not stride == reach <= 2:
                    return False
            elif max(0, (-(-size // stride) - 1) * stride + reach - size) != more or more > 1:
                return False
        return True


def window(
    size: Ints,
    strides: Ints,
    pads: Ints,
    dilations: Ints,
    auto_pad: str,
    shape: tuple[int | str, ...],
) -> Window:
    """A window from a node's attributes, absent ones at their defaults.

    Raises:
        CannotBind: more axes than Keras has layers for.
    """
    rank = len(size)
    if rank > 3:
        raise CannotBind(f"{rank} spatial axes, Keras has layers for at most 3")
    made = Window(
        tuple(size), tuple(strides) or (1,) * rank, tuple(pads) or (0,) * (2 * rank), tuple(dilations) or (1,) * rank
    )
    if auto_pad in ("NOTSET", ""):
        return made
    bare = Window(made.size, made.strides, (0,) * (2 * rank), made.dilations)
    if auto_pad == "VALID":
        return bare
    lower = auto_pad == "SAME_LOWER"
    ends = _same_ends(bare, lower, shape)
    if lower and ends is not None:
        return replace(bare, pads=(*(begin for begin, _ in ends), *(end for _, end in ends)))
    return replace(bare, same=True, lower=lower)


def _same_ends(over: Window, lower: bool, shape: tuple[int | str, ...]) -> tuple[tuple[int, int], ...] | None:
    """The padding that one window every stride asks for; None where a size varies."""
    ends = []
    for length, stride, reach in zip(shape[1:-1], over.strides, over.reach, strict=True):
        if not isinstance(length, int):
            return None
        total = max(0, (-(-length // stride) - 1) * stride + reach - length)
        ends.append((total - total // 2, total // 2) if lower else (total // 2, total - total // 2))
    return tuple(ends)


def padded_same(x: Tensor, over: Window, value: float = 0.0) -> tuple[Expr, Window]:
    """`x` with the padding that `over.same` asks for at its size, and the window that needs no more of it."""
    ends = _same_ends(over, over.lower, x.shape)
    if ends is None:
        given = {"value": value or None, "lower": over.lower or None}
        padded: Expr = call("pad_same", x, over.reach, over.strides, **given)
    else:
        padded = padded_with(x, ends, value)
    return padded, replace(over, same=False, lower=False)


def _ends(ends: tuple[tuple[int, int], ...]) -> int | tuple[int, ...] | tuple[tuple[int, int], ...]:
    """As Keras people write it: one number per axis where both ends are alike."""
    if len(ends) == 1:
        return ends[0][0] if ends[0][0] == ends[0][1] else ends[0]
    return tuple(begin for begin, _ in ends) if all(begin == end for begin, end in ends) else ends


def zero_padded(x: Expr, ends: tuple[tuple[int, int], ...]) -> Expr:
    """Zeros around the spatial axes of a channels-last value."""
    if not any(begin or end for begin, end in ends):
        return x
    return layer(f"ZeroPadding{len(ends)}D", name="pad", padding=_ends(ends))(x)


def cropped(x: Expr, ends: tuple[tuple[int, int], ...]) -> Expr:
    """Without the ends of the spatial axes."""
    if not any(begin or end for begin, end in ends):
        return x
    return layer(f"Cropping{len(ends)}D", name="crop", cropping=_ends(ends))(x)


def padded_with(x: Expr, ends: tuple[tuple[int, int], ...], value: float) -> Expr:
    """`value` around the spatial axes of a channels-last value."""
    if not any(begin or end for begin, end in ends):
        return x
    return call("ops.pad", x, ((0, 0), *ends, (0, 0)), constant_values=value)
