"""Fresh weights as the source framework draws them: the function of a port that `build(weights=False)` calls."""

from __future__ import annotations

import re

_CELLS = ("LSTM", "GRU", "SimpleRNN")
_KERNELS = ("Dense", "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
_DEPTHWISE = ("DepthwiseConv1D", "DepthwiseConv2D")


def initializer(source: str) -> str | None:
    """`initialize(model)` for the layers that occur in the source of the classes, as PyTorch's own layers do it.

    None when none of them has weights that Keras draws in another way.
    """
    drawn = set(re.findall(r"\blayers\.(\w+)\(", source))
    cells = tuple(
        f"{cell}Cell" for cell in _CELLS if cell in drawn or f"TwoBias{cell}(" in source or f"{cell}Cell" in drawn
    )
    branches = [
        *([(classes_of(cells), "layer.units")] if cells else []),
        *_branch(_DEPTHWISE, drawn, "math.prod(layer.kernel.shape[:-2])"),
        *_branch(_KERNELS, drawn, "math.prod(layer.kernel.shape[:-1])"),
    ]
    embeds = "Embedding" in drawn
    if not branches and not embeds:
        return None
    kinds = [
        *(["kernels and biases within ±1/√fan_in"] if len(branches) > bool(cells) else []),
        *(["recurrent ±1/√units"] if cells else []),
        *(["normal embeddings"] if embeds else []),
    ]
    lines = ["def initialize(layer):", f'    """Draw weights as PyTorch does: {", ".join(kinds)}."""']
    if embeds:
        lines += [
            "    if isinstance(layer, layers.Embedding):",
            "        layer.embeddings.assign(keras.random.normal(layer.embeddings.shape))",
        ]
    for number, (classes, fan) in enumerate(branches):
        lines += [
            f"    {'elif' if embeds or number else 'if'} isinstance(layer, {classes}):",
            *(f"        {line}" for line in _drawn(f"{fan} ** -0.5", alone=len(branches) == 1)),
        ]
    lines += _WITHIN if len(branches) < 2 else [*_WITHIN, *_DRAW]
    return "\n".join(lines)


_WITHIN = [
    '    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]',
    "    for part in keras.tree.flatten(within):",
    "        if isinstance(part, layers.Layer):",
    "            initialize(part)",
]
_DRAW = [
    "",
    "",
    "def draw(layer, bound):",
    "    for variable in layer.weights:",
    "        variable.assign(keras.random.uniform(variable.shape, -bound, bound))",
]


def _drawn(bound: str, *, alone: bool) -> list[str]:
    """The draw of one kind of layer: by a function of its own where there are several kinds."""
    if not alone:
        return [f"draw(layer, {bound})"]
    return [f"bound = {bound}", *(line.removeprefix("    ") for line in _DRAW[3:])]


def _branch(kinds: tuple[str, ...], drawn: set[str], fan: str) -> list[tuple[str, str]]:
    found = tuple(kind for kind in kinds if kind in drawn)
    return [(classes_of(found), fan)] if found else []


def classes_of(kinds: tuple[str, ...]) -> str:
    """Layer classes as `isinstance` takes them."""
    names = ", ".join(f"layers.{kind}" for kind in kinds)
    return names if len(kinds) == 1 else f"({names})"
