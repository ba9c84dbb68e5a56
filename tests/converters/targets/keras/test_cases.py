"""How ports go wrong in real life: each bug a family of small modules, torch in float64 being right.

Every case runs eagerly and traced with unknown sizes, its input gradients too (`check_module`).
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import porter
from tests.converters.targets.keras.modules import check_module, noise

pytestmark = pytest.mark.usefixtures("keras_double")
STATIC: dict[str, Any] = {"dynamic": "none"}


@pytest.mark.parametrize("size", [9, 10])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, 1), (5, 2, 2), (3, 3, 1), (3, 1, 1), (1, 2, 0)])
def test_strided_convolutions_pad_both_sides(size: int, kernel: int, stride: int, padding: int) -> None:
    """Keras' "same" pads unevenly at stride 2, torch pads alike."""
    source = check_module(
        nn.Conv2d(3, 8, kernel, stride, padding), noise(2, 3, size, size), others=[[noise(3, 3, 11, 12)]]
    )
    assert ('padding="same"' in source) == (stride == 1 and kernel > 1)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "output_padding"), [(3, 3, 1, 0), (4, 3, 1, 0), (3, 2, 1, 1), (4, 2, 1, 0)]
)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions_crop(rank: int, kernel: int, stride: int, padding: int, output_padding: int) -> None:
    """Padding is no padding here but a crop, and output_padding's extra row holds real values."""
    layer = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[rank - 1]
    check_module(layer(3, 4, kernel, stride, padding, output_padding), noise(2, 3, *[5, 6, 4][:rank]))


@pytest.mark.parametrize(("channels", "out", "groups"), [(8, 8, 8), (4, 2, 2)])
def test_grouped_transposed_convolutions(channels: int, out: int, groups: int) -> None:
    """Groups split along the input channels of the kernel."""
    check_module(nn.ConvTranspose2d(channels, out, 4, 2, 1, groups=groups), noise(2, channels, 3, 3))


def test_depthwise_convolutions_after_an_addition() -> None:
    """A depthwise convolution is one layer wherever it stands."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dw, self.dw2 = nn.Conv2d(6, 6, 3, padding=1, groups=6), nn.Conv2d(6, 6, 3, padding=1, groups=6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.dw2(x + self.dw(x))

    source = check_module(Net(), noise(2, 6, 6, 6))
    assert source.count("DepthwiseConv2D(") == 2 and "ops.split" not in source


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("ceil", [True, False])
@pytest.mark.parametrize("size", [4, 7, 8])
def test_average_pools_divide_as_torch_does(size: int, ceil: bool, include: bool) -> None:
    """With ceil_mode the divisor is clipped at the padded edge."""
    check_module(nn.AvgPool2d(3, 2, 1, ceil_mode=ceil, count_include_pad=include), noise(1, 2, size, size))


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
def test_max_pools_pad_with_minus_infinity(padding: int, dilation: int) -> None:
    """Zeros around negative numbers would win."""
    source = check_module(
        nn.Sequential(nn.Conv2d(3, 3, 1), nn.MaxPool2d(3, 2, padding, dilation)), -noise(2, 3, 9, 11).abs() - 3
    )
    assert ("layers.MaxPooling2D(" in source) == (dilation == 1)


@pytest.mark.parametrize(("size", "out"), [(12, 7), (13, 6), (13, 3), (8, 2), (5, 1)])
def test_adaptive_pools_overlap(size: int, out: int) -> None:
    """Bin i covers floor(i·in/out) … ceil((i+1)·in/out)."""
    check_module(nn.AdaptiveAvgPool2d((out, out)), noise(1, 3, size, size), **STATIC)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize(("mode", "rank"), [("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)])
def test_resizing_keeps_its_coordinates(mode: str, rank: int, corners: bool) -> None:
    """Half-pixel centres or aligned corners, up and down, at ratios that are no integers."""

    def resize(x: torch.Tensor) -> torch.Tensor:
        for size in (7, 12, 5):
            x = F.interpolate(x, size=(size,) * rank, mode=mode, align_corners=corners)
        return x

    check_module(resize, noise(1, 2, *[8, 9, 6][:rank]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [32, 8])
def test_antialiased_resizing_switches_its_constant(mode: str, size: int) -> None:
    """torch's cubic constant is -0.75, and -0.5 when it antialiases."""
    check_module(
        lambda x: F.interpolate(x, size=(size, size), mode=mode, antialias=True),
        noise(1, 2, 16, 16),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_pixel_shuffles_keep_the_channel_order(channels: int) -> None:
    """torch orders channel, row, column; TensorFlow's depth_to_space row, column, channel."""
    check_module(nn.PixelShuffle(2), noise(2, 4 * channels, 3, 5))
    check_module(nn.PixelUnshuffle(2), noise(2, channels, 4, 6))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes(mode: str) -> None:
    """Mirrored values, not zeros, and not the edge twice."""
    check_module(lambda x: F.pad(x, (2, 1, 1, 2), mode=mode), noise(1, 2, 5, 5))


def test_batch_norm_keeps_epsilon_and_momentum() -> None:
    """Keras' own defaults, 1e-3 and 0.99, must not leak in."""
    source = check_module(nn.BatchNorm2d(4, eps=1e-5, momentum=0.1), noise(2, 4, 4, 4) * 1e-2)
    assert "momentum=0.9" in source and "epsilon=1e-05" in source


@pytest.mark.parametrize("size", [(2, 6, 6, 6), (2, 6, 8, 5)])
def test_instance_norm_is_per_channel(size: tuple[int, ...]) -> None:
    """Equal dimensions must not hide a wrong axis."""
    check_module(nn.Sequential(nn.Conv2d(6, 6, 1), nn.InstanceNorm2d(6, affine=True)), noise(*size))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 1e-3])
def test_layer_norm_keeps_epsilon(epsilon: float) -> None:
    """Only an input of low variance shows a wrong epsilon."""
    check_module(nn.LayerNorm(16, eps=epsilon), noise(2, 5, 16) * 1e-4, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_gates_and_biases(kind: type, bidirectional: bool) -> None:
    """Gates are packed in another order, and torch has two biases."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = kind(5, 6, 2, batch_first=True, bidirectional=bidirectional)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.rnn(x)[0]

    check_module(Net(), noise(2, 4, 5), others=[[noise(3, 7, 5)]])


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_keeps_its_flavour(approximate: str) -> None:
    """The two differ by 5e-4: TensorFlow's own constants leak 5e-9."""
    check_module(nn.GELU(approximate=approximate), noise(3, 50) * 3, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("between", [nn.Identity, lambda: nn.Dropout(0.5), lambda: nn.BatchNorm1d(72)])
@pytest.mark.parametrize(("channels", "size"), [(2, 6), (8, 3)])
def test_a_flatten_before_a_linear_layer_needs_no_transpose(between: Any, channels: int, size: int) -> None:
    """The rows of the Linear are permuted once, also through Dropout and BatchNorm."""
    net = nn.Sequential(nn.Conv2d(3, channels, 1), nn.Flatten(), between(), nn.Linear(72, 5))
    source = check_module(net, noise(2, 3, size, size), **STATIC)
    assert "transpose(" not in source


@pytest.mark.parametrize("size", [(1, 8, 8, 8), (2, 6, 5, 7)])
def test_norms_over_space_and_channels(size: tuple[int, ...]) -> None:
    """Global response normalisation: a norm over height and width, then a mean over channels."""

    class Grn(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.conv = nn.Conv2d(channels, channels, 1)
            self.w, self.b = nn.Parameter(torch.ones(1, channels, 1, 1)), nn.Parameter(torch.zeros(1, channels, 1, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.conv(x)
            norm = torch.norm(x, 2, (2, 3), keepdim=True)
            scaled = norm / (norm.mean(1, keepdim=True) + 1e-6)
            return self.w * (x * scaled) + self.b + x

    assert "transpose(" not in check_module(Grn(size[1]), noise(*size))


def test_products_are_products() -> None:
    """A square matmul must not become an elementwise product; a Linear works on the last axis."""
    check_module(torch.matmul, noise(1, 4, 4), noise(1, 4, 4))
    check_module(nn.Linear(6, 6), noise(2, 6, 6))


def test_writes_into_a_slice_stay() -> None:
    """An in-place operator on a view changes the tensor that it views."""

    def relu_in_place(x: torch.Tensor) -> torch.Tensor:
        x = x * 1
        x[:, 1:2, 2:5, 1::2].relu_()
        return x * 2

    def masked(x: torch.Tensor) -> torch.Tensor:
        x = x * 1
        x[x > 0] += 1
        return x

    check_module(relu_in_place, noise(1, 3, 8, 8))
    check_module(masked, noise(2, 5))


def test_scattered_and_gathered_axes() -> None:
    """Index columns belong to the source's axes, whatever the layout."""

    def place(x: torch.Tensor) -> torch.Tensor:
        canvas = torch.zeros(x.shape[0], 4, 6, 6, dtype=x.dtype)
        canvas[:, :, torch.tensor([0, 2, 5]), torch.tensor([1, 3, 4])] = x[:, :, 0, :3]
        return canvas + x.mean()

    check_module(nn.Sequential(nn.Conv2d(4, 4, 1)), noise(1, 4, 4, 4))
    check_module(place, noise(1, 4, 4, 4), **STATIC)
    check_module(lambda x: torch.gather(x, 1, (x > 0).long()), noise(2, 3, 4))


def test_division_and_remainders_of_negatives() -> None:
    """The sign follows the divisor in remainder and the dividend in fmod; floor is not trunc."""
    a, b = torch.tensor([5, 5, -5, -5]), torch.tensor([3, -3, 3, -3])
    for function in (
        torch.remainder,
        torch.fmod,
        torch.floor_divide,
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    ):
        check_module(function, a, b, gradients=False)
        check_module(function, a.double() + 0.25, b.double(), gradients=False)


def test_promotion_between_integers_and_floats() -> None:
    """TensorFlow refuses what torch promotes."""
    check_module(lambda x: x.size(1) * 0.5 + x, noise(2, 3))
    check_module(lambda x: torch.arange(4) * 1.5 + x, noise(2, 4))
    check_module(
        lambda x: x + torch.tensor([1, 2, 3], dtype=torch.int64),
        torch.tensor([1, 2, 3], dtype=torch.int32),
        gradients=False,
    )


def test_sizes_are_read_and_never_traced() -> None:
    """A model traced at one batch works at any other."""

    def regroup(x: torch.Tensor) -> torch.Tensor:
        b, c, h, w = x.shape
        return x.reshape(b, c // 2, 2, h, w).transpose(1, 2).reshape(b, c, h, w).flatten(2).sum(1)

    check_module(regroup, noise(2, 4, 5, 6), others=[[noise(1, 4, 7, 3)], [noise(8, 4, 5, 6)]])


def test_a_tied_matrix_is_one_variable() -> None:
    """The padding row gets no gradient from the lookup, though it does from the head."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 8, padding_idx=0)
            self.head = nn.Linear(8, 10, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.embedding(x))

    source = check_module(Tied(), torch.tensor([[0, 3, 9], [1, 0, 2]]), gradients=False)
    assert source.count("layers.Embedding(") == 1 and "layers.Dense(" not in source


def test_a_sequential_is_a_model_by_itself() -> None:
    """There is no class of the author's around it."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(100, 3))
    x = noise(2, 3, 5, 5).float()
    port = porter.port(net.eval(), (x,))
    assert "keras.Sequential(" in port.source and "class " not in port.source
    assert porter.verify(net, port, (x,), draws=1).passed


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    "norm", [lambda affine: nn.GroupNorm(2, 4, affine=affine), lambda affine: nn.InstanceNorm2d(4, affine=affine)]
)
def test_norms_over_groups_know_their_channels(norm: Any, affine: bool) -> None:
    """Without a scale of its own, nothing in the program says that the number of channels is fixed."""
    check_module(norm(affine), noise(4, 4, 4, 4), others=[(noise(2, 4, 3, 5),)])
