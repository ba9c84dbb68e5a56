"""Convolutions, pools, norms, resizing, recurrent layers, attention, matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.converters.frontends.torch.cases import Row, aten, floats, row, seeded

CONV = (F.conv1d, F.conv2d, F.conv3d)
SPACE = (9, 8, 7)


def _image(rank: int, channels: int = 4, batch: int = 2, shrink: int = 0) -> torch.Tensor:
    return floats(batch, channels, *(size - shrink for size in SPACE[:rank]))


def _convolutions() -> list[Row]:
    rows = []
    for rank, conv in enumerate(CONV, 1):
        name, weight = f"conv{rank}d", floats(6, 4, *[3] * rank)
        other = (_image(rank, batch=1, shrink=1),)
        settings: list[dict[str, Any]] = [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}]
        rows += [row(name, lambda x, f=conv, s=s, w=weight: f(x, w, **s), _image(rank), also=other) for s in settings]
        rows += [
            row(f"{name}.padding", lambda x, w, f=conv, p=p: f(x, w, padding=p), _image(rank), weight)
            for p in ("same", "valid")
        ]
        rows.append(
            row(
                f"{name}.padding", lambda x, w, f=conv: f(x, w, padding="same"), _image(rank), floats(6, 4, *[4] * rank)
            )
        )
        rows.append(
            row(name, lambda x, w, b, f=conv: f(x, w, b, groups=2), _image(rank), floats(6, 2, *[3] * rank), floats(6))
        )
        rows.append(
            row(name, lambda x, w, f=conv: f(x, w, groups=4, padding=1), _image(rank), floats(8, 1, *[3] * rank))
        )
        rows.append(row(name, lambda x, w, f=conv: f(x, w), _image(rank)[0], weight))
        rows += _transposed(rank)
    return [
        *rows,
        row(
            "conv2d",
            lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(0, 2), dilation=(1, 2)),
            _image(2),
            floats(3, 4, 2, 3),
        ),
        row("conv3d", nn.Conv3d(4, 3, (1, 3, 2), bias=False), _image(3)),
        row(
            "convolution",
            lambda x, w: aten.convolution.default(x, w, None, [2], [1], [1], False, [0], 1),
            _image(1),
            floats(3, 4, 3),
        ),
        row(
            "convolution",
            lambda x, w: aten.convolution.default(x, w, None, [2], [1], [1], True, [1], 1),
            _image(1),
            floats(4, 3, 3),
        ),
    ]


def _transposed(rank: int) -> list[Row]:
    name = f"conv_transpose{rank}d" + (".input" if rank > 1 else "")
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    settings: list[tuple[int, dict[str, Any]]] = [
        (3, {}),
        (3, {"stride": 2, "padding": 1}),
        (4, {"stride": 2, "padding": 1}),
        (3, {"stride": 2, "padding": 1, "output_padding": 1}),
        (2, {"stride": 3}),
        (3, {"dilation": 2, "padding": 1}),
    ]
    rows = [
        row(name, lambda x, w, b, s=s: function(x, w, b, **s), _image(rank), floats(4, 3, *[k] * rank), floats(3))
        for k, s in settings
    ]
    rows.append(row(name, lambda x, w: function(x, w, groups=2, stride=2), _image(rank), floats(4, 2, *[3] * rank)))
    return [*rows, row(name, lambda x, w: function(x, w), _image(rank)[0], floats(4, 2, *[3] * rank))]


def _pools() -> list[Row]:
    rows = []
    for rank in (1, 2, 3):
        peak, mean = getattr(F, f"max_pool{rank}d"), getattr(F, f"avg_pool{rank}d")
        x, other = _image(rank) - 9, (_image(rank, batch=1, shrink=1) - 9,)
        for kernel, stride, padding, dilation in ((2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2), (2, 3, 0, 1)):
            for ceil in (False, True):
                rows.append(
                    row(
                        f"max_pool{rank}d",
                        lambda x, f=peak, s=(kernel, stride, padding, dilation, ceil): f(x, *s),
                        x,
                        also=other,
                    )
                )
        for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 3, 1), (2, 3, 1)):
            for ceil in (False, True):
                for counted in (False, True):
                    rows.append(
                        row(
                            f"avg_pool{rank}d",
                            lambda x, f=mean, s=(kernel, stride, padding, ceil, counted): f(x, *s),
                            x,
                            also=other,
                        )
                    )
        rows.append(row(f"max_pool{rank}d", lambda x, f=peak: f(x, 2), _image(rank)[0]))
        adaptive, highest = getattr(F, f"adaptive_avg_pool{rank}d"), getattr(F, f"adaptive_max_pool{rank}d")
        for size in (1, 3, 4, 7):
            rows.append(
                row(f"adaptive_avg_pool{rank}d", lambda x, f=adaptive, s=size: f(x, s), floats(2, 3, *[12] * rank))
            )
            rows.append(
                row(f"adaptive_max_pool{rank}d", lambda x, f=highest, s=size: f(x, s), floats(2, 3, *[12] * rank))
            )
        rows.append(row(f"adaptive_avg_pool{rank}d", lambda x, f=adaptive: f(x, 1), _image(rank), also=other))
        if rank > 1:
            inner = getattr(aten, f"_adaptive_avg_pool{rank}d").default
            rows.append(
                row(f"_adaptive_avg_pool{rank}d", lambda x, f=inner, r=rank: f(x, [2] * r), floats(2, 3, *[12] * rank))
            )
            pick = getattr(aten, f"max_pool{rank}d_with_indices").default
            rows.append(row(f"max_pool{rank}d_with_indices", lambda x, f=pick, r=rank: f(x, [2] * r)[0], x))
    rows.append(row("max_pool1d_with_indices", lambda x: F.max_pool1d(x, 2, return_indices=True)[0], _image(1)))
    grid = torch.arange(1.0, 17).view(1, 1, 4, 4)
    return [
        *rows,
        row("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, True, True), grid),
        row("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), _image(2)),
        row("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (None, 2)), _image(2)),
        row("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (7, 7)), floats(1, 3, 12, 12)),
        *(
            row("adaptive_avg_pool2d", lambda x, s=s: F.adaptive_avg_pool2d(x, s), floats(1, 8, 13, 13))
            for s in (2, 3, 6)
        ),
    ]


def _norms() -> list[Row]:
    rows = []
    for rank, (batch, instance) in enumerate(
        ((nn.BatchNorm1d, nn.InstanceNorm1d), (nn.BatchNorm2d, nn.InstanceNorm2d), (nn.BatchNorm3d, nn.InstanceNorm3d)),
        1,
    ):
        x, other = _image(rank), (_image(rank, batch=3, shrink=1),)
        rows += [
            row("batch_norm", seeded(batch(4, eps=1e-2)), x, also=other),
            row("batch_norm", seeded(batch(4, affine=False)), x),
            row("batch_norm", seeded(batch(4, track_running_stats=False)), x, also=other),
            row("instance_norm", seeded(instance(4, affine=True)), x, also=other),
            row("instance_norm", seeded(instance(4)), x),
            row("instance_norm", seeded(instance(4, affine=True, track_running_stats=True)), x),
        ]
    norm = aten._native_batch_norm_legit_no_training.default
    return [
        *rows,
        row("batch_norm", seeded(nn.BatchNorm1d(4)), floats(3, 4), also=(floats(1, 4),)),
        row("group_norm", seeded(nn.GroupNorm(2, 4)), _image(2), also=(_image(2, batch=1, shrink=1),)),
        row("group_norm", seeded(nn.GroupNorm(2, 4, affine=False)), _image(1)),
        row("group_norm", seeded(nn.GroupNorm(4, 4)), floats(3, 4)),
        row("layer_norm", seeded(nn.LayerNorm(6, eps=1e-12)), 1e-4 * floats(2, 3, 6), also=(1e-4 * floats(1, 5, 6),)),
        row("layer_norm", seeded(nn.LayerNorm((3, 6))), floats(2, 3, 6)),
        row("layer_norm", seeded(nn.LayerNorm(6, bias=False)), floats(2, 6)),
        row("layer_norm", lambda x: F.layer_norm(x, (6,)), floats(2, 6)),
        row("rms_norm", seeded(nn.RMSNorm(6, eps=1e-3)), floats(2, 3, 6)),
        row("rms_norm", lambda x: F.rms_norm(x, (6,)), floats(2, 6)),
        row(
            "_native_batch_norm_legit_no_training",
            lambda x, m: norm(x, None, None, m, m.abs() + 1, 0.1, 1e-3)[0],
            _image(1),
            floats(4),
        ),
        row("native_layer_norm", lambda x: aten.native_layer_norm.default(x, [6], None, None, 1e-3)[0], floats(2, 6)),
        row(
            "native_group_norm", lambda x: aten.native_group_norm.default(x, None, None, 2, 4, 9, 2, 1e-3)[0], _image(1)
        ),
        row("_weight_norm", nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), floats(2, 4)),
        row("linear", nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)).eval(), floats(2, 4)),
    ]


def _resizing() -> list[Row]:
    rows = []
    kinds: dict[str, list[tuple[int, str]]] = {
        "nearest": [(1, "upsample_nearest1d"), (2, "upsample_nearest2d"), (3, "upsample_nearest3d")],
        "nearest-exact": [
            (1, "_upsample_nearest_exact1d"),
            (2, "_upsample_nearest_exact2d"),
            (3, "_upsample_nearest_exact3d"),
        ],
        "linear": [(1, "upsample_linear1d")],
        "bilinear": [(2, "upsample_bilinear2d")],
        "trilinear": [(3, "upsample_trilinear3d")],
        "bicubic": [(2, "upsample_bicubic2d")],
    }
    for mode, names in kinds.items():
        for rank, name in names:
            x = _image(rank, channels=2)
            for align in (None,) if mode.startswith("nearest") else (False, True):
                more = {} if align is None else {"align_corners": align}
                for size in (5, 8, 13, 18):
                    rows.append(
                        row(
                            f"{name}.vec",
                            lambda x, s=size, r=rank, m=mode, a=more: F.interpolate(x, [s] * r, mode=m, **a),
                            x,
                        )
                    )
                for scale in (2, 0.5, 1.75):
                    rows.append(
                        row(
                            f"{name}.vec",
                            lambda x, s=scale, m=mode, a=more: F.interpolate(x, scale_factor=s, mode=m, **a),
                            x,
                        )
                    )
                rows.append(
                    row(
                        f"{name}.vec",
                        lambda x, m=mode, a=more: F.interpolate(x, scale_factor=2, mode=m, **a),
                        x,
                        also=(_image(rank, 2, 1, 1),),
                    )
                )
                function = getattr(aten, name).default
                flag = [] if align is None else [align]
                rows.append(row(name, lambda x, f=function, r=rank, a=flag: f(x, [6] * r, *a), x))
    for mode, name in (("bilinear", "_upsample_bilinear2d_aa"), ("bicubic", "_upsample_bicubic2d_aa")):
        for size in ((4, 3), (18, 16), (5, 11)):
            rows.append(
                row(f"{name}.vec", lambda x, s=size, m=mode: F.interpolate(x, s, mode=m, antialias=True), _image(2, 2))
            )
        function = getattr(aten, name).default
        rows.append(row(name, lambda x, f=function: f(x, [4, 5], False), _image(2, 2)))
    chain = [(11, 7), (5, 9), (13, 4), (6, 6)]

    def chained(x: torch.Tensor) -> torch.Tensor:
        for size in chain:
            x = F.interpolate(x, size, mode="bilinear", align_corners=False)
        return x

    rows.append(row("upsample_bilinear2d.vec", chained, _image(2)))
    rows.append(
        row(
            "upsample_bilinear2d.vec",
            lambda x, y: F.interpolate(x, y.shape[2:], mode="bilinear"),
            _image(2),
            floats(1, 1, 13, 5),
            also=(_image(2, 4, 1, 1), floats(2, 1, 4, 12)),
        )
    )
    return [*rows, *_sampling()]


def _sampling() -> list[Row]:
    rows = []
    grid = 1.3 * torch.tanh(floats(2, 5, 4, 2))
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                rows.append(
                    row("grid_sampler", lambda x, g, s=(mode, padding, align): F.grid_sample(x, g, *s), _image(2), grid)
                )
    volume = 1.2 * torch.tanh(floats(2, 3, 2, 4, 3))
    return [
        *rows,
        row("grid_sampler", lambda x, g: F.grid_sample(x, g, align_corners=False), _image(3), volume),
        row("grid_sampler_2d", lambda x, g: aten.grid_sampler_2d.default(x, g, 0, 0, False), _image(2), grid),
        row("grid_sampler_3d", lambda x, g: aten.grid_sampler_3d.default(x, g, 0, 1, True), _image(3), volume),
        *(
            row(
                "affine_grid_generator", lambda t, a=a: F.affine_grid(t, [2, 3, 4, 5], align_corners=a), floats(2, 2, 3)
            )
            for a in (False, True)
        ),
        row("affine_grid_generator", lambda t: F.affine_grid(t, [2, 3, 4, 5, 2], align_corners=False), floats(2, 3, 4)),
        row("im2col", lambda x: F.unfold(x, 3, padding=1, stride=2), _image(2), also=(_image(2, 4, 1, 1),)),
        row("im2col", lambda x: F.unfold(x, (2, 3), dilation=(2, 1), padding=(0, 1)), _image(2)),
        row("col2im", lambda x: F.fold(x, (6, 5), 2, stride=2, padding=(0, 1)), floats(2, 12, 9)),
        row("col2im", lambda x: F.fold(x, (4, 5), (2, 3), padding=1), floats(2, 12, 25)),
    ]


def _recurrent() -> list[Row]:
    rows = []
    for kind, op in ((nn.LSTM, "lstm.input"), (nn.GRU, "gru.input"), (nn.RNN, "rnn_tanh.input")):
        settings: list[dict[str, Any]] = [
            {},
            {"bidirectional": True, "batch_first": True},
            {"num_layers": 2, "dropout": 0.2},
            {"bias": False},
        ]
        for setting in settings:
            rows.append(row(op, seeded(kind(3, 4, **setting)), floats(5, 2, 3), also=(floats(3, 1, 3),)))
        with_state: Callable[..., Any] = seeded(kind(3, 4))
        state = floats(1, 2, 4)
        rows.append(row(op, with_state, floats(5, 2, 3), (state, state + 1) if kind is nn.LSTM else state))
    rows.append(row("rnn_relu.input", seeded(nn.RNN(3, 4, nonlinearity="relu", bidirectional=True)), floats(5, 2, 3)))
    x, h = floats(2, 3), floats(2, 4)
    return [
        *rows,
        row("lstm_cell", seeded(nn.LSTMCell(3, 4)), x, (h, h + 1)),
        row("gru_cell", seeded(nn.GRUCell(3, 4)), x, h),
        row("gru_cell", seeded(nn.GRUCell(3, 4, bias=False)), x, h),
        row("rnn_tanh_cell", seeded(nn.RNNCell(3, 4)), x, h),
        row("rnn_relu_cell", seeded(nn.RNNCell(3, 4, nonlinearity="relu")), x, h),
    ]


ROWS = [*_convolutions(), *_pools(), *_norms(), *_resizing(), *_recurrent()]
