"""porter moves a model between PyTorch and TensorFlow/Keras and proves that it is still the same model.

    port = porter.port(model, (x,), to="keras", out="ported/net")
    porter.verify(model, port, (x,)).raise_if_failed()

Importing porter loads no framework; each function loads what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from porter.errors import PorterError
from porter.version import __version__

if TYPE_CHECKING:
    from porter.benchmarking import benchmark
    from porter.inspection import Inspection, inspect_model
    from porter.ports import Port, port
    from porter.verification import verify

_HOMES = {
    "benchmark": "porter.benchmarking",
    "Inspection": "porter.inspection",
    "inspect_model": "porter.inspection",
    "Port": "porter.ports",
    "port": "porter.ports",
    "verify": "porter.verification",
}

__all__ = ["Inspection", "Port", "PorterError", "__version__", "benchmark", "inspect_model", "port", "verify"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'porter' has no attribute {name!r}")
