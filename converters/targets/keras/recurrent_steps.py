"""Recurrent layers that Keras has no layer for, as functions that run them step by step.

They take what the graph pass makes of ONNX's nodes, weights as ONNX stores them. The layers of `recurrent` come first;
what is left here are bounded or coupled gates, other activations, lengths, peepholes, and weights that are computed or
shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from porter.converters.codegen.nodes import Expr, Items, Ref, Verbatim, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Floats, Str, Tensor

_PLAIN = {name: f"ops.{name.lower()}" for name in ("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus")}
# The functions with parameters: the helper, and the defaults of alpha and beta (None where ONNX has no such operator).
_WITH_PARAMETERS: dict[str, tuple[str, tuple[float | None, ...]]] = {
    "Affine": ("affine", (None, None)),
    "LeakyRelu": ("leaky_relu", (0.01,)),
    "ThresholdedRelu": ("thresholded_relu", (1.0,)),
    "ScaledTanh": ("scaled_tanh", (None, None)),
    "HardSigmoid": ("hard_sigmoid", (0.2, 0.5)),
    "Elu": ("elu", (1.0,)),
}
_DEFAULTS = {"lstm": ("Sigmoid", "Tanh", "Tanh"), "gru": ("Sigmoid", "Tanh"), "simple_rnn": ("Tanh",)}


@keras_op("LSTM", domain="porter", layout="fixed")
def lstm_by_steps(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, *states: Tensor, outs: list[Ref], direction: Str,
    activations: Sequence[str] = (), activation_alpha: Floats = (), activation_beta: Floats = (), clip: float = 0.0,
    input_forget: int = 0, label: Str = "",
) -> Any:  # fmt: skip
    """Also of weights that are computed or shared."""
    named = _activations("lstm", activations, activation_alpha, activation_beta, direction)
    facts = {"activations": named, "clip": clip or None, "input_forget": bool(input_forget) or None}
    return _run("lstm", (x, w, r, b), states, outs, direction, **facts)


@keras_op("GeneralLSTM", domain="porter", layout="fixed")
def general_lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    peepholes: Tensor | None = None, *states: Tensor, outs: list[Ref], direction: Str, activations: Sequence[str] = (),
    activation_alpha: Floats = (), activation_beta: Floats = (), clip: float = 0.0, input_forget: int = 0,
    label: Str = "",
) -> Any:  # fmt: skip
    """With lengths of the sequences or with peepholes."""
    named = _activations("lstm", activations, activation_alpha, activation_beta, direction)
    facts = {"activations": named, "clip": clip or None, "input_forget": bool(input_forget) or None}
    return _run("lstm", (x, w, r, b), states, outs, direction, lengths=lengths, peepholes=peepholes, **facts)


@keras_op("GRU", domain="porter", layout="fixed")
def gru_by_steps(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, *states: Tensor, outs: list[Ref], direction: Str,
    activations: Sequence[str] = (), activation_alpha: Floats = (), activation_beta: Floats = (), clip: float = 0.0,
    linear_before_reset: int = 0, label: Str = "",
) -> Any:  # fmt: skip
    """Also of weights that are computed or shared."""
    named = _activations("gru", activations, activation_alpha, activation_beta, direction)
    facts = {"activations": named, "clip": clip or None, "reset_after": bool(linear_before_reset) or None}
    return _run("gru", (x, w, r, b), states, outs, direction, **facts)


@keras_op("GeneralGRU", domain="porter", layout="fixed")
def general_gru(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    peepholes: Tensor | None = None, *states: Tensor, outs: list[Ref], direction: Str, activations: Sequence[str] = (),
    activation_alpha: Floats = (), activation_beta: Floats = (), clip: float = 0.0, linear_before_reset: int = 0,
    label: Str = "",
) -> Any:  # fmt: skip
    """With lengths of the sequences."""
    named = _activations("gru", activations, activation_alpha, activation_beta, direction)
    facts = {"activations": named, "clip": clip or None, "reset_after": bool(linear_before_reset) or None}
    return _run("gru", (x, w, r, b), states, outs, direction, lengths=lengths, **facts)


@keras_op("RNN", domain="porter", layout="fixed")
def rnn_by_steps(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, *states: Tensor, outs: list[Ref], direction: Str,
    activations: Sequence[str] = (), activation_alpha: Floats = (), activation_beta: Floats = (), clip: float = 0.0,
    label: Str = "",
) -> Any:  # fmt: skip
    """Also of weights that are computed or shared."""
    named = _activations("simple_rnn", activations, activation_alpha, activation_beta, direction)
    return _run("simple_rnn", (x, w, r, b), states, outs, direction, activations=named, clip=clip or None)


@keras_op("GeneralRNN", domain="porter", layout="fixed")
def general_rnn(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    peepholes: Tensor | None = None, *states: Tensor, outs: list[Ref], direction: Str, activations: Sequence[str] = (),
    activation_alpha: Floats = (), activation_beta: Floats = (), clip: float = 0.0, label: Str = "",
) -> Any:  # fmt: skip
    """With lengths of the sequences."""
    named = _activations("simple_rnn", activations, activation_alpha, activation_beta, direction)
    facts = {"activations": named, "clip": clip or None}
    return _run("simple_rnn", (x, w, r, b), states, outs, direction, lengths=lengths, **facts)


def _run(
    function: str,
    operands: tuple[Tensor, Tensor, Tensor, Tensor | None],
    states: Sequence[Tensor],
    outs: Sequence[Ref],
    direction: str,
    **facts: Any,
) -> Any:
    given = operands if operands[3] is not None else operands[:3]
    first = Items(tuple(states), "[]") if states else None
    backwards = None if direction == "forward" else direction
    result = call(function, *given, states=first, **facts, direction=backwards)
    used = [bool(out.value.uses()) or out.value.is_graph_output() for out in outs]
    return (result[0], *[None] * (len(outs) - 1)) if not any(used[1:]) else result


def _activations(
    function: str, names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], direction: str
) -> Expr | None:
    """The functions of every direction, each with its own parameters; None for the usual ones.

    ONNX lists the parameters of those functions that have any, in order, and leaves out trailing ones.
    """
    defaults = _DEFAULTS[function]
    count = len(defaults) * (2 if direction == "bidirectional" else 1)
    names = [name.lower() for name in (names or defaults * 2)[:count]]
    if len(names) < count:
        raise CannotBind(f"{len(names)} activations where {count} are needed")
    if names == [name.lower() for name in defaults * 2][:count]:
        return None
    plain = {name.lower(): Verbatim(text) for name, text in _PLAIN.items()}
    parametric = {name.lower(): facts for name, facts in _WITH_PARAMETERS.items()}
    alpha, beta = iter(alphas), iter(betas)
    found: list[Expr] = []
    for name in names:
        if name in plain:
            found.append(plain[name])
        elif name in parametric:
            helper, unless = parametric[name]
            own = [next(given, default) for given, default in zip((alpha, beta), unless, strict=False)]
            if None in own:
                raise CannotBind(f"the activation {name} without its activation_alpha and activation_beta")
            found.append(call(helper, *own))
        else:
            raise CannotBind(f"the activation {name} is none of ONNX's")
    return Items(tuple(found))
