"""ONNX's equations of LSTM, GRU and RNN in plain numpy, with every attribute: its reference implementation has none.

Where its text leaves a choice they do what ONNX Runtime does: `clip` bounds what the gates are made of, not the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
# Each function with the defaults of its parameters, of which only these take any of the node's.
_FUNCTIONS: dict[str, tuple[Callable[..., np.ndarray], dict[str, float]]] = {
    "Relu": (lambda x: np.maximum(x, 0), {}),
    "Tanh": (np.tanh, {}),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), {}),
    "Softsign": (lambda x: x / (1 + np.abs(x)), {}),
    "Softplus": (lambda x: np.log1p(np.exp(x)), {}),
    "Affine": (lambda x, alpha, beta: alpha * x + beta, {"alpha": np.nan, "beta": np.nan}),
    "LeakyRelu": (lambda x, alpha: np.where(x >= 0, x, alpha * x), {"alpha": 0.01}),
    "ThresholdedRelu": (lambda x, alpha: np.where(x >= alpha, x, 0), {"alpha": 1}),
    "ScaledTanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), {"alpha": np.nan, "beta": np.nan}),
    "HardSigmoid": (lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), {"alpha": 0.2, "beta": 0.5}),
    "Elu": (lambda x, alpha: np.where(x >= 0, x, alpha * (np.exp(x) - 1)), {"alpha": 1}),
}


def _functions(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], bounds: Sequence[float]
) -> list[Function]:
    left = {"alpha": list(alphas), "beta": list(betas)}
    found: list[Function] = []
    for name, bound in zip(names, bounds, strict=True):
        function, defaults = _FUNCTIONS[name]
        given = {kind: left[kind].pop(0) if left[kind] else default for kind, default in defaults.items()}
        found.append(lambda x, f=function, b=bound, given=given: f(np.clip(x, -b, b), **given))
    return found


def recurrence(op: str, inputs: dict[str, Any], attributes: dict[str, Any]) -> list[np.ndarray]:
    """Y, Y_h and, of an LSTM, Y_c of one node, sequence by sequence and step by step."""
    x, w, r = (inputs[name] for name in "XWR")
    directions, size, batch_first = len(w), r.shape[-1], attributes.get("layout", 0)
    x = x.swapaxes(0, 1) if batch_first else x
    steps, batch, _ = x.shape
    b = inputs.get("B")
    b = np.zeros((directions, 2 * w.shape[1])) if b is None else b
    peepholes = inputs.get("P")
    peepholes = np.zeros((directions, 3 * size)) if peepholes is None else peepholes
    lengths = inputs.get("lengths")
    lengths = [steps] * batch if lengths is None else lengths
    first = []
    for name in ("h", "c"):
        state = inputs.get(name)
        state = np.zeros((directions, batch, size)) if state is None else state.swapaxes(0, 1) if batch_first else state
        first.append(state)
    names = attributes.get("activations", _DEFAULTS[op] * directions)
    bounds = [attributes.get("clip") or np.inf] * len(_DEFAULTS[op])
    if op == "LSTM":
        bounds[2] = np.inf
    alphas, betas = (attributes.get(f"activation_{kind}", ()) for kind in ("alpha", "beta"))
    functions = _functions(names, alphas, betas, bounds * directions)
    y = np.zeros((steps, directions, batch, size))
    last = [np.zeros((directions, batch, size)) for _ in range(2)]
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    for d, reverse in enumerate(backwards[attributes.get("direction", "forward")]):
        own = functions[d * len(_DEFAULTS[op]) :]
        for n in range(batch):
            h, c = first[0][d, n], first[1][d, n]
            order = range(lengths[n])
            for t in reversed(order) if reverse else order:
                if op == "LSTM":
                    coupled = attributes.get("input_forget", 0)
                    h, c = _lstm(x[t, n], h, c, w[d], r[d], b[d], peepholes[d], own, coupled)
                elif op == "GRU":
                    h = _gru(x[t, n], h, w[d], r[d], b[d], own, attributes.get("linear_before_reset", 0))
                else:
                    h = own[0](w[d] @ x[t, n] + r[d] @ h + b[d, :size] + b[d, size:])
                y[t, d, n] = h
            last[0][d, n], last[1][d, n] = h, c
    found = [y, *last[: 2 if op == "LSTM" else 1]]
    if batch_first:
        return [y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in found[1:])]
    return found


def _lstm(x: Any, h: Any, c: Any, w: Any, r: Any, b: Any, p: Any, functions: list[Function], coupled: int) -> Any:
    f, g, last = functions[:3]
    size = h.size
    i, o, forget, new = np.split(w @ x + r @ h + b[: 4 * size] + b[4 * size :], 4)
    at_i, at_o, at_f = np.split(p, 3)
    i = f(i + at_i * c)
    forget = 1 - i if coupled else f(forget + at_f * c)
    c = forget * c + i * g(new)
    return f(o + at_o * c) * last(c), c


def _gru(x: Any, h: Any, w: Any, r: Any, b: Any, functions: list[Function], after: int) -> Any:
    f, g = functions[:2]
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    bz, br, bh, cz, cr, ch = np.split(b, 6)
    z = f(wz @ x + rz @ h + bz + cz)
    reset = f(wr @ x + rr @ h + br + cr)
    new = g(wh @ x + bh + (reset * (rh @ h + ch) if after else rh @ (reset * h) + ch))
    return (1 - z) * new + z * h
