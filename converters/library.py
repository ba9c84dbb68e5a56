"""Which classes are the frameworks' own: their modules become layers or statements, and no classes of a port."""

from __future__ import annotations

_FRAMEWORKS = ("torch.nn.", "keras.")


def is_library(cls: str) -> bool:
    """Whether a class, named with its module, belongs to a framework."""
    return cls.startswith(_FRAMEWORKS)


def is_chain(cls: str) -> bool:
    """Whether a class is a framework's own Sequential."""
    return cls == "keras.Sequential" or (cls.startswith("torch.nn.") and cls.endswith("container.Sequential"))
