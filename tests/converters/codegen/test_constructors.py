"""Constructor arguments of blocks that come in several forms: as few as a person would have."""

from __future__ import annotations

import ast

import torch
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise


def signature(source: str, cls: str) -> list[str]:
    """The arguments of a class's constructor with their defaults, less self and **kwargs."""
    (node,) = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == cls]
    (init,) = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    defaults = [None] * (len(init.args.args) - len(init.args.defaults)) + [ast.unparse(d) for d in init.args.defaults]
    pairs = zip([argument.arg for argument in init.args.args], defaults, strict=True)
    return [name if default is None else f"{name}={default}" for name, default in pairs][1:]


class ConvAct(nn.Sequential):
    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> None:
        convolution = nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, groups=groups)
        super().__init__(convolution, nn.BatchNorm2d(outputs), nn.ReLU6())


class Inverted(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int, kernel: int = 3) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.add = stride == 1 and inputs == outputs
        expand = [ConvAct(inputs, hidden, 1)] if expansion != 1 else []
        self.conv = nn.Sequential(
            *expand, ConvAct(hidden, hidden, kernel, stride, groups=hidden), nn.Conv2d(hidden, outputs, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.add:
            return x + self.conv(x)
        return self.conv(x)


def mobile(kernels: tuple[int, ...]) -> nn.Sequential:
    steps = ((6, 8, 2, 1), (8, 8, 1, 6), (8, 10, 2, 6), (10, 10, 1, 6))
    return nn.Sequential(ConvAct(3, 6, 3, 2), *(Inverted(*s, k) for s, k in zip(steps, kernels, strict=True)))


def test_both_kinds_of_a_layer_share_their_arguments_and_padding_follows_the_kernel() -> None:
    source = check_module(mobile((3, 3, 3, 3)), noise(2, 3, 16, 20), rtol=1e-9, atol=1e-9)
    assert signature(source, "ConvAct") == ["filters=None", "kernel_size=3", "strides=1", "depthwise=False"]
    assert "layers.ZeroPadding2D(kernel_size // 2)" in source
    assert "layers.DepthwiseConv2D(kernel_size, strides=strides)" in source


def test_a_layer_that_is_there_where_its_width_is_given_needs_no_flag() -> None:
    source = check_module(mobile((3, 3, 3, 3)), noise(2, 3, 16, 20), rtol=1e-9, atol=1e-9)
    assert signature(source, "Inverted") == ["filters", "strides", "conv_filters=None", "add=False"]
    assert "*([ConvAct(conv_filters, kernel_size=1)] if conv_filters else [])" in source
    assert "return x + self.conv(x) if self.add else self.conv(x)" in source


def test_kernels_that_differ_are_arguments_of_their_own() -> None:
    source = check_module(mobile((3, 5, 3, 5)), noise(2, 3, 16, 20), rtol=1e-9, atol=1e-9)
    assert "layers.ZeroPadding2D(kernel_size // 2)" in source
    assert any(argument.startswith("kernel_size") for argument in signature(source, "Inverted"))


def test_padding_that_does_not_follow_the_kernel_stays_an_argument() -> None:
    class Padded(nn.Sequential):
        def __init__(self, kernel: int, padding: int) -> None:
            super().__init__(nn.Conv2d(3, 3, kernel, 2, padding), nn.ReLU())

    net = nn.Sequential(Padded(3, 1), Padded(5, 1), Padded(3, 0))
    source = check_module(net, noise(2, 3, 40, 36), rtol=1e-9, atol=1e-9)
    assert any(argument.startswith("padding") for argument in signature(source, "Padded"))


def test_two_kinds_of_upsampling_are_one_class() -> None:
    class Up(nn.Module):
        def __init__(self, bilinear: bool) -> None:
            super().__init__()
            self.up: nn.Module = nn.ConvTranspose2d(3, 3, 2, 2)
            if bilinear:
                self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(3, 3, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.up(x))

    source = check_module(nn.Sequential(Up(False), Up(True)), noise(2, 3, 5, 6), rtol=1e-9, atol=1e-9)
    assert signature(source, "Up") == ["transposed=False"]
