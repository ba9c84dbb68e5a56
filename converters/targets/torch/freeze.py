"""Writes `frozen.json`: what the emitter must know of PyTorch's signatures, so that porting imports no PyTorch.

Run `python -m porter.converters.targets.torch.freeze` when the supported PyTorch changes.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any


def _plain(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, bool | int | float | str)
        or (isinstance(value, tuple) and all(map(_plain, value)))
    )


def _parameters(function: Any) -> list[inspect.Parameter]:
    """What a constructor or function takes; nothing where it does not say so."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def _defaults(function: Any) -> dict[str, Any]:
    given = [p for p in _parameters(function) if p.default is not p.empty]
    return {p.name: p.default for p in given if _plain(p.default)}


# Subclasses of nn.RNNBase take their base's arguments by *args.
_RECURRENT = ("RNN", "LSTM", "GRU")


def main() -> None:
    """Read the installed PyTorch and write the table beside this file."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    layers = {
        name: found
        for name, found in sorted(vars(nn).items())
        if isinstance(found, type) and issubclass(found, nn.Module) and name not in _RECURRENT
    }
    functions = {
        name: found
        for name, found in sorted(vars(F).items())
        if callable(found) and not name.startswith("_") and _defaults(found)
    }
    base = [p for p in _parameters(nn.RNNBase) if p.name != "mode"]
    recurrent = {p.name: p.default for p in base if p.default is not p.empty and _plain(p.default)}
    extra: dict[str, dict[str, Any]] = {"RNN": {"nonlinearity": "tanh"}, "LSTM": {"proj_size": 0}, "GRU": {}}
    orders = {name: [p.name for p in base] + ["nonlinearity"] * (name == "RNN") for name in _RECURRENT}
    table = {
        "torch": torch.__version__.partition("+")[0],
        "layers": {**{n: _defaults(layer) for n, layer in layers.items()}, **{n: recurrent | extra[n] for n in extra}},
        "order": {**{n: [p.name for p in _parameters(layer)] for n, layer in layers.items()}, **orders},
        "functions": {n: _defaults(function) for n, function in functions.items()},
        "reserved": sorted({n for n in dir(nn.Module()) if not n.startswith("__")}),
    }
    Path(__file__).with_name("frozen.json").write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
