"""The PyTorch target: one rule per operator, by family."""

from __future__ import annotations

from porter.converters.codegen.dialect import Dialect
from porter.converters.graph.masked_recurrent import restore_masks
from porter.converters.graph.orders import CHANNELS_FIRST
from porter.converters.graph.padding import absorb_padding
from porter.converters.graph.stacks import stack_recurrent
from porter.converters.targets.table import Target

torch_op = Target("torch", CHANNELS_FIRST, passes=[restore_masks, stack_recurrent, absorb_padding])


def dialect_for(package: str) -> Dialect:
    """How PyTorch code is written; nothing in it is named after the `package`."""
    from porter.converters.targets.torch.dialect import TorchDialect

    return TorchDialect()


def load() -> Target:
    """The target with every rule module of this package imported."""
    import importlib
    import pkgutil

    for module in pkgutil.iter_modules(__path__):
        if module.name != "helpers":
            importlib.import_module(f"{__name__}.{module.name}")
    return torch_op
