"""Branches and loops over functions."""

from __future__ import annotations

import torch


def choose(condition, then, otherwise):
    """What one of two functions gives; a compiled or exported model keeps both."""
    if torch.compiler.is_compiling():
        return torch.cond(condition, then, otherwise)
    return then() if condition else otherwise()


def run_loop(step, state, turns=None, condition=None, empty=()):
    """`step(number, *state)`, which gives the next state and results, while `condition(*state)` holds, for `turns` at
    most: the last state and the stacked results, or `empty`.
    """
    number, results = 0, []
    while (turns is None or number < turns) and (condition is None or condition(*state)):
        given = step(torch.tensor(number, device=state[0].device if state else None), *state)
        state = given[: len(state)]
        results.append(given[len(state) :])
        number += 1
    stacked = [torch.stack(each) for each in zip(*results, strict=True)] if results else empty
    return *state, *stacked


def run_scan(step, state, xs, reverse=False):
    """`step(*state, *items)`, which gives the next state and results, over the first axis of `xs`: the last state and
    the stacked results.
    """
    results, count = [], len(state)
    items = list(zip(*xs, strict=True))
    for each in reversed(items) if reverse else items:
        given = step(*state, *each)
        state = given[:count]
        results.append(given[count:])
    return *state, *(torch.stack(each[::-1] if reverse else each) for each in zip(*results, strict=True))
