"""Functions that have a layer of their own, and layers as functions of parameters that the author's module holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from porter.converters.codegen.nodes import Call, Expr, Layer, Literal, Member, call
from porter.converters.codegen.normal import Construct

_NAMES = {
    "relu": "ReLU", "relu6": "ReLU6", "gelu": "GELU", "silu": "SiLU", "elu": "ELU", "celu": "CELU", "selu": "SELU",
    "mish": "Mish", "leaky_relu": "LeakyReLU", "hardswish": "Hardswish", "hardsigmoid": "Hardsigmoid",
    "hardtanh": "Hardtanh", "softplus": "Softplus", "softsign": "Softsign", "softmax": "Softmax",
    "log_softmax": "LogSoftmax", "threshold": "Threshold", "hardshrink": "Hardshrink", "softshrink": "Softshrink",
    "logsigmoid": "LogSigmoid", "tanhshrink": "Tanhshrink", "pixel_shuffle": "PixelShuffle",
    "pixel_unshuffle": "PixelUnshuffle", "interpolate": "Upsample",
    **{f"{kind}_pool{rank}d": f"{cls}Pool{rank}d" for kind, cls in (("max", "Max"), ("avg", "Avg"), ("lp", "LP"),
       ("adaptive_avg", "AdaptiveAvg"), ("adaptive_max", "AdaptiveMax")) for rank in (1, 2, 3)},
}  # fmt: skip
_FUNCTIONS = {"torch.sigmoid": "nn.Sigmoid", "torch.tanh": "nn.Tanh", "torch.relu": "nn.ReLU"}
# Positional arguments of functions, in the order of both the function and the layer.
_ARGUMENTS = {
    "max_pool": ("kernel_size",), "avg_pool": ("kernel_size",), "lp_pool": ("norm_type", "kernel_size"),
    "adaptive": ("output_size",), "pixel_shuffle": ("upscale_factor",), "pixel_unshuffle": ("downscale_factor",),
    "leaky_relu": ("negative_slope",), "hardtanh": ("min_val", "max_val"), "threshold": ("threshold", "value"),
    "hardshrink": ("lambd",), "softshrink": ("lambd",), "elu": ("alpha",), "celu": ("alpha",),
}  # fmt: skip
_PADS = {
    "constant": "ConstantPad",
    "reflect": "ReflectionPad",
    "replicate": "ReplicationPad",
    "circular": "CircularPad",
}


def layer_of(expr: Expr, value: Expr) -> Construct | None:
    """The layer that applies `expr` to `value`, or None."""
    if not isinstance(expr, Call) or not expr.args or expr.args[0] != value:
        return None
    kwargs = {name: item.value for name, item in expr.kwargs if isinstance(item, Literal)}
    rest = [item.value for item in expr.args[1:] if isinstance(item, Literal)]
    if len(rest) != len(expr.args) - 1 or len(kwargs) != len(expr.kwargs):
        return None
    if expr.func in _FUNCTIONS:
        return Construct(_FUNCTIONS[expr.func])
    if expr.func == ".flatten" and not kwargs:
        return _construct("nn.Flatten", dict(zip(("start_dim", "end_dim"), rest, strict=False)))
    if expr.func == "F.pad":
        return _pad(rest, kwargs)
    name = expr.func.removeprefix("F.")
    if name == expr.func or name not in _NAMES:
        return None
    positional = next((names for stem, names in _ARGUMENTS.items() if name.startswith(stem)), ())
    if len(rest) > len(positional):
        return None
    return _construct(f"nn.{_NAMES[name]}", {**dict(zip(positional, rest, strict=False)), **kwargs})


def _construct(cls: str, arguments: dict[str, Any]) -> Construct:
    return Construct(cls, tuple((name, Literal(value)) for name, value in arguments.items()))


def _pad(rest: list[Any], kwargs: dict[str, Any]) -> Construct | None:
    """Padding of the last axes; a mere number of them pads sequences, images and volumes alike."""
    ends, rank = rest[0], len(rest[0]) // 2
    cls = _PADS.get(kwargs.get("mode", "constant"))
    if cls is None or not 1 <= rank <= 3 or len(rest) > 1:
        return None
    padding = ends[0] if len(set(ends)) == 1 else tuple(ends)
    filling = {"value": kwargs.get("value", 0)} if cls == "ConstantPad" else {}
    if filling.get("value") == 0:
        return _construct(f"nn.ZeroPad{rank}d", {"padding": padding})
    return _construct(f"nn.{cls}{rank}d", {"padding": padding, **filling})


def function_of(layer: Layer, value: Expr, held: Mapping[str, Expr]) -> Expr | None:
    """A layer as the function that it calls, on parameters that are not its own."""
    weight, bias = held.get("weight"), held.get("bias")
    settings = dict(layer.kwargs)
    if weight is None or set(held) - {"weight", "bias"}:
        return None
    match layer.cls:
        case "nn.LayerNorm":
            named = {"bias": bias, "eps": settings["eps"]}
            return call("F.layer_norm", value, Member(weight, "shape"), weight, **named)
        case "nn.Linear":
            return call("F.linear", value, weight, *([] if bias is None else [bias]))
        case "nn.Embedding":
            return (
                call("F.embedding", value, weight) if settings.keys() <= {"num_embeddings", "embedding_dim"} else None
            )
    return None
