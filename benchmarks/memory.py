"""The memory of this process while something runs, by reading what the system says of it every few milliseconds."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of physical memory that this process holds now.

    Raises OSError on a system without /proc.
    """
    return int(_STATM.read_text().split()[1]) * _PAGE


class Peak:
    """`with Peak() as peak: …`; `peak.bytes` is the most that the process held in between."""

    def __init__(self, interval: float = 0.005) -> None:
        self.interval = interval
        self.bytes = 0

    def __enter__(self) -> Peak:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self.bytes = max(self.bytes, resident())

    def _watch(self) -> None:
        while not self._done.wait(self.interval):
            self.bytes = max(self.bytes, resident())
