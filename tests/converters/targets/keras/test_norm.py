"""Normalisation and dropout against torch in double precision, channels first and last, all sizes alike too."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import torch
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise
from tests.converters.targets.keras.nodes import Case, check, graph_of, ported

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
BATCH = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
INSTANCE = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}
CHANNELS = {1: nn.Dropout1d, 2: nn.Dropout2d, 3: nn.Dropout3d}


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def norms(rank: int) -> dict[str, nn.Module]:
    return {
        "batch": BATCH[rank](8, eps=1e-4, momentum=0.2),
        "batch without affine": BATCH[rank](8, affine=False),
        "instance": INSTANCE[rank](8),
        "instance with affine": INSTANCE[rank](8, affine=True),
        "group": nn.GroupNorm(4, 8),
        "dropout": nn.Dropout(0.3),
        "channel dropout": CHANNELS[rank](0.3),
        "alpha dropout": nn.AlphaDropout(0.3),
    }


@pytest.mark.parametrize("name", list(norms(1)))
@pytest.mark.parametrize(
    ("rank", "size", "native"), [(1, 8, True), (2, 5, True), (2, 8, True), (2, 8, False), (3, 8, True)]
)
def test_norm(rank: int, name: str, size: int, native: bool) -> None:
    """Alone (channels first) and between convolutions (channels last); sizes of 8 are those of the channels."""
    norm, x = norms(rank)[name], noise(2, 8, *[size] * rank)
    check_module(norm, x, others=[(noise(3, 8, *[7] * rank),)], native=native, atol=1e-11)
    between = nn.Sequential(CONV[rank](8, 8, 1), norm, CONV[rank](8, 8, 1))
    check_module(between, x, others=[(noise(3, 8, *[7] * rank),)], native=native, atol=1e-11)


def test_group_norm_without_affine() -> None:
    check_module(nn.Sequential(nn.Conv2d(8, 8, 1), nn.GroupNorm(2, 8, affine=False)), noise(2, 8, 5, 6), atol=1e-11)


def test_batch_norm_of_vectors_and_of_low_variance() -> None:
    check_module(nn.BatchNorm1d(8), noise(4, 8))
    check_module(nn.BatchNorm2d(8), noise(2, 8, 5, 6) * 1e-2)


def test_batch_norm_is_written_with_its_own_numbers() -> None:
    source = check_module(nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)), noise(2, 8, 5, 6))
    assert "layers.BatchNormalization(momentum=0.9, epsilon=1e-05)" in source
    source = check_module(nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8, affine=False)), noise(2, 8, 5, 6))
    assert "layers.BatchNormalization(momentum=0.9, epsilon=1e-05, center=False, scale=False)" in source


@pytest.mark.parametrize("sizes", [(8,), (5, 8), (3, 5, 8)])
@pytest.mark.parametrize(
    "make",
    [
        lambda sizes: nn.LayerNorm(sizes),
        lambda sizes: nn.LayerNorm(sizes, elementwise_affine=False),
        lambda sizes: nn.LayerNorm(sizes, bias=False),
        lambda sizes: nn.RMSNorm(sizes, eps=1e-6),
        lambda sizes: nn.RMSNorm(sizes, eps=1e-6, elementwise_affine=False),
    ],
)
def test_norm_of_the_last_axes(sizes: tuple[int, ...], make: Any) -> None:
    check_module(make(sizes), noise(2, 3, 5, 8), atol=1e-11)


def test_epsilon_of_a_layer_norm_of_low_variance() -> None:
    check_module(nn.LayerNorm(16, eps=1e-12), noise(4, 16) * 1e-4, rtol=1e-9, atol=1e-6)
    check_module(nn.LayerNorm(16, eps=1e-5), noise(4, 16) * 1e-4, rtol=1e-9, atol=1e-9)


def test_layer_norm_between_permutations_moves_nothing() -> None:
    class Permuted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.after = nn.Conv2d(4, 8, 3), nn.LayerNorm(8), nn.Conv2d(8, 4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.after(self.norm(self.conv(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2))

    assert "transpose" not in check_module(Permuted(), noise(2, 4, 8, 8), atol=1e-11)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: torch.nn.functional.layer_norm(x, (8,), w, w),
        lambda x, w: torch.nn.functional.rms_norm(x, (8,), w, 1e-5),
        lambda x, w: torch.nn.functional.instance_norm(x, weight=w, bias=w),
        lambda x, w: torch.nn.functional.group_norm(x, 2, weight=w, bias=w),
    ],
    ids=["layer", "rms", "instance", "group"],
)
def test_norm_with_a_computed_scale(function: Any) -> None:
    check_module(function, noise(2, 8, 5, 8), noise(8), dynamic="none", atol=1e-10)


def test_batch_norm_with_computed_statistics() -> None:
    """torch has no gradients of statistics."""
    function = torch.nn.functional.batch_norm
    check_module(
        lambda x, w: function(x, w, w.abs(), w, w), noise(2, 8, 5, 8), noise(8), dynamic="none", gradients=False
    )


def test_layer_norm_whose_statistics_are_results() -> None:
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(2, 3, 5)), "scale": rng.normal(size=5), "b": rng.normal(size=5)}
    check(Case("LayerNormalization", inputs, {"axis": -1}, outputs=3), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [1, -1])
def test_lp_normalization_leaves_zeros(p: int, axis: int) -> None:
    """ONNX's reference forgets the absolute value at p = 1, so the numbers are positive there."""
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    x = np.abs(x) if p == 1 else x
    x[0] = 0
    check(Case("LpNormalization", {"x": x}, {"p": p, "axis": axis}))


@pytest.mark.parametrize("axes", [(0, 2, 3), (1,)])
def test_mean_variance_normalization(axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    right = (x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9)
    check(Case("MeanVarianceNormalization", {"x": x}, {"axes": list(axes)}), spatial=True, right=[right])


@pytest.mark.parametrize(
    ("module", "written"),
    [
        (nn.Dropout(0.3), "layers.Dropout(0.3)"),
        (nn.Dropout2d(0.3), "layers.SpatialDropout2D(0.3)"),
        (nn.AlphaDropout(0.3), "layers.AlphaDropout("),
    ],
)
def test_dropout_keeps_what_it_drops(module: nn.Module, written: str) -> None:
    assert written in check_module(nn.Sequential(nn.Conv2d(3, 4, 1), module), noise(2, 3, 5, 6))


@pytest.mark.parametrize("spatial", [False, True])
def test_batch_statistics_at_inference(spatial: bool) -> None:
    rng = np.random.default_rng(0)
    names = ("scale", "b", "m", "v")
    vectors = {name: rng.uniform(1, 2, size=3).astype(np.float32).astype(np.float64) for name in names}
    inputs = {"x": rng.normal(size=(2, 3, 4, 5)), **vectors}
    attributes = {"training_mode": 1, "momentum": 0.75, "epsilon": 2.0**-10}
    for weights in (("scale", "b", "m", "v"), ()):
        case = Case("BatchNormalization", inputs, attributes, weights=weights, outputs=3, known=(1,))
        check(case, spatial=spatial)


def test_dropout_at_inference_drops_by_its_rate() -> None:
    x, constants = np.ones((50, 400)), {"ratio": np.float32(0.3), "training": np.asarray(True)}
    case = Case("Dropout", {"x": x, **constants}, {"seed": 3}, constants=tuple(constants), outputs=2)
    port, _ = ported(graph_of(case), ())
    y, mask = (np.asarray(value) for value in port(keras.ops.convert_to_tensor(x)))
    np.testing.assert_allclose(y, np.where(mask, 1 / 0.7, 0), rtol=1e-6)
    assert abs(mask.mean() - 0.7) < 0.02
