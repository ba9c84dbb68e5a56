"""Where a running call was written: the innermost line of somebody's own code."""

from __future__ import annotations

import sys
from pathlib import Path

_OWN = str(Path(__file__).parent)


def call_site(framework_folders: tuple[str, ...]) -> tuple[str | None, int | None]:
    """File and line of the first frame outside the frameworks; (None, None) when a runner made the call itself."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back  # type: ignore[assignment]
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OWN):
            return None, None
        # contextlib and functools sit between a framework's own frames.
        if not file.startswith(framework_folders) and Path(file).name not in {"contextlib.py", "functools.py"}:
            return file, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None, None
