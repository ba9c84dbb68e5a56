"""One way to run a model of either framework: numpy arrays in, numpy arrays out, in float32 or float64."""

from porter.runners.base import ModuleCall, Precision, Runner, SourceRunner

__all__ = ["ModuleCall", "Precision", "Runner", "SourceRunner"]
