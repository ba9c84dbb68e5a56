"""Recurrent layers: one PyTorch layer per ONNX node or stack of them, the gates in PyTorch's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from porter.converters.codegen.nodes import Expr, Layer, Nested, Ref, Weight, call, layer, wrap
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.types import Floats, Str, Tensor


@dataclass(frozen=True)
class _Kind:
    """An operator's PyTorch layer: where ONNX keeps each of its gates, how many states it has, its activations."""

    cls: str
    gates: tuple[int, ...]
    states: int
    activations: tuple[str, ...]


_KINDS = {
    "LSTM": _Kind("LSTM", (0, 2, 3, 1), 2, ("Sigmoid", "Tanh", "Tanh")),
    "GRU": _Kind("GRU", (1, 0, 2), 1, ("Sigmoid", "Tanh")),
    "RNN": _Kind("RNN", (0,), 1, ("Tanh",)),
}
_FUNCTIONS = {
    "Tanh": "tanh", "Sigmoid": "sigmoid", "Relu": "relu", "Softsign": "softsign", "Softplus": "softplus",
}  # fmt: skip


@torch_op("Recurrent", domain="porter", layout="fixed")
def recurrent(
    x: Tensor, hidden: Tensor | None = None, cell: Tensor | None = None, *weights: Ref | Weight | None,
    outs: list[Ref], mode: Str, layers: int, direction: Str, batch_first: bool, dropout: float,
    activations: Sequence[str] | None = None, clip: float = 0.0, input_forget: int = 0, linear_before_reset: int = 0,
    label: Str = "",
) -> Any:  # fmt: skip
    """PyTorch's GRU resets after the recurrent product (`linear_before_reset`)."""
    if clip or input_forget:
        raise CannotBind(f"clipped or coupled gates (clip={clip}, input_forget={input_forget}) have no PyTorch layer")
    made = _layer(mode, weights, layers, direction, batch_first, dropout, activations, linear_before_reset, label)
    backwards, time = direction == "reverse", 1 if batch_first else 0
    given = call(".flip", x, time) if backwards else x
    result: Expr = made(given, *_initial(hidden, cell))
    used = _used(outs)
    if not any(used[1:]):
        return (call(".flip", result[0], time) if backwards else result[0], *[None] * (len(outs) - 1))
    if backwards and used[0]:
        return call("in_input_order", result, time)
    return _results(result, used)


@torch_op("RecurrentOfLengths", domain="porter", layout="fixed")
def recurrent_of_lengths(
    x: Tensor, lengths: Tensor, hidden: Tensor | None = None, cell: Tensor | None = None, *weights: Ref | Weight | None,
    outs: list[Ref], mode: Str, layers: int, direction: Str, batch_first: bool, dropout: float,
    activations: Sequence[str] | None = None, clip: float = 0.0, input_forget: int = 0, linear_before_reset: int = 0,
    label: Str = "",
) -> Any:  # fmt: skip
    """PyTorch's layers take such sequences packed; backwards they read each of them from its own end."""
    if clip or input_forget:
        raise CannotBind(f"clipped or coupled gates (clip={clip}, input_forget={input_forget}) have no PyTorch layer")
    if direction == "reverse":
        raise CannotBind("sequences of several lengths that are read backwards alone")
    made = _layer(mode, weights, layers, direction, batch_first, dropout, activations, linear_before_reset, label)
    if not made.cls.startswith("nn."):
        raise CannotBind("sequences of several lengths with functions or gates that PyTorch's layers lack")
    result: Expr = replace(made, cls=made.cls.replace("nn.", "Padded"))(x, lengths, *_initial(hidden, cell))
    used = _used(outs)
    if not any(used[1:]):
        return (result[0], *[None] * (len(outs) - 1))
    return _results(result, used)


@torch_op("MaskedRecurrent", domain="porter", layout="fixed")
def masked_recurrent(
    x: Tensor, mask: Tensor, hidden: Tensor | None = None, cell: Tensor | None = None, *weights: Ref | Weight | None,
    outs: list[Ref], mode: Str, layers: int, direction: Str, batch_first: bool, dropout: float, zeros: int,
    activations: Sequence[str] | None = None, clip: float = 0.0, input_forget: int = 0, linear_before_reset: int = 0,
    label: Str = "",
) -> Any:  # fmt: skip
    """PyTorch's layers know no masks: the steps that count are packed."""
    if clip or input_forget:
        raise CannotBind(f"clipped or coupled gates (clip={clip}, input_forget={input_forget}) have no PyTorch layer")
    made = _layer(mode, weights, layers, direction, batch_first, dropout, activations, linear_before_reset, label)
    if not made.cls.startswith("nn."):
        raise CannotBind("masked steps with functions or gates that PyTorch's layers lack")
    used = _used(outs)
    more = tuple((name, True) for name, wanted in (("zeros", zeros), ("ends", any(used[1:]))) if wanted)
    masked = replace(made, cls=made.cls.replace("nn.", "Masked"), kwargs=(*made.kwargs, *more))
    result: Expr = masked(x, mask, *_initial(hidden, cell))
    return _results(result, used) if any(used[1:]) else (result[0], *[None] * (len(outs) - 1))


def _initial(hidden: Expr | None, cell: Expr | None) -> list[Expr]:
    states = [state for state in (hidden, cell) if state is not None]
    return [] if not states else [states[0] if len(states) == 1 else wrap(tuple(states))]


def _used(outs: Sequence[Ref]) -> list[bool]:
    return [bool(out.value.uses()) or out.value.is_graph_output() for out in outs]


def _results(result: Expr, used: Sequence[bool]) -> Any:
    """The sequence and the states, or the one state that is read."""
    if not used[0] and used.count(True) == 1:
        last = result[1] if len(used) == 2 else result[1][used.index(True) - 1]
        return tuple(last if at else None for at in used)
    return result if len(used) == 2 else Nested(result, (1, 2))


def _layer(
    mode: str, weights: Sequence[Any], layers: int, direction: str, batch_first: bool, dropout: float,
    activations: Sequence[str] | None, linear_before_reset: int, label: str,
) -> Layer:  # fmt: skip
    kind = _KINDS[mode]
    weights = (*weights, *[None] * (3 * layers - len(weights)))  # absent biases at the end
    per_layer = [_parameters(weights[at : at + 3]) for at in range(0, len(weights), 3)]
    first, through, bias = per_layer[0]
    directions = first.shape[0]
    cls, facts = _class(kind, activations, directions, mode != "GRU" or bool(linear_before_reset), layers)
    return layer(
        cls,
        input_size=first.shape[2],
        hidden_size=through.shape[2],
        num_layers=layers if cls.startswith("nn.") else None,
        bias=bias is not None,
        batch_first=batch_first,
        dropout=dropout or None,
        bidirectional=directions == 2,
        **facts,
        weights=_weights(kind, per_layer, directions),
        name=label,
    )


def _parameters(parts: Sequence[Ref | Weight | None]) -> tuple[Weight, Weight, Weight | None]:
    w, r, b = parts
    if not isinstance(w, Weight) or not isinstance(r, Weight) or isinstance(b, Ref):
        raise CannotBind("its weights are no parameters of its own")
    return w, r, b


@torch_op("DropoutBetween", domain="porter")
def dropout_between(x: Tensor, *, ratio: float) -> Expr:
    """The Dropout between the layers of one recurrent module that are not one layer here."""
    return layer("nn.Dropout", p=ratio, name="dropout", training=True)(x)


@torch_op("GeneralLSTM", "GeneralGRU", "GeneralRNN", domain="porter", layout="fixed")
def general(
    *inputs: Tensor, direction: str, activations: Sequence[str] = (), activation_alpha: Floats = (),
    activation_beta: Floats = (), clip: float = 0.0, input_forget: int = 0, linear_before_reset: int = 0,
    label: Str = "",
) -> Expr:  # fmt: skip
    """What has peepholes."""
    raise CannotBind("peepholes have no PyTorch layer")


def _class(
    kind: _Kind, given: Sequence[str] | None, directions: int, reset_after: bool, layers: int
) -> tuple[str, dict[str, Any]]:
    """PyTorch's own layer where it has these activations, else one of ours."""
    count = len(kind.activations)
    names = list(given or kind.activations * directions)[: count * directions]
    plain = tuple(names) == kind.activations * directions
    if plain and reset_after:
        return f"nn.{kind.cls}", {}
    if kind.cls == "RNN" and set(names) == {"Relu"}:
        return "nn.RNN", {"nonlinearity": "relu"}
    functions = [_FUNCTIONS.get(name, "") for name in names]
    if not all(functions) or functions != functions[:count] * directions or layers > 1:
        raise CannotBind(f"the activations {', '.join(names)} have no recurrent layer")
    given_functions = {} if plain else {"activations": tuple(functions[:count])}
    return f"Plain{kind.cls}", given_functions | ({"reset_after": reset_after} if kind.cls == "GRU" else {})


def _weights(kind: _Kind, layers: Sequence[Sequence[Weight | None]], directions: int) -> dict[str, Weight]:
    found: dict[str, Weight] = {}
    for index, (w, r, b) in enumerate(layers):
        assert w is not None and r is not None
        for direction in range(directions):
            suffix = f"l{index}" + ("_reverse" if direction else "")
            found[f"weight_ih_{suffix}"] = _gates(kind, _row(w, direction))
            found[f"weight_hh_{suffix}"] = _gates(kind, _row(r, direction))
            if b is not None:
                both = _row(b, direction)
                half = both.shape[0] // 2
                found[f"bias_ih_{suffix}"] = _gates(kind, both.sliced(0, 0, half))
                found[f"bias_hh_{suffix}"] = _gates(kind, both.sliced(0, half, 2 * half))
    return found


def _row(stacked: Weight, index: int) -> Weight:
    return stacked.sliced(0, index, index + 1).reshaped(*stacked.shape[1:])


def _gates(kind: _Kind, rows: Weight) -> Weight:
    """The rows with their gates in PyTorch's order."""
    size = rows.shape[0] // len(kind.gates)
    parts = [rows.sliced(0, gate * size, (gate + 1) * size) for gate in kind.gates]
    return parts[0].joined(parts[1:], 0)
