"""Reductions, sorting, running operators, distances."""

from __future__ import annotations

import torch

from tests.converters.frontends.torch.cases import Row, aten, flags, floats, ints, positive, row

X = floats(2, 3, 4)
OTHER = (floats(5, 3, 2),)
TIES = torch.tensor([[1.0, 3, 3, 2], [2, 2, 1, 2]])


def _sums() -> list[Row]:
    rows = []
    for name, function in (("sum", torch.sum), ("mean", torch.mean), ("amax", torch.amax), ("amin", torch.amin)):
        dim = {"sum": "sum.dim_IntList", "mean": "mean.dim"}.get(name, name)
        rows += [
            row(dim, lambda x, f=function: f(x, dim=1), X, also=OTHER),
            row(dim, lambda x, f=function: f(x, dim=(0, -1), keepdim=True), X, also=OTHER),
        ]
    for name, function in (
        ("sum", torch.sum),
        ("mean", torch.mean),
        ("max", torch.max),
        ("min", torch.min),
        ("prod", torch.prod),
    ):
        rows.append(row(name, function, X, also=OTHER))
    for name, function in (("any", torch.any), ("all", torch.all)):
        rows += [
            row(name, function, flags(2, 3)),
            row(f"{name}.dim", lambda x, f=function: f(x, dim=1), flags(2, 3)),
            row(f"{name}.dim", lambda x, f=function: f(x, dim=-1, keepdim=True), ints(2, 3, low=0, high=2)),
            row(f"{name}.dims", lambda x, f=function: f(x, dim=(0, 1)), flags(2, 3, 2)),
        ]
    return [
        *rows,
        row("sum", torch.sum, ints(2, 3)),
        row("sum", torch.sum, flags(2, 3)),
        row("sum.dim_IntList", lambda x: x.sum(1, dtype=torch.float64), ints(2, 3)),
        row("mean.dim", lambda x: x.mean(1, dtype=torch.float64), ints(2, 3)),
        row("prod.dim_int", lambda x: x.prod(1), X),
        row("prod.dim_int", lambda x: x.prod(-1, keepdim=True), ints(2, 3)),
        row("max.dim", lambda x: x.max(1), X),
        row("max.dim", lambda x: x.max(-1, keepdim=True), TIES),
        row("min.dim", lambda x: x.min(1), X),
        row("min.dim", lambda x: x.min(1).values, TIES),
        row("argmax", lambda x: x.argmax(1), X),
        row("argmax", lambda x: x.argmax(), X),
        row("argmax", lambda x: x.argmax(1), TIES),
        row("argmax", lambda x: x.argmax(0, keepdim=True), ints(3, 4)),
        row("argmin", lambda x: x.argmin(-1), X),
        row("argmin", lambda x: x.argmin(), X),
        row("logsumexp", lambda x: x.logsumexp(1), X),
        row("logsumexp", lambda x: x.logsumexp((0, 2), keepdim=True), 400 * X),
        row("aminmax", lambda x: torch.aminmax(x, dim=1), X),
        row("nansum", torch.nansum, torch.tensor([1.0, float("nan"), 2])),
    ]


def _spreads() -> list[Row]:
    return [
        row("var.correction", lambda x: x.var(1, correction=0), X),
        row("var.correction", lambda x: x.var((0, 2), correction=2, keepdim=True), X, also=OTHER),
        row("var.correction", lambda x: aten.var.correction(x), X),
        row("var.dim", lambda x: x.var(1), X, also=OTHER),
        row("var.dim", lambda x: x.var((0, 1), unbiased=False), X),
        row("var.dim", lambda x: x.var(-1), X, also=OTHER),
        row("var", lambda x: aten.var.default(x), X, also=OTHER),
        row("var", lambda x: aten.var.default(x, False), X),
        row("std.correction", lambda x: x.std(1, correction=0), X),
        row("std.dim", lambda x: x.std(1, keepdim=True), X),
        row("std", lambda x: aten.std.default(x), X),
        row("var.correction", lambda x: x.var(), X, also=OTHER),
        row("var_mean.correction", lambda x: torch.var_mean(x, 1, correction=0), X),
        row("std_mean.correction", lambda x: torch.std_mean(x, 1, correction=1), X),
    ]


def _norms() -> list[Row]:
    orders = (2, 1, float("inf"), float("-inf"), 0, 3, 0.5)
    rows = [row("linalg_vector_norm", lambda x, p=p: torch.linalg.vector_norm(x, p, (0, 2)), X) for p in orders]
    return [
        *rows,
        row("linalg_vector_norm", lambda x: torch.linalg.vector_norm(x, 2, (1, 2), keepdim=True), X, also=OTHER),
        row("linalg_vector_norm", lambda x: torch.linalg.vector_norm(x), X),
        row("linalg_vector_norm", lambda x: x.norm(2, (1, 2), keepdim=True), X),
        row("linalg_vector_norm", lambda x: torch.nn.functional.normalize(x, dim=1), X),
        row("norm.ScalarOpt_dim", lambda x: aten.norm.ScalarOpt_dim(x, 2, [1], True), X),
        row("norm.ScalarOpt_dim", lambda x: aten.norm.ScalarOpt_dim(x, None, [1]), X),
        row("norm.Scalar", lambda x: aten.norm.Scalar(x, 3), X),
        row("cosine_similarity", lambda x, y: torch.cosine_similarity(x, y, -1), X, X + 0.3),
        row("pairwise_distance", torch.nn.functional.pairwise_distance, floats(3, 4), floats(3, 4, seed=1)),
        *(
            row("cdist", lambda x, y, p=p: torch.cdist(x, y, p), floats(2, 3, 4), floats(2, 5, 4))
            for p in (1.0, 2.0, 3.0, float("inf"))
        ),
        row("_cdist_forward", lambda x, y: aten._cdist_forward.default(x, y, 2.0, None), floats(3, 4), floats(5, 4)),
        row("_weight_norm", lambda v, g: torch._weight_norm(v, g, 0), floats(3, 4), floats(3, 1)),
    ]


def _orders() -> list[Row]:
    edges = torch.tensor([-1.0, 0.0, 0.5, 2.0], dtype=torch.float64)
    return [
        row("topk", lambda x: x.topk(2), X),
        row("topk", lambda x: x.topk(2, dim=1, largest=False), X),
        row("sort", lambda x: x.sort(1), X),
        row("sort", lambda x: x.sort(-1, descending=True), X, also=OTHER),
        row("sort.stable", lambda x: torch.sort(x, dim=1, stable=True), TIES),
        row("sort.stable", lambda x: torch.sort(x, dim=1, stable=True, descending=True), TIES),
        row("argsort", lambda x: x.argsort(1), X),
        row("argsort.stable", lambda x: torch.argsort(x, dim=1, stable=True), TIES),
        row("cumsum", lambda x: x.cumsum(1), X, also=OTHER),
        row("cumsum", lambda x: x.cumsum(-1), flags(2, 3)),
        row("cumprod", lambda x: x.cumprod(1), X),
        row("cumprod", lambda x: x.cumprod(-1), ints(2, 5)),
        row("logcumsumexp", lambda x: x.logcumsumexp(1), floats(2, 7)),
        row("cummax", lambda x: x.cummax(1).values, floats(2, 7)),
        row("cummin", lambda x: x.cummin(-1).values, ints(2, 7)),
        row("bucketize.Tensor", torch.bucketize, torch.tensor([[-2.0, 0.0], [0.6, 2.0]]), edges),
        row("bucketize.Tensor", lambda x, b: torch.bucketize(x, b, right=True, out_int32=True), floats(5), edges),
        row("searchsorted.Tensor", torch.searchsorted, edges, torch.tensor([[-2.0, 0.0], [0.6, 3.0]])),
        row(
            "searchsorted.Tensor",
            lambda b, x: torch.searchsorted(b, x, side="right"),
            positive(2, 4).sort().values,
            floats(2, 3),
        ),
    ]


ROWS = [*_sums(), *_spreads(), *_norms(), *_orders()]
