"""Numbers as a person writes them."""

from __future__ import annotations

import numpy as np


def shortest(number: float) -> float:
    """A float32 as the shortest decimal that is the same float32: 1e-05, not 9.999999747378752e-06.

    In float64 that decimal is what the author wrote, so it is also the more exact one.
    """
    if np.isfinite(number) and float(np.float32(number)) == number:
        return float(str(np.float32(number)))
    return number
