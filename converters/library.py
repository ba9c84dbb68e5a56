"""Which classes are the frameworks' own: their modules become layers or statements, and no classes of a port."""

from __future__ import annotations

_FRAMEWORKS = ("torch.nn.", "keras.")
SEQUENTIALS = ("torch.nn.modules.container.Sequential", "keras.Sequential")
"""Chains of layers, which hold them by number."""
ZERO_PADDINGS = tuple(f"keras.layers.ZeroPadding{rank}D" for rank in (1, 2, 3))
"""Layers that a framework needs where the other one's convolutions pad."""


def is_library(cls: str) -> bool:
    """Whether a class, named with its module, belongs to a framework."""
    return cls.startswith(_FRAMEWORKS)
