"""Loops whose turns give results."""

from __future__ import annotations

import tensorflow as tf
from keras import ops


def scan_results(step, state, xs, like, reverse=False):
    """`ops.scan` for results that differ from the state in number, shape or type, which TensorFlow's does not take.

    `like` has the shapes and types of the results of one step.
    """

    def both(carried, x):
        state, results = step(carried[0], x)
        return (state, results), (state, results)

    (state, _), (_, results) = ops.scan(both, (state, like), xs, reverse=reverse)
    return state, results


def while_loop_results(condition, step, state, results, maximum_iterations=None):
    """`ops.while_loop` with results of each step, stacked: `step(*state)` gives the next state and a list of them.

    `results` are the sizes (-1 for one that is not known) and the type of each.
    """
    kinds = [
        {"element_shape": tf.convert_to_tensor(sizes, "int32"), "element_dtype": dtype} for sizes, dtype in results
    ]
    lists = [tf.raw_ops.EmptyTensorList(max_num_elements=-1, **kind) for kind in kinds]

    def turn(state, lists):
        state, results = step(*state)
        return tuple(state), [
            tf.raw_ops.TensorListPushBack(input_handle=each, tensor=result)
            for each, result in zip(lists, results, strict=True)
        ]

    state, lists = tf.while_loop(
        lambda state, _: condition(*state), turn, (tuple(state), lists), maximum_iterations=maximum_iterations
    )
    stacked = [tf.raw_ops.TensorListStack(input_handle=each, **kind) for each, kind in zip(lists, kinds, strict=True)]
    return (*state, *stacked)
