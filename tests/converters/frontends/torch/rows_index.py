"""Indexing, gathering, scattering, writing in place."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.converters.frontends.torch.cases import Row, aten, flags, floats, ints, row

PICK = ints(4, low=0, high=3)
IMAGE = floats(1, 3, 32, 32)


def _changed(change):  # type: ignore[no-untyped-def]
    """A copy of the first input, changed in place."""

    def function(x: Tensor, *rest: Tensor) -> Tensor:
        y = x * 2
        change(y, *rest)
        return y * 3

    return function


def _set(*index, value):  # type: ignore[no-untyped-def]
    def change(x: Tensor, *rest: Tensor) -> None:
        x[index if len(index) > 1 else index[0]] = value

    return change


def _assign(x: Tensor, *rest: Tensor) -> None:
    x[:, :, rest[0], rest[1]] = rest[2]


def _add_masked(x: Tensor, mask: Tensor) -> None:
    x[mask] += 1


def _views(x: Tensor) -> Tensor:
    y = x * 1
    half = y.transpose(0, 1).reshape(3, 2, 2)  # a copy, for y is not contiguous any more
    half.add_(1)
    flat = y.view(-1)
    flat[1:3].mul_(10)
    y.unsqueeze(0).squeeze(0).sub_(0.5)
    return y + flat.view(4, 3).sum() + half.sum()


def _pieces(x: Tensor) -> Tensor:
    y = x * 1
    first, second = y.chunk(2, 1)
    first.mul_(second)
    second.add_(1)
    y.diagonal(0, 0, 1).zero_()
    return torch.cat([y, first], 1)


def _order(x: Tensor) -> Tensor:
    y = x + 0
    before = y.sum()
    z = y.add_(1)
    y.mul_(2)
    return z + before + F.dropout(y, 0.5, False).add_(1) + y


def _indexing() -> list[Row]:
    x, i, j = floats(3, 4, 5), ints(2, 3, low=-3, high=3), ints(3, low=-4, high=4)
    return [
        row("index.Tensor", lambda x, i: x[i], x, i, also=(floats(3, 2, 2), ints(4, 1, low=0, high=3))),
        row("index.Tensor", lambda x, i: x[:, i], x, j),
        row("index.Tensor", lambda x, i, j: x[i, j], x, i, j),
        row("index.Tensor", lambda x, i, j: x[:, i, j], floats(2, 3, 4, 5), i, j),
        row("index.Tensor", lambda x, i, j: x[i, :, j], x, i, j),
        row("index.Tensor", lambda x, i, j: x[:, i, :, j], floats(2, 3, 4, 5), i, j),
        row("index.Tensor", lambda x, i: x[i.int(), 1], x, j[:2] % 3),
        row("index.Tensor", lambda x, m: x[m], x, flags(3)),
        row("index.Tensor", lambda x, m: x[m], x, flags(3, 4)),
        row("index.Tensor", lambda x, m: x[:, m], x, flags(4)),
        row("index.Tensor", lambda x, m: x[:, m], x, flags(4, 5)),
        row("index.Tensor", lambda x, m, j: x[m, j[:1]], x, flags(3), j),
        row("index.Tensor", lambda x: x[x > 0].sum(), x, also=(floats(2, 2, 2),)),
        row("index.Tensor", lambda x: x[[0, 2], 1], x),
        row("_unsafe_index.Tensor", lambda x, i: aten._unsafe_index.Tensor(x, [None, i]), x, j),
        row("index_select", lambda x, i: x.index_select(1, i), x, j % 4),
        row("gather", lambda x, i: x.gather(1, i), x, ints(3, 2, 5, low=0, high=4)),
        row("gather", lambda x, i: x.gather(-1, i), x, ints(2, 2, 3, low=0, high=5)),
        row("take", torch.take, x, ints(2, 3, low=0, high=60)),
        row("take_along_dim", lambda x, i: x.take_along_dim(i, 1), x, ints(3, 1, 5, low=0, high=4)),
        row("embedding", lambda w, i: F.embedding(i, w), floats(6, 3), ints(2, 3, low=0, high=6)),
        row(
            "embedding", nn.Embedding(6, 3, padding_idx=0), ints(2, 3, low=0, high=6), also=(ints(1, 5, low=0, high=6),)
        ),
        row("masked_select", torch.masked_select, x, flags(4, 1)),
        row("nonzero", lambda x: (x > 0).nonzero(), floats(3, 4)),
        row("one_hot", lambda i: F.one_hot(i, 4), PICK),
        row("tril", lambda x: x.tril(), floats(2, 3, 4)),
        row("tril", lambda x: x.tril(-1), floats(4, 4)),
        row("triu", lambda x: x.triu(1), floats(4, 3)),
    ]


def _bags() -> list[Row]:
    bags = ints(3, 4, low=0, high=6)
    rows = []
    for mode in ("sum", "mean", "max"):
        bag = nn.EmbeddingBag(6, 3, mode=mode)
        rows.append(
            row(
                "embedding_bag.padding_idx",
                bag,
                bags,
                also=[(ints(1, 5, low=0, high=6),), (ints(5, 2, low=0, high=6),)],
            )
        )
    weighted = nn.EmbeddingBag(6, 3, mode="sum")
    return [
        *rows,
        row("embedding_bag.padding_idx", nn.EmbeddingBag(6, 3), bags),
        row(
            "embedding_bag.padding_idx",
            lambda w, i, s: F.embedding_bag(i, w, per_sample_weights=s, mode="sum"),
            weighted.weight.detach(),
            bags,
            floats(3, 4),
        ),
        row(
            "embedding_bag",
            lambda w, i: aten.embedding_bag.default(w, i, torch.arange(0, 12, 4))[0],
            floats(6, 3),
            bags.view(-1),
        ),
        row(
            "_embedding_bag",
            lambda w, i: aten._embedding_bag.default(w, i, torch.arange(0, 12, 4))[0],
            floats(6, 3),
            bags.view(-1),
        ),
        row(
            "_embedding_bag_forward_only",
            lambda w, i: aten._embedding_bag_forward_only.default(w, i, torch.arange(0, 12, 4))[0],
            floats(6, 3),
            bags.view(-1),
        ),
    ]


def _scattering() -> list[Row]:
    x, index, source = floats(3, 5), ints(2, 4, low=0, high=3), floats(2, 4, seed=1)
    unique = torch.tensor([[0, 1, 2, 0, 1], [2, 0, 1, 1, 0]])
    rows = [
        row("scatter_reduce.two", lambda x, i, s, r=r: x.scatter_reduce(0, i, s, r), x, index, source)
        for r in ("sum", "prod", "amax", "amin", "mean")
    ]
    rows += [
        row(
            "scatter_reduce.two",
            lambda x, i, s, r=r: x.scatter_reduce(0, i, s, r, include_self=False),
            x,
            index,
            source,
        )
        for r in ("sum", "prod", "amax", "amin", "mean")
    ]
    rows += [
        row("scatter_reduce.two", lambda x, i, s, o=o: x.scatter_reduce(0, i, s, "mean", include_self=o),
            ints(3, 5, low=-9, high=9), index, ints(2, 4, low=-9, high=9))
        for o in (True, False)
    ]  # fmt: skip
    return [
        *rows,
        row("scatter.reduce", lambda x, i, s: x.scatter(0, i, s, reduce="add"), x, index, source),
        row("scatter.src", lambda x, i, s: x.scatter(0, i, s), x, unique, floats(2, 5)),
        row("scatter.src", lambda x, i, s: x.scatter(1, i, s), x, torch.tensor([[4, 2], [0, 1]]), floats(3, 5)),
        row("scatter.value", lambda x, i: x.scatter(1, i, 2.5), x, index),
        row("scatter.value", lambda x, i: x.scatter(1, i, 1), x, index),
        row("scatter_add", lambda x, i, s: x.scatter_add(0, i, s), x, index, source),
        row("scatter_add", lambda x, i, s: x.scatter_add(1, i, s), x, index, floats(3, 5)),
        row("index_add", lambda x, i, s: x.index_add(0, i, s), x, PICK, floats(4, 5)),
        row("index_add", lambda x, i, s: x.index_add(1, i, s, alpha=2), x, PICK, floats(3, 4)),
        row("index_copy", lambda x, i, s: x.index_copy(1, i, s), x, torch.tensor([4, 0]), floats(3, 2)),
        row("index_fill.int_Scalar", lambda x, i: x.index_fill(1, i, 7), x, torch.tensor([4, 0])),
        row("index_fill.int_Scalar", lambda x, i: x.index_fill(0, i, -2), floats(4, 3, 2), torch.tensor([2, 3])),
        row("index_fill.int_Scalar", lambda x, i: x.index_fill(-1, i, 0.5), floats(4, 3, 2), torch.tensor([0])),
        row("index_fill.int_Tensor", lambda x, i, v: x.index_fill(1, i, v), x, torch.tensor([1, 1]), torch.tensor(0.3)),
        row("masked_scatter", lambda x, s: x.masked_scatter(x > 0, s), x, floats(5, 4, seed=1)),
        row("masked_scatter", lambda x, m, s: x.masked_scatter(m, s), x, floats(5) > 0, floats(15, seed=1)),
        row("select_scatter", lambda x, s: x.select_scatter(s, 1, -2), x, floats(3)),
        row("slice_scatter", lambda x, s: x.slice_scatter(s, 1, 1, 5, 2), x, floats(3, 2)),
        row("index_put", lambda x, i, s: x.index_put((i,), s), x, torch.tensor([2, 0]), floats(2, 5)),
        row("index_put", lambda x, i, s: x.index_put((i,), s, accumulate=True), x, PICK, floats(4, 5)),
        row("index_put", lambda x, m: x.index_put((m,), torch.tensor(1.5, dtype=torch.float64)), x, flags(3, 5)),
        row(
            "index_put",
            lambda x, m: x.index_put((m,), torch.tensor(1.5, dtype=torch.float64), accumulate=True),
            x,
            flags(3),
        ),
        row(
            "_unsafe_index_put",
            lambda x, i, s: aten._unsafe_index_put(x, [None, i], s),
            x,
            torch.tensor([2, 0]),
            floats(3, 2),
        ),
    ]


def _in_place() -> list[Row]:
    ys, xs = torch.tensor([3, 0, 7]), torch.tensor([1, 5, 2])
    canvas, x = floats(1, 4, 9, 9), floats(4, 3)
    return [
        row("relu", _changed(lambda x: x[:, 1:2, 16:25, 8::2].relu_()), IMAGE, also=(floats(2, 3, 40, 33),)),
        row("index_put", _changed(_add_masked), x, flags(4, 3)),
        row("index_put", _changed(_add_masked), floats(4, 3, 2), flags(4, 3)),
        row("index_put", _changed(_assign), canvas, ys, xs, floats(1, 4, 3)),
        row("index_put", _changed(_assign), canvas, ys, xs, floats(3)),
        row(
            "index_put",
            lambda x, m, v: x.clone().index_put_((m,), v),
            x,
            torch.tensor([True, False, True, True]),
            floats(3, 3),
        ),
        row("index_put", lambda x, m, v: x.clone().index_put_((m,), v), x, flags(4), floats(3)),
        row(
            "index_put",
            lambda x, m, v: aten.index_put_.default(x.clone(), [None, m], v),
            x,
            torch.tensor([True, False, True]),
            floats(4, 2),
        ),
        row("copy", _changed(lambda x, y: x[1:3].copy_(y)), x, floats(2, 1)),
        row("fill.Tensor", _changed(_set(slice(None), -1, value=0.5)), x),
        row("fill.Tensor", _changed(_set(slice(1, None, 2), slice(None, 2), value=torch.tensor(3.0))), x),
        row("copy", _changed(lambda x, y: x.t()[0].copy_(y)), x, floats(4)),
        row("fill.Scalar", _changed(lambda x: x[:, 0].fill_(2)), x),
        row("fill.Tensor", _changed(lambda x: x[:, 0].fill_(torch.tensor(2.5))), x),
        row("fill.Scalar", lambda x: aten.fill.Scalar(x, 3), x),
        row("zero", _changed(lambda x: x[-1].zero_()), x),
        row("zero", lambda x: aten.zero.default(x), x),
        row("view", _views, floats(4, 3)),
        row("chunk", _pieces, floats(4, 4)),
        row("mul.Tensor", _order, x),
        row("add.Tensor", _changed(lambda x, y: x.add_(y)), floats(3), ints(3)),
        row("mul.Tensor", _changed(lambda x: x.split([1, 2], 1)[1].mul_(5)), x),
        row("mul.Tensor", _changed(lambda x: x.unbind(0)[2].mul_(5)), x),
        row("clamp", _changed(lambda x: x.narrow(1, 1, 2).clamp_(-0.5, 0.5)), x),
        row("masked_fill.Scalar", _changed(lambda x, m: x.masked_fill_(m, 9)), x, flags(4, 3)),
        row("add.Tensor", lambda x: torch.zeros_like(x).add_(x, alpha=2), x),
    ]


ROWS = [*_indexing(), *_bags(), *_scattering(), *_in_place()]
