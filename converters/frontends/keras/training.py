"""What Keras' layers do in training alone."""

from __future__ import annotations

from typing import Any

import keras

from porter.errors import UnsupportedError

# Layers whose own dropout is a fact of the nodes that they become.
_HANDLED = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
_RATES = ("dropout", "recurrent_dropout", "_dropout")


def refuse_lost_dropout(layers: dict[str, Any]) -> None:
    """Refuse what drops numbers inside of a layer in training, which no trace outside of training shows.

    Raises:
        UnsupportedError: naming every such layer with its rates.
    """
    lost: dict[str, str] = {}
    for path, layer in layers.items():
        if type(layer).__module__.startswith("keras.") and not isinstance(layer, _HANDLED):
            rates = [(name.lstrip("_"), getattr(layer, name, 0)) for name in _RATES]
            found = [f"{name}={rate}" for name, rate in rates if isinstance(rate, int | float) and rate > 0]
            inside = any(path.startswith(f"{outer}.") for outer in lost)  # a cell has its layer's rates
            if found and not inside:
                lost[path] = f"{type(layer).__name__}({', '.join(found)})"
    if lost:
        lines = "".join(f"\n  {path or 'the model'}: {text}" for path, text in lost.items())
        raise UnsupportedError(
            f"{len(lost)} layer(s) drop numbers inside in training, which the port would not do:{lines}\n"
            "Set these rates to 0, and put Dropout layers before or behind them where they are wanted."
        )
