"""Is the port the same model? Judged against the rounding of the source itself, not against a tolerance."""

from porter.equivalence.forward import verify_forward
from porter.equivalence.report import Report

__all__ = ["Report", "verify_forward"]
