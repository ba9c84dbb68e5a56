"""Writes `frozen.json`: what the emitter must know of Keras' signatures, so that porting imports no Keras.

Run `python -m porter.converters.targets.keras.freeze` when the supported Keras changes.
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


def _order(function: Any) -> list[str]:
    return [
        p.name for p in inspect.signature(function).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD
    ]


def _defaults(function: Any) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {
        p.name: p.default
        for p in parameters
        if p.default is not inspect.Parameter.empty and p.default is not None and _plain(p.default)
    }


def main() -> None:
    """Read the installed Keras and write the table beside this file."""
    import keras

    def names(module: Any) -> list[str]:
        return sorted(name for name in dir(module) if not name.startswith("_"))

    table = {
        "keras": keras.__version__,
        "layers": {
            name: _defaults(getattr(keras.layers, name))
            for name in names(keras.layers)
            if isinstance(getattr(keras.layers, name), type)
        },
        "order": {
            name: _order(getattr(keras.layers, name))
            for name in names(keras.layers)
            if isinstance(getattr(keras.layers, name), type)
        },
        "ops": {
            name: _defaults(getattr(keras.ops, name)) for name in names(keras.ops) if callable(getattr(keras.ops, name))
        },
        "reserved": sorted({name for name in dir(keras.Model()) if not name.startswith("__")}),
    }
    Path(__file__).with_name("frozen.json").write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
