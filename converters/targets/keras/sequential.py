"""Functions of one value that have a layer of their own, for Sequential models."""

from __future__ import annotations

from porter.converters.codegen.nodes import Binary, Call, Expr, Literal
from porter.converters.codegen.normal import Construct

_LAYERS = {"ops.relu": "ReLU"}
_ACTIVATIONS = (
    "relu6", "sigmoid", "tanh", "softplus", "softsign", "silu", "gelu", "selu", "elu", "hard_sigmoid",
    "hard_swish", "hard_silu", "mish", "log_softmax", "softmax", "leaky_relu", "celu", "exp",
)  # fmt: skip


def layer_of(expr: Expr, value: Expr) -> Construct | None:
    """The layer that applies `expr` to `value`, or None."""
    if isinstance(expr, Binary):
        return _silu(expr, value)
    if not isinstance(expr, Call) or not expr.args or expr.args[0] != value:
        return None
    kwargs = {name: item.value for name, item in expr.kwargs if isinstance(item, Literal)}
    rest = [item.value for item in expr.args[1:] if isinstance(item, Literal)]
    if len(rest) != len(expr.args) - 1 or len(kwargs) != len(expr.kwargs):
        return None
    return _by_name(expr.func, rest, kwargs)


def _by_name(func: str, rest: list[object], kwargs: dict[str, object]) -> Construct | None:
    if func in _LAYERS and not rest and not kwargs:
        return Construct(_LAYERS[func])
    name = func.removeprefix("ops.")
    if name in ("leaky_relu", "elu", "celu") and kwargs:
        if name == "leaky_relu":
            return (
                Construct("LeakyReLU", (("negative_slope", Literal(kwargs["negative_slope"])),))
                if set(kwargs) == {"negative_slope"}
                else None
            )
        return (
            Construct("ELU", (("alpha", Literal(kwargs["alpha"])),))
            if name == "elu" and set(kwargs) == {"alpha"}
            else None
        )
    if name == "gelu" and kwargs.get("approximate", True) is False and not rest:
        return Construct("Activation", (("activation", Literal("gelu")),))
    if name in ("softmax", "log_softmax") and kwargs.get("axis", -1) == -1 and not rest:
        return Construct("Activation", (("activation", Literal(name)),))
    if name in _ACTIVATIONS and not kwargs and not rest and name != "gelu":
        return Construct("Activation", (("activation", Literal(name)),))
    if (
        func == "ops.reshape"
        and len(rest) == 1
        and isinstance(rest[0], tuple)
        and rest[0][0] == -1
        and -1 not in rest[0][1:]
    ):
        return Construct("Reshape", (("target_shape", Literal(rest[0][1:])),))
    if func == "ops.mean" and kwargs.get("keepdims") is True and kwargs.get("axis") in ((1, 2), (1,), (1, 2, 3)):
        rank = len(kwargs["axis"])  # type: ignore[arg-type]
        return Construct(f"GlobalAveragePooling{rank}D", (("keepdims", Literal(True)),))
    return None


def _silu(expr: Binary, value: Expr) -> Construct | None:
    sigmoid = Call("ops.sigmoid", (value,))
    if expr.op == "*" and value in (expr.left, expr.right) and sigmoid in (expr.left, expr.right):
        return Construct("Activation", (("activation", Literal("silu")),))
    return None
