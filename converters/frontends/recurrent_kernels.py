"""ONNX's recurrent operators in float64, with the activations that the standard names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from porter.converters.frontends.kernels import Array, Attributes, kernel

Function = Callable[[np.ndarray], np.ndarray]


def _functions(attributes: Attributes, defaults: list[str], directions: int) -> list[list[Function]]:
    """The activations of each direction."""
    names = list(attributes.get("activations") or defaults * directions)
    alphas, betas = iter(attributes.get("activation_alpha") or []), iter(attributes.get("activation_beta") or [])
    made = [_function(name, alphas, betas) for name in names]
    return [made[d * len(defaults) : (d + 1) * len(defaults)] for d in range(directions)]


def _function(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Function:
    """Numbers are taken in order by the functions that have some."""
    if name == "HardSigmoid":
        alpha, beta = next(alphas, 0.2), next(betas, 0.5)
        return lambda x: np.clip(alpha * x + beta, 0, 1)
    if name == "Affine":
        alpha, beta = next(alphas, 1.0), next(betas, 0.0)
        return lambda x: alpha * x + beta
    if name == "LeakyRelu":
        alpha = next(alphas, 0.01)
        return lambda x: np.where(x < 0, alpha * x, x)
    if name == "Elu":
        alpha = next(alphas, 1.0)
        return lambda x: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)
    if name not in _PLAIN:
        raise NotImplementedError(name)
    return _PLAIN[name]


_PLAIN: dict[str, Function] = {
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Relu": lambda x: np.maximum(x, 0),
    "Softplus": lambda x: np.logaddexp(0, x),
    "Softsign": lambda x: x / (1 + np.abs(x)),
}


def _refuse_rare(attributes: Attributes, peepholes: Array = None) -> None:
    if attributes.get("layout", 0) or attributes.get("clip") or attributes.get("input_forget") or peepholes is not None:
        raise NotImplementedError("batch first, clipping, coupled gates or peepholes")


def _run(
    attributes: Attributes,
    x: np.ndarray,
    lengths: Array,
    states: list[np.ndarray],
    step: Callable[..., list[np.ndarray]],
) -> tuple[np.ndarray, ...]:
    """Every direction over time (time, batch, features); an example that has ended keeps its state and gives zeros."""
    time, batch = x.shape[:2]
    directions, size = states[0].shape[0], states[0].shape[2]
    y = np.zeros((time, directions, batch, size), x.dtype)
    lengths = np.full(batch, time) if lengths is None else np.asarray(lengths)
    last = [state.astype(x.dtype).copy() for state in states]
    for d in range(directions):
        backwards = d == 1 or attributes.get("direction", "forward") == "reverse"
        for t in reversed(range(time)) if backwards else range(time):
            alive = (t < lengths)[:, None]
            new = step(d, x[t], *(state[d] for state in last))
            for state, fresh in zip(last, new, strict=True):
                state[d] = np.where(alive, fresh, state[d])
            y[t, d] = np.where(alive, new[0], 0)
    return (y, *last)


def _zeros(x: np.ndarray, r: np.ndarray, state: Array) -> np.ndarray:
    return np.zeros((r.shape[0], x.shape[1], r.shape[2])) if state is None else state


def _bias(b: Array, r: np.ndarray, rows: int) -> np.ndarray:
    return np.zeros((r.shape[0], 2 * rows)) if b is None else b


@kernel
def RNN(
    attributes: Attributes, x: Array, w: Array, r: Array, b: Array = None, lengths: Array = None, state: Array = None
) -> tuple[np.ndarray, ...]:
    _refuse_rare(attributes)
    functions, size = _functions(attributes, ["Tanh"], len(w)), r.shape[-1]
    b = _bias(b, r, size)

    def step(d: int, now: np.ndarray, h: np.ndarray) -> list[np.ndarray]:
        return [functions[d][0](now @ w[d].T + h @ r[d].T + b[d, :size] + b[d, size:])]

    return _run(attributes, x, lengths, [_zeros(x, r, state)], step)


@kernel
def GRU(
    attributes: Attributes, x: Array, w: Array, r: Array, b: Array = None, lengths: Array = None, state: Array = None
) -> tuple[np.ndarray, ...]:
    """Gates in the order update, reset, hidden."""
    _refuse_rare(attributes)
    functions, size = _functions(attributes, ["Sigmoid", "Tanh"], len(w)), r.shape[-1]
    b = _bias(b, r, 3 * size)
    after = attributes.get("linear_before_reset", 0)

    def step(d: int, now: np.ndarray, h: np.ndarray) -> list[np.ndarray]:
        gate, new = functions[d]
        from_input = np.split(now @ w[d].T + b[d, : 3 * size], 3, axis=1)
        rz, rr, rh = np.split(r[d], 3)
        bz, br, bh = np.split(b[d, 3 * size :], 3)
        update = gate(from_input[0] + h @ rz.T + bz)
        reset = gate(from_input[1] + h @ rr.T + br)
        recurrent = reset * (h @ rh.T + bh) if after else (reset * h) @ rh.T + bh
        return [(1 - update) * new(from_input[2] + recurrent) + update * h]

    return _run(attributes, x, lengths, [_zeros(x, r, state)], step)


@kernel
def LSTM(
    attributes: Attributes,
    x: Array,
    w: Array,
    r: Array,
    b: Array = None,
    lengths: Array = None,
    state: Array = None,
    cell: Array = None,
    peepholes: Array = None,
) -> tuple[np.ndarray, ...]:
    """Gates in the order input, output, forget, cell."""
    _refuse_rare(attributes, peepholes)
    functions, size = _functions(attributes, ["Sigmoid", "Tanh", "Tanh"], len(w)), r.shape[-1]
    b = _bias(b, r, 4 * size)

    def step(d: int, now: np.ndarray, h: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        gate, new, out = functions[d]
        i, o, f, g = np.split(now @ w[d].T + h @ r[d].T + b[d, : 4 * size] + b[d, 4 * size :], 4, axis=1)
        c = gate(f) * c + gate(i) * new(g)
        return [gate(o) * out(c), c]

    return _run(attributes, x, lengths, [_zeros(x, r, state), _zeros(x, r, cell)], step)
