"""Attention and matrix products."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tests.converters.frontends.torch.cases import Row, flags, floats, ints, positive, row, seeded


def _attention() -> list[Row]:
    name, run = "scaled_dot_product_attention", F.scaled_dot_product_attention
    q, k, v = floats(2, 4, 5, 6), floats(2, 4, 7, 6, seed=1), floats(2, 4, 7, 3, seed=2)
    seen = flags(2, 1, 5, 7)
    seen[0, 0, 2] = False
    seen[1, 0, :, 0] = True
    hidden = torch.where(seen, 0.0, float("-inf"))
    return [
        row(name, run, q, k, v, also=(q[:1, :, :3], k[:1, :, :4], v[:1, :, :4])),
        row(name, lambda q, k, v: run(q, k, v, is_causal=True), q, k, v),
        row(name, lambda q, k, v: run(q, k, v, is_causal=True, scale=0.25), k, k, v),
        row(name, lambda q, k, v, m: run(q, k, v, m), q, k, v, seen),
        row(name, lambda q, k, v, m: run(q, k, v, m), q, k, v, seen[0, 0]),
        row(name, lambda q, k, v, m: run(q, k, v, m), q, k, v, hidden),
        row(name, lambda q, k, v, m: run(q, k, v, m), q, k, v, floats(5, 7)),
        row(name, lambda q, k, v: run(q, k, v, enable_gqa=True), q, k[:, :2], v[:, :2]),
        row(name, run, q[0], k[0], v[0]),
        row(
            "softmax.int",
            seeded(nn.MultiheadAttention(8, 2, batch_first=True)),
            floats(2, 5, 8),
            floats(2, 3, 8),
            floats(2, 3, 8),
        ),
        row("softmax.int", lambda q, k, m: (q @ k.mT).masked_fill(~m, float("-inf")).softmax(-1), q, k, seen),
    ]


def _products() -> list[Row]:
    x, w = floats(2, 3, 4), floats(5, 4)
    return [
        row("linear", F.linear, x, w, floats(5), also=(floats(1, 2, 4), w, floats(5))),
        row("linear", F.linear, x[0], w),
        row("linear", F.linear, x[0, 0], w, floats(5)),
        row("linear", F.linear, x[0], w[0]),
        row("matmul", torch.matmul, floats(1, 4, 4), floats(1, 4, 4, seed=1)),
        row("matmul", torch.matmul, x, floats(4)),
        row("matmul", torch.matmul, floats(3), floats(2, 3, 4)),
        row("matmul", torch.matmul, floats(2, 1, 3, 4), floats(5, 4, 2)),
        row("mm", torch.mm, floats(2, 3), floats(3, 4)),
        row("bmm", torch.bmm, floats(2, 3, 4), floats(2, 4, 5)),
        row("mv", torch.mv, floats(2, 3), floats(3)),
        row("dot", torch.dot, floats(3), floats(3, seed=1)),
        row("addmm", lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2), floats(4), floats(2, 3), floats(3, 4)),
        row(
            "baddbmm",
            lambda b, x, y: torch.baddbmm(b, x, y, beta=0.5, alpha=2),
            floats(2, 2, 4),
            floats(2, 2, 3),
            floats(2, 3, 4),
        ),
        row(
            "baddbmm", lambda b, x, y: torch.baddbmm(b, x, y, beta=0), floats(2, 2, 4), floats(2, 2, 3), floats(2, 3, 4)
        ),
        row("outer", torch.outer, floats(2), floats(3)),
        row(
            "einsum",
            lambda x, y: torch.einsum("bij, jk -> bik", x, y),
            x,
            floats(4, 5),
            also=(floats(1, 2, 4), floats(4, 5)),
        ),
        row("einsum", lambda x, y: torch.einsum("...i,...i", x, y), x, x + 1),
        row("einsum", lambda x, y, z: torch.einsum("bi,bj,ij->b", x, y, z), floats(2, 3), floats(2, 4), floats(3, 4)),
        row("einsum", lambda x: torch.einsum("ii->i", x), floats(3, 3)),
        row(
            "einsum",
            lambda x, y: torch.einsum("b h q d, b h k d -> b h q k", x, y),
            floats(1, 2, 3, 4),
            floats(1, 2, 5, 4),
        ),
        row("bilinear", seeded(nn.Bilinear(3, 4, 2)), floats(5, 3), floats(5, 4)),
        row("cross_entropy_loss", lambda x, i: F.cross_entropy(x, i), positive(3, 4), ints(3, low=0, high=4)),
    ]


ROWS = [*_attention(), *_products()]
