"""Which of two callables is faster, and how sure is that."""

from porter.timing.bench import Bench
from porter.timing.measure import Side, benchmark

__all__ = ["Bench", "Side", "benchmark"]
