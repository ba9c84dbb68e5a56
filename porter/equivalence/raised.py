"""What a model raised, in one line."""

from __future__ import annotations

import re

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def describe_error(error: Exception) -> str:
    """The type and the first two lines: frameworks say where in the first and what in the second."""
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:300]}"
