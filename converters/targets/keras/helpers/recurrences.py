"""Recurrent layers as ONNX defines them, whose gates Keras' own layers cannot bound, couple or cut short.

Sequences are (batch, time, features); the weights of both directions are rows of one tensor, as ONNX stacks them.
"""

from __future__ import annotations

from keras import ops


def affine(alpha, beta):
    """The function `alpha * x + beta`."""
    return lambda x: alpha * x + beta


def leaky_relu(alpha):
    """The function `x`, or `alpha * x` below zero."""
    return lambda x: ops.where(x >= 0, x, alpha * x)


def thresholded_relu(alpha):
    """The function `x`, or zero below `alpha`."""
    return lambda x: ops.where(x >= alpha, x, ops.zeros_like(x))


def scaled_tanh(alpha, beta):
    """The function `alpha * tanh(beta * x)`."""
    return lambda x: alpha * ops.tanh(beta * x)


def hard_sigmoid(alpha, beta):
    """The function `alpha * x + beta`, kept between 0 and 1."""
    return lambda x: ops.clip(alpha * x + beta, 0, 1)


def elu(alpha):
    """The function `x`, or `alpha * (exp(x) - 1)` below zero."""
    return lambda x: ops.where(x >= 0, x, alpha * ops.expm1(ops.minimum(x, 0)))


def bounded(functions, clip):
    """The functions of what is kept between `-clip` and `clip`."""
    if clip is None:
        return functions
    return [lambda x, function=function: function(ops.clip(x, -clip, clip)) for function in functions]


def steps_along(step, x, states, lengths=None, reverse=False):
    """`step(x, *states)` gives the next states: the first of them after every step, and all after the last step.

    `x` is (time, batch, features). A sequence that is shorter than the others keeps its states behind its length, and
    gives zeros there.
    """

    def turn(carried, x):
        time, *states = carried
        following = step(x, *states)
        if lengths is not None:
            going = ops.expand_dims(time < lengths, 1)
            following = [ops.where(going, new, old) for new, old in zip(following, states, strict=True)]
        carried = (time + (-1 if reverse else 1), *following)
        return carried, carried

    count = ops.shape(x)[0]
    first = ops.cast(count - 1 if reverse else 0, "int32")
    (_, *states), (_, outputs, *_) = ops.scan(turn, (first, *states), x, reverse=reverse)
    if lengths is not None:
        going = ops.expand_dims(ops.arange(count, dtype="int32"), 1) < lengths
        outputs = ops.where(ops.expand_dims(going, 2), outputs, ops.zeros_like(outputs))
    return outputs, states


def recurrence(cell, count, x, w, r, b, states, lengths, direction):
    """The sequence of each direction side by side, then the `count` last states of each.

    `cell(index, kernel, bias)` gives the step of a direction from what its weights make of a state.
    """
    x = ops.swapaxes(x, 0, 1)
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    sequences, last = [], []
    for index, reverse in enumerate(backwards):
        of_input, of_state = ops.split(b[index], 2) if b is not None else (0, 0)
        step = cell(index, ops.transpose(r[index]), of_state)
        given = ops.matmul(x, ops.transpose(w[index])) + of_input
        first = states[index * count : (index + 1) * count] if states is not None else [zero_state(given, r)] * count
        sequence, after = steps_along(step, given, first, lengths, reverse)
        sequences.append(sequence)
        last += after
    return (ops.swapaxes(ops.concatenate(sequences, axis=-1), 0, 1), *last)


def zero_state(given, r):
    """A first state for (time, batch, features)."""
    return ops.zeros((ops.shape(given)[1], r.shape[-1]), dtype=given.dtype)


def lstm(
    x, w, r, b=None, states=None, lengths=None, peepholes=None, activations=None, clip=None, input_forget=False,
    direction="forward",
):  # fmt: skip
    """ONNX's LSTM. Its gates are i, o, f, c, its peepholes i, o, f, the states h and c of each direction.

    `activations` are those of the gates, of the candidate and of the cell, for each direction; the first two get what
    is kept between `-clip` and `clip`. With `input_forget` the forget gate is what the input gate leaves.
    """
    functions = activations or (ops.sigmoid, ops.tanh, ops.tanh) * 2

    def lstm_cell(index, kernel, bias):
        gate, candidate = bounded(functions[3 * index : 3 * index + 2], clip)
        final = functions[3 * index + 2]
        at_i, at_o, at_f = ops.split(peepholes[index], 3) if peepholes is not None else (0, 0, 0)

        def step(given, hidden, cell):
            i, o, f, c = ops.split(given + ops.matmul(hidden, kernel) + bias, 4, axis=-1)
            i = gate(i + at_i * cell)
            f = 1 - i if input_forget else gate(f + at_f * cell)
            cell = f * cell + i * candidate(c)
            return gate(o + at_o * cell) * final(cell), cell

        return step

    return recurrence(lstm_cell, 2, x, w, r, b, states, lengths, direction)


def gru(
    x, w, r, b=None, states=None, lengths=None, activations=None, clip=None, reset_after=False, direction="forward"
):
    """ONNX's GRU. Its gates are z, r, h; `reset_after` resets after the recurrent product (linear_before_reset).

    `activations` are those of the gates and of the candidate, for each direction; they get what is kept between `-clip`
    and `clip`.
    """
    functions = bounded(activations or (ops.sigmoid, ops.tanh) * 2, clip)

    def gru_cell(index, kernel, bias):
        gate, candidate = functions[2 * index : 2 * index + 2]
        size = r.shape[-1]
        kernels = kernel[:, : 2 * size], kernel[:, 2 * size :]
        biases = (bias[: 2 * size], bias[2 * size :]) if b is not None else (0, 0)

        def step(given, hidden):
            update, reset = ops.split(
                gate(given[:, : 2 * size] + ops.matmul(hidden, kernels[0]) + biases[0]), 2, axis=-1
            )
            if reset_after:
                new = reset * (ops.matmul(hidden, kernels[1]) + biases[1])
            else:
                new = ops.matmul(reset * hidden, kernels[1]) + biases[1]
            new = candidate(given[:, 2 * size :] + new)
            return [(1 - update) * new + update * hidden]

        return step

    return recurrence(gru_cell, 1, x, w, r, b, states, lengths, direction)


def simple_rnn(x, w, r, b=None, states=None, lengths=None, activations=None, clip=None, direction="forward"):
    """ONNX's RNN. `activations` are those of each direction; they get what is kept between `-clip` and `clip`."""
    functions = bounded(activations or (ops.tanh, ops.tanh), clip)

    def rnn_cell(index, kernel, bias):
        return lambda given, hidden: [functions[index](given + ops.matmul(hidden, kernel) + bias)]

    return recurrence(rnn_cell, 1, x, w, r, b, states, lengths, direction)
