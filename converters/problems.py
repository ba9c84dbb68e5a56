"""What keeps a model from being ported, as a list to report in whole."""

from __future__ import annotations

from dataclasses import dataclass

# What stands for a line where a problem has none.
WHOLE = "the whole model"


@dataclass(frozen=True)
class Problem:
    """One node that cannot be carried over.

    `stage` is "trace" (the source's operator has no translation) or the name of the target whose rules lack it.
    """

    stage: str
    operator: str
    module: str
    line: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operator} in {self.module or 'the model itself'} ({self.line}): {self.reason}"
