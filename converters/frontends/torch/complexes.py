"""Complex tensors. ONNX has none to compute with: they are real tensors with a last axis (real, imaginary).

Every rule for real tensors would take that axis for one of the tensor's own, so an operator that reads or makes a
complex tensor is only ever translated by a rule written for that.
"""

from __future__ import annotations

from typing import Any

import torch


def is_complex(argument: Any) -> bool:
    """Whether an fx argument, a fake tensor or a number is complex."""
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument
    return value.is_complex() if isinstance(value, torch.Tensor) else isinstance(value, complex)


def which_complex(argument: Any) -> Any:
    """`is_complex` of an argument; of a list, item by item."""
    return [is_complex(item) for item in argument] if isinstance(argument, list | tuple) else is_complex(argument)


def has_complex(node: torch.fx.Node) -> bool:
    """Whether a node reads or makes a complex tensor or number."""
    made = node.meta.get("val")
    return any(is_complex(part) for part in (made if isinstance(made, list | tuple) else [made])) or any(
        is_complex(argument) for argument in (*node.all_input_nodes, *node.args, *node.kwargs.values())
    )
