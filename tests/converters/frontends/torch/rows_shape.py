"""Views, permutations, joining, splitting, padding; tensors made of sizes."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from tests.converters.frontends.torch.cases import Row, aten, floats, ints, row

X = floats(2, 3, 4)
OTHER = (floats(5, 3, 2),)


def _same() -> list[Row]:
    names = "alias detach contiguous clone lift_fresh_copy resolve_conj resolve_neg positive lift"  # fmt: skip
    kept = [(name, getattr(aten, name).default) for name in names.split() if hasattr(aten, name)]
    rows = [row(name, lambda x, f=function: f(x) * 1, X) for name, function in kept]
    return [
        *rows,
        row("real", lambda x: aten.real.default(x) * 1, X),
        row("expand_copy", lambda x: aten.expand_copy.default(x, [2, 3]), floats(1, 3)),
        row("to.dtype", lambda x: x.to(torch.int64), 3 * X),
        row("to.dtype", lambda x: x.to(torch.bool), ints(5)),
        row("to.dtype", lambda x: x.double(), ints(5)),
        row("to.dtype_layout", lambda x: aten.to.dtype_layout(x, dtype=torch.int32), 3 * X),
        row("to.device", lambda x: aten.to.device(x, "cpu", torch.float64), ints(5)),
        row("to.other", lambda x, y: aten.to.other(x, y), ints(5), floats(1)),
        row("type_as", lambda x, y: x.type_as(y), ints(5), floats(1)),
        row("_to_copy", lambda x: aten._to_copy.default(x, dtype=torch.float64), ints(5)),
        row("_autocast_to_full_precision", lambda x: aten._autocast_to_full_precision.default(x, True, True), X),
        row("view.dtype", lambda x: x.view(torch.float64), X),
    ]


def _views() -> list[Row]:
    return [
        row("view", lambda x: x.view(x.shape[0], -1), X, also=OTHER),
        row("reshape", lambda x: x.reshape(-1, 3), X.transpose(0, 1)),
        row("reshape", lambda x: x.reshape(x.shape[0] * x.shape[2], -1), X, also=OTHER),
        row("reshape", lambda x: x.reshape(x.size(0), x.size(1) // 2, 2, -1), floats(2, 6, 3), also=(floats(3, 6, 5),)),
        row("_unsafe_view", lambda x: aten._unsafe_view.default(x, [6, 4]), X),
        row("_reshape_alias", lambda x: aten._reshape_alias.default(x, [6, 4], [4, 1]), X),
        row("view_as", lambda x, y: x.view_as(y), X, floats(6, 4)),
        row("reshape_as", lambda x, y: x.reshape_as(y), X, floats(6, 4)),
        row("flatten.using_ints", lambda x: x.flatten(1), X, also=OTHER),
        row("flatten.using_ints", lambda x: x.flatten(0, 1), X, also=OTHER),
        row("unflatten.int", lambda x: x.unflatten(2, (2, -1)), X),
        row("expand", lambda x: x.expand(2, -1, 4), floats(1, 3, 1)),
        row("expand", lambda x: x[None].expand(x.shape[1], -1, -1), floats(3, 2), also=(floats(2, 5),)),
        row("expand_as", lambda x, y: x.expand_as(y), floats(3, 1), X),
        row("broadcast_to", lambda x: torch.broadcast_to(x, (2, 3, 4)), floats(4)),
        row("add.Tensor", lambda x, y: torch.add(*torch.broadcast_tensors(x, y)), floats(4), floats(3, 1)),
        row("squeeze", lambda x: x.squeeze(), floats(1, 3, 1)),
        row("squeeze.dim", lambda x: x.squeeze(-1), floats(1, 3, 1)),
        row("squeeze.dim", lambda x: x.squeeze(1), floats(1, 3, 1)),
        row("squeeze.dims", lambda x: x.squeeze((0, 1)), floats(1, 3, 1)),
        row("unsqueeze", lambda x: x.unsqueeze(-1), X),
        row("unsqueeze", lambda x: x[:, None], X),
        row("transpose.int", lambda x: x.transpose(-1, 0), X),
        row("t", lambda x: x.t(), floats(2, 3)),
        row("t", lambda x: x.t(), floats(2)),
        row("swapaxes", lambda x: aten.swapaxes.default(x, 0, 2), X),
        row("numpy_T", lambda x: x.T, floats(2, 3)),
        row("numpy_T", lambda x: aten.numpy_T.default(x), X),
        row("mT", lambda x: x.mT, X),
        row("adjoint", lambda x: x.adjoint(), X),
        row("permute", lambda x: x.permute(2, 0, -2), X),
        row("movedim.int", lambda x: x.movedim(0, -1), X),
        row("movedim.intlist", lambda x: x.movedim((0, 1), (2, 0)), floats(2, 3, 4, 5)),
        row("narrow", lambda x: x.narrow(1, 1, 2), X),
        row("narrow", lambda x: x.narrow(2, 1, x.shape[2] - 2), X, also=(floats(2, 3, 7),)),
        row("select.int", lambda x: x[:, -1], X),
        row("select.int", lambda x: x.select(2, 1), X),
        row("slice.Tensor", lambda x: x[:, 1:, ::2], X, also=(floats(1, 5, 3),)),
        row("slice.Tensor", lambda x: x[:, :-1, -3:-1], X, also=(floats(1, 5, 6),)),
        row("slice.Tensor", lambda x: x[:, : x.shape[1] // 2], floats(2, 5), also=(floats(3, 8),)),
        row(
            "slice.Tensor",
            lambda x: x[:, : -((-x.shape[1]) // 2)],
            floats(2, 5),
            also=[(floats(3, 8),), (floats(1, 7),)],
        ),
        row("diagonal", lambda x: x.diagonal(), floats(3, 4)),
        row("diagonal", lambda x: x.diagonal(), floats(3, 4), also=(floats(5, 4),)),
        row("diagonal", lambda x: x.diagonal(-2, 1, 2), floats(2, 4, 5), also=(floats(3, 7, 3),)),
        row("diagonal", lambda x: x.diagonal(1, 1, 2), floats(2, 4, 5), also=(floats(3, 3, 7),)),
        row("diagonal", lambda x: x.diagonal(1, 0, 2), X),
        row("diagonal", lambda x: x.diagonal(-1, 2, 1), X),
        row("unfold", lambda x: x.unfold(1, 3, 2), floats(2, 8, 3), also=(floats(1, 9, 2),)),
        row("unfold", lambda x: x.unfold(-1, 2, 1), floats(2, 5)),
        row("flip", lambda x: x.flip(0, -1), X),
        row("roll", lambda x: x.roll((7, -1), (1, 2)), X, also=OTHER),
        row("roll", lambda x: x.roll(1, 1), X),
        row("roll", lambda x: x.roll((-1, 5), (0, 2)), X),
        row("roll", lambda x: x.roll(3), X),
        row("repeat", lambda x: x.repeat(2, 1, 3), floats(2, 3)),
        row("repeat", lambda x: x.repeat(x.shape[1], 1), floats(2, 3), also=(floats(1, 4),)),
        row("tile", lambda x: torch.tile(x, (2,)), floats(2, 3)),
        row("repeat_interleave.self_int", lambda x: x.repeat_interleave(2, 1), floats(2, 3)),
        row("repeat_interleave.self_int", lambda x: x.repeat_interleave(3), floats(2, 3)),
    ]


def _joined() -> list[Row]:
    return [
        row("cat", lambda x, y: torch.cat([x, y], 1), X, floats(2, 1, 4), also=(floats(3, 3, 2), floats(3, 1, 2))),
        row("cat", lambda x, y: torch.cat([x, y], -1), ints(2, 3), floats(2, 1)),
        row("cat", lambda x: torch.cat([x, torch.zeros(0, dtype=x.dtype)]), X),
        row("concat", lambda x, y: aten.concat.default([x, y]), X, X),
        row("concatenate", lambda x, y: aten.concatenate.default([x, y]), X, X),
        row("stack", lambda x, y: torch.stack([x, y], -1), X, X + 1),
        row("stack", lambda x, y: torch.stack([x, y]), ints(3), floats(3)),
        row("split.Tensor", lambda x: x.split(3, 2)[1], floats(1, 2, 7)),
        row("split.Tensor", lambda x: torch.cat(x.split(2, 1)[::-1], 1), floats(2, 4), also=(floats(5, 4),)),
        row("split_with_sizes", lambda x: x.split([1, 3], 2)[1], X),
        row("split.sizes", lambda x: aten.split.sizes(x, [1, 3], 2)[1], X),
        row("chunk", lambda x: x.chunk(2, 1)[1], floats(2, 5)),
        row("chunk", lambda x: x.chunk(3, -1), floats(2, 6), also=(floats(4, 6),)),
        row("unsafe_chunk", lambda x: aten.unsafe_chunk.default(x, 2, 1)[1], floats(2, 5)),
        row("unsafe_split.Tensor", lambda x: aten.unsafe_split.Tensor(x, 2, 1)[1], floats(2, 5)),
        row("tensor_split.sections", lambda x: x.tensor_split(3, 1)[2], floats(2, 5)),
        row("unbind.int", lambda x: x.unbind(1)[2], X),
        row("unbind.int", lambda x: torch.stack(x.unbind(-1)), X),
        row("meshgrid.indexing", lambda x, y: torch.meshgrid(x, y, indexing="xy"), floats(2), floats(3)),
        row("meshgrid.indexing", lambda x, y: torch.meshgrid(x, y, indexing="ij"), floats(2), floats(3)),
        row("meshgrid", lambda x, y: aten.meshgrid.default([x, y]), floats(2), floats(3)),
        row("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), floats(2, 12, 3, 4), also=(floats(1, 12, 5, 2),)),
        row("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), floats(3, 4, 6)),
        row("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), floats(12, 3, 4)),
        row("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), floats(2, 3, 4, 6), also=(floats(3, 3, 2, 8),)),
        row("channel_shuffle", lambda x: aten.channel_shuffle.default(x, 3), floats(2, 6, 3, 4)),
    ]


def _padded() -> list[Row]:
    rows = []
    for mode in ("reflect", "replicate", "circular"):
        rows += [
            row("pad", lambda x, m=mode: F.pad(x, (2, 1), mode=m), floats(1, 2, 5)),
            row(
                "pad", lambda x, m=mode: F.pad(x, (2, 1, 0, 3), mode=m), floats(1, 2, 5, 6), also=(floats(2, 2, 4, 7),)
            ),
        ]
    for rank in (1, 2, 3):
        for name in ("reflection", "replication"):
            function = getattr(aten, f"{name}_pad{rank}d").default
            rows.append(
                row(f"{name}_pad{rank}d", lambda x, f=function, r=rank: f(x, [1, 2] * r), floats(1, 2, *[4] * rank))
            )
    return [
        *rows,
        row("pad", lambda x: F.pad(x, (1, 2, 0, 1)), X),
        row("pad", lambda x: F.pad(x, (1, 2), value=3.5), X),
        row("pad", lambda x: F.pad(x, (1, 2), value=3), ints(4)),
        row("pad", lambda x: F.pad(x, (-1, 1)), X),
        row("pad", lambda x: F.pad(x, (0, -x.shape[-1] % 4)), floats(2, 5), also=[(floats(2, 6),), (floats(2, 8),)]),
        row("constant_pad_nd", lambda x: aten.constant_pad_nd.default(x, [1, 2], 0.5), X),
    ]


def _created() -> list[Row]:
    f64 = torch.float64
    return [
        row("zeros", lambda x: torch.zeros(x.shape[0], 2, dtype=f64) + x, floats(3, 1), also=(floats(4, 1),)),
        row("ones", lambda x: torch.ones(2, dtype=f64) + x, floats(3, 1)),
        row("full", lambda x: torch.full((2, 3), 1.5, dtype=f64) + x, floats(3)),
        row("full", lambda x: torch.full((2,), 3) + x, ints(2)),
        row("zeros_like", torch.zeros_like, X, also=OTHER),
        row("ones_like", torch.ones_like, X),
        row("full_like", lambda x: torch.full_like(x, 2.5), X),
        row("new_zeros", lambda x: x.new_zeros(2, 3), X),
        row("new_ones", lambda x: x.new_ones(2, 3), X),
        row("new_full", lambda x: x.new_full((2, 3), 0.5), X),
        row("empty.memory_format", lambda x: torch.empty(2, 3, dtype=f64).fill_(1) + x, floats(3)),
        row("empty_like", lambda x: torch.empty_like(x).copy_(x), X),
        row("new_empty", lambda x: x.new_empty(2).zero_(), X),
        row("scalar_tensor", lambda x: torch.scalar_tensor(2.5, dtype=f64) * x, X),
        row("arange", lambda x: torch.arange(x.shape[1]) + x, floats(2, 3), also=(floats(1, 6),)),
        row("arange.start", lambda x: torch.arange(2, 5) * x, floats(3)),
        row(
            "arange.start_step",
            lambda x: torch.arange(0, x.shape[1], 2),
            floats(2, 5),
            also=[(floats(1, 4),), (floats(1, 1),)],
        ),
        row("arange.start_step", lambda x: torch.arange(5, 0, -2, dtype=f64) + x, floats(1)),
        row("arange", lambda x: torch.arange(4.0, dtype=f64) / 3 + x, floats(1)),
        row("linspace", lambda x: torch.linspace(-1, 1, 7, dtype=f64) + x, floats(1)),
        row(
            "linspace",
            lambda x: torch.linspace(0, 1, x.shape[0], dtype=f64) + x,
            floats(5),
        ),
        row("eye", lambda x: torch.eye(3, dtype=f64) + x, floats(1)),
        row("eye", lambda x: torch.eye(x.shape[0], dtype=f64) + x, floats(3, 1), also=(floats(4, 1),)),
        row("eye.m", lambda x: torch.eye(3, 2, dtype=f64) + x, floats(1)),
        row("tril_indices", lambda x: x[tuple(torch.tril_indices(3, 3))], floats(3, 3)),
        row("triu_indices", lambda x: x[tuple(torch.triu_indices(3, 3, 1))], floats(3, 3)),
    ]


ROWS = [*_same(), *_views(), *_joined(), *_padded(), *_created()]
