"""Orders of axes: how a value is stored, against the order that ONNX gives it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from porter.converters.library import is_library
from porter.converters.opset import SCOPE

Order = tuple[int, ...]
# On nodes after this pass: the stored axis of the channels, for operators whose channel axis is no attribute.
CHANNEL_AXIS = "porter.channel_axis"
# On values after this pass: the names of the graph's own values that it stands for, joined by "|".
NAMES = "porter.names"
# On recurrent and attention nodes after this pass, where the target has both forms: "1" if batch comes first.
BATCH_FIRST = "porter.batch_first"


@dataclass(frozen=True)
class Stored:
    """How a value is stored. `native`: its order comes from a spatial operator, not from a transpose of the source.

    `features` says that axis 1 is a flattened (C, H, …) stored channels last: (source sizes, order of them).
    """

    value: ir.Value
    order: Order
    native: bool = False
    features: tuple[tuple[int, ...], Order] | None = None
    scope: str = ""  # the module with a class of its own in which a transpose renamed the axes


@dataclass(frozen=True)
class Interface:
    """The stored order of each graph input and output; the identity where nothing changed."""

    inputs: list[Order]
    outputs: list[Order]


def identity(rank: int) -> Order:
    """The source's own order."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """Batch, spatial axes, channels."""
    return (0, *range(2, rank), 1) if rank >= 3 else identity(rank)


def channels_first(rank: int) -> Order:
    """Batch, the last axis, spatial axes: a channels-last value as the other convention has it."""
    return (0, rank - 1, *range(1, rank - 1)) if rank >= 3 else identity(rank)


@dataclass(frozen=True)
class Habits:
    """The orders in which a target's operators take their operands, against those of ONNX.

    `spatial` is that of convolutions and the like by rank, `foreign` that of a value whose source has its channels
    where the target has not. `heads` is for attention over (batch, heads, time, depth), `sequences` are for recurrent
    layers over (time, batch, features), the preferred one first.
    """

    spatial: Callable[[int], Order]
    foreign: Callable[[int], Order]
    heads: Order
    prefers: int  # at how many axes an operand in the target's own order decides for the others
    sequences: tuple[Order, ...]


CHANNELS_LAST = Habits(channels_last, channels_last, (0, 2, 1, 3), 3, ((1, 0, 2),))
CHANNELS_FIRST = Habits(identity, channels_first, (0, 1, 2, 3), 4, ((0, 1, 2), (1, 0, 2)))


def class_scope(node: ir.Node) -> str:
    """The innermost module of the author's own (or a composite of the library) that a node belongs to."""
    scope = json.loads(node.metadata_props.get(SCOPE, "[]"))
    own = [
        path
        for path, _, cls in scope
        if not is_library(cls) or cls.rpartition(".")[2].startswith(("Transformer", "MultiheadAttention"))
    ]
    return own[-1] if own else ""
