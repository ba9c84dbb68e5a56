"""Arithmetic, comparisons, activations."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from tests.converters.frontends.torch.cases import Row, aten, flags, floats, ints, positive, row

A, B = torch.tensor([5, 5, -5, -5, 4, -4]), torch.tensor([3, -3, 3, -3, 2, 2])
X, Y = A.double() + 0.5, B.double()
EDGES = torch.tensor([float("nan"), math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5], dtype=torch.float64)

_ANY_REAL = [
    "exp",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sigmoid",
    "asinh",
    "sinh",
    "cosh",
    "atan",
    "erf",
    "erfc",
    "exp2",
    "expm1",
    "neg",
    "abs",
    "sign",
    "sgn",
    "floor",
    "ceil",
    "round",
    "trunc",
    "frac",
    "relu",
    "mish",
    "relu6",
    "selu",
    "silu",
    "hardsigmoid",
    "hardswish",
    "softplus",
    "log_sigmoid",
    "gelu",
    "square",
    "positive",
    "softsign",
]
_POSITIVE = ["log", "sqrt", "reciprocal", "rsqrt", "log1p", "log2", "log10", "acos", "asin", "atanh"]


def _unary() -> list[Row]:
    rows = []
    for name in _ANY_REAL:
        function = getattr(aten, name, None)
        if function is None:
            rows.append(row("div.Tensor", F.softsign, floats(3, 4)))
            continue
        rows.append(row(name, function, 2 * floats(3, 5), also=(2 * floats(2, 3, seed=1),)))
    rows += [row(name, getattr(aten, name), positive(3, 4)) for name in _POSITIVE]
    rows += [
        row("acosh", torch.acosh, 1 + positive(4)),
        row("round", torch.round, torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5])),
    ]
    for name in ("exp", "sqrt", "sigmoid", "erf", "log1p", "rsqrt", "tanh", "reciprocal", "exp2", "log2"):
        rows.append(row(name, getattr(aten, name), ints(4, low=1), double=False))  # whole numbers become float32
    for name in ("neg", "abs", "sign", "relu", "floor", "ceil", "trunc", "square", "relu6", "frac"):
        rows.append(row(name, getattr(aten, name), ints(4)) if name != "frac" else row("frac", torch.frac, X))
    return rows


def _binary() -> list[Row]:
    rows = []
    for name in ("add", "sub", "mul", "div", "remainder", "fmod"):
        tensor, scalar = getattr(aten, name).Tensor, getattr(aten, name).Scalar
        rows += [
            row(f"{name}.Tensor", tensor, X, Y),
            row(f"{name}.Tensor", tensor, A, B, double=False),
            row(f"{name}.Tensor", tensor, floats(3, 1), floats(2, 1, 4), also=(floats(5, 1), floats(1, 1, 3))),
            row(f"{name}.Tensor", tensor, A, Y),
            row(f"{name}.Tensor", tensor, A.int(), B, double=False),
            row(f"{name}.Scalar", lambda x, f=scalar: f(x, 3), A, double=False),
            row(f"{name}.Scalar", lambda x, f=scalar: f(x, -3), A, double=False),
            row(f"{name}.Scalar", lambda x, f=scalar: f(x, 1.5), A, double=False),
            row(f"{name}.Scalar", lambda x, f=scalar: f(x, -1.5), X),
            row(f"{name}.Tensor", lambda x, f=tensor: f(x, torch.tensor(2)), X.float(), double=False),
        ]
    for mode in (None, "floor", "trunc"):
        rows += [
            row("div.Tensor_mode", lambda x, y, m=mode: torch.div(x, y, rounding_mode=m), X, Y),
            row("div.Tensor_mode", lambda x, y, m=mode: torch.div(x, y, rounding_mode=m), A, B, double=False),
            row("div.Scalar_mode", lambda x, m=mode: aten.div.Scalar_mode(x, -2, rounding_mode=m), A, double=False),
            row("div.Scalar_mode", lambda x, m=mode: aten.div.Scalar_mode(x, -2.0, rounding_mode=m), X),
        ]
    for function in (aten.floor_divide.default, torch.floor_divide):
        rows += [row("floor_divide", function, A, B, double=False), row("floor_divide", function, X, Y)]
    return [
        *rows,
        row("floor_divide.Scalar", lambda x: aten.floor_divide.Scalar(x, -3), A, double=False),
        row("remainder.Scalar_Tensor", lambda x: 7 % (x * 2 + 1), A, double=False),
        row("remainder.Scalar_Tensor", lambda x: -7.5 % x, X),
        row("add.Tensor", lambda x, y: torch.add(x, y, alpha=2), X, Y),
        row("sub.Tensor", lambda x, y: torch.sub(x, y, alpha=-0.5), X, Y),
        row("add.Tensor", lambda x, y: x + y, flags(4), flags(4, seed=1)),
        row("add.Tensor", lambda x, y: torch.add(x, y, alpha=3), A, B.int(), double=False),
        row("add.Scalar", lambda x: aten.add.Scalar(x, 2, 3), X),
        row("sub.Scalar", lambda x: aten.sub.Scalar(x, 2, 3), X),
        row("mul.Tensor", lambda x, y: x * y, flags(4), flags(4, seed=1)),
        row("mul.Tensor", lambda x, y: x * y, flags(4), floats(4)),
        row("div.Tensor", lambda x, y: x / y, flags(4), torch.tensor([1, 2, 3, 4]), double=False),
        row("rsub.Scalar", lambda x: 1 - x, X),
        row("rsub.Scalar", lambda x: torch.rsub(x, 2, alpha=3), A, double=False),
        row("rsub.Tensor", lambda x, y: torch.rsub(x, y, alpha=3), A, Y),
        row("pow.Tensor_Tensor", torch.pow, positive(4), floats(4)),
        row("pow.Tensor_Tensor", torch.pow, A, torch.tensor([1, 2, 3, 0, 2, 1]), double=False),
        row("pow.Tensor_Scalar", lambda x: x**2, A, double=False),
        row("pow.Tensor_Scalar", lambda x: x**3, X),
        row("pow.Tensor_Scalar", lambda x: x**-0.5, positive(4)),
        row("pow.Tensor_Scalar", lambda x: x**0.5, torch.tensor([4, 9]), double=False),
        row("pow.Scalar", lambda x: 2.0**x, X),
        row("pow.Scalar", lambda x: 2**x, torch.tensor([0, 1, 5]), double=False),
        row(
            "atan2",
            torch.atan2,
            torch.tensor([1.0, -1, 1, -1, 0, 0, 1, -1, 0]),
            torch.tensor([1.0, 1, -1, -1, 1, -1, 0, 0, 0]),
        ),
        row("hypot", torch.hypot, X, Y),
        row("logaddexp", torch.logaddexp, X, Y),
        row("logaddexp", torch.logaddexp, EDGES[1:], EDGES[1:]),
        row("logaddexp2", torch.logaddexp2, X, Y),
        row("xlogy.Tensor", torch.xlogy, torch.tensor([0.0, 1, 2, 0]), torch.tensor([0.0, 1, 2, float("nan")])),
        row("copysign.Tensor", torch.copysign, X, Y),
        row("copysign.Tensor", torch.copysign, X[:5], EDGES[1:6]),
        row("copysign.Scalar", lambda x: torch.copysign(x, -1), X),
        row("xlogy.Scalar_Other", lambda x: torch.xlogy(x, 2.0), X),
        row("xlogy.Scalar_Self", lambda x: torch.xlogy(2, x), positive(3)),
        row("heaviside", torch.heaviside, torch.tensor([-1.0, 0, 2]), torch.tensor([0.5])),
        row("special_xlog1py", torch.special.xlog1py, torch.tensor([0.0, 1]), torch.tensor([-1.0, 2])),
        row("maximum", torch.maximum, A, Y),
        row("minimum", torch.minimum, X, A),
        row("maximum", torch.maximum, EDGES, EDGES.flip(0)),
        row("max.other", torch.max, X, Y),
        row("min.other", torch.min, X, Y),
        row("lerp.Scalar", lambda x, y: torch.lerp(x, y, 0.3), X, Y),
        row("lerp.Tensor", torch.lerp, X, Y, floats(6)),
        row("addcmul", lambda x, y: torch.addcmul(x, y, y, value=0.5), X, Y),
        row("addcmul", torch.addcmul, A, B, B, double=False),
        row("addcdiv", lambda x, y: torch.addcdiv(x, x, y, value=-2), X, Y),
        row("add.Tensor", lambda x: x + torch.arange(4) * 1.5, floats(4)),
        row("add.Tensor", lambda x: x.size(2) * 0.5 + x, floats(1, 2, 3), also=(floats(2, 2, 5),)),
        row("div.Tensor", lambda x: x / math.sqrt(x.size(-1)), floats(2, 3)),
        row("div.Tensor", lambda x: x / x.size(-1) ** 0.5, floats(2, 3), also=(floats(1, 7),)),
    ]


def _clamps() -> list[Row]:
    low, high = torch.tensor(-1.0), torch.full((6,), 2.0)
    return [
        row("clamp", lambda x: x.clamp(-1, 2), X),
        row("clamp", lambda x: x.clamp(min=-1), A),
        row("clamp", lambda x: x.clamp(max=2.5), A, double=False),
        row("clamp", lambda x: x.clamp(-1.5, 2), A, double=False),
        row("clamp", lambda x: x.clamp(2, -1), X),
        row("clamp", lambda x: x.clamp(-1, 1), EDGES),
        row("clamp.Tensor", lambda x: x.clamp(low, high), X.float(), double=False),
        row("clamp.Tensor", lambda x, y: x.clamp(max=y), X, Y),
        row("clamp.Tensor", lambda x, y: x.clamp(min=y), A, Y),
        row("clamp_min", lambda x: torch.clamp_min(x, 0.5), X),
        row("clamp_max", lambda x: torch.clamp_max(x, 0.5), X),
        row("clamp_min.Tensor", aten.clamp_min.Tensor, X, Y),
        row("clamp_max.Tensor", aten.clamp_max.Tensor, X, Y),
        row("clip", lambda x: aten.clip.default(x, -1, 1), X),
        row("nan_to_num", torch.nan_to_num, EDGES),
        row("nan_to_num", lambda x: torch.nan_to_num(x, nan=3.0, posinf=1e4, neginf=-7.0), EDGES),
        row("nan_to_num", lambda x: torch.nan_to_num(x, nan=3.0, posinf=0.0), EDGES),
        row("isnan", torch.isnan, EDGES),
        row("isinf", torch.isinf, EDGES),
        row("isfinite", torch.isfinite, EDGES),
        row("isnan", torch.isnan, A),
        row("isinf", torch.isinf, A),
        row("isfinite", torch.isfinite, A),
    ]


def _logic() -> list[Row]:
    rows = []
    for name in ("eq", "ne", "lt", "gt", "le", "ge"):
        function = getattr(torch, name)
        rows += [
            row(f"{name}.Tensor", function, X, Y),
            row(f"{name}.Tensor", function, A, Y),
            row(f"{name}.Tensor", function, EDGES, EDGES.flip(0)),
            row(f"{name}.Scalar", lambda x, f=function: f(x, 4.5), A, double=False),
            row(f"{name}.Scalar", lambda x, f=function: f(x, -5), A, double=False),
        ]
    rows += [
        row(f"{name}.Tensor", getattr(torch, name), flags(4), flags(4, seed=1)) for name in ("eq", "ne", "lt", "ge")
    ]
    rows.append(row("eq.Scalar", lambda x: x == True, flags(4)))  # noqa: E712
    for name in ("and", "or", "xor"):
        bit, mark = getattr(aten, f"bitwise_{name}"), getattr(aten, f"__{name}__")
        for overload, second in (("Tensor", B), ("Scalar", 6)):
            for family, prefix in ((bit, f"bitwise_{name}"), (mark, f"__{name}__")):
                function = getattr(family, overload)
                rows.append(row(f"{prefix}.{overload}", lambda x, f=function, s=second: f(x, s), A, double=False))
        rows += [
            row(f"bitwise_{name}.Tensor", bit.Tensor, flags(5), flags(5, seed=1)),
            row(f"bitwise_{name}.Tensor", bit.Tensor, flags(6), B),
            row(f"logical_{name}", getattr(torch, f"logical_{name}"), A * (A > 0), Y),
        ]
    return [
        *rows,
        row("logical_not", torch.logical_not, A - 4),
        row("bitwise_not", torch.bitwise_not, A),
        row("bitwise_not", lambda x: ~x, flags(4)),
        row("__lshift__.Scalar", lambda x: x << 2, torch.tensor([1, 5, 7])),
        row("__rshift__.Scalar", lambda x: x >> 1, torch.tensor([1, 5, -7])),
        row("bitwise_left_shift.Tensor", torch.bitwise_left_shift, torch.tensor([1, 5, 7]), torch.tensor([0, 1, 3])),
        row("bitwise_right_shift.Tensor", torch.bitwise_right_shift, torch.tensor([9, 5, -7]), torch.tensor([0, 1, 2])),
        row(
            "bitwise_left_shift.Tensor_Scalar",
            lambda x: aten.bitwise_left_shift.Tensor_Scalar(x, 2),
            torch.tensor([9, -7]),
        ),
        row(
            "bitwise_right_shift.Tensor_Scalar",
            lambda x: aten.bitwise_right_shift.Tensor_Scalar(x, 2),
            torch.tensor([9, -7]),
        ),
        row("__lshift__.Tensor", lambda x, y: x << y, torch.tensor([1, 5]), torch.tensor([1, 2])),
        row("__rshift__.Tensor", lambda x, y: x >> y, torch.tensor([1, -5]), torch.tensor([1, 2])),
        row("where.self", torch.where, flags(6), X, Y),
        row("where.self", torch.where, flags(6), A, Y),
        row("where.self", torch.where, flags(2, 1, 3), floats(4, 1), floats(1, 3)),
        row("where.ScalarOther", lambda c, x: aten.where.ScalarOther(c, x, 0.5), flags(6), A, double=False),
        row("where.ScalarSelf", lambda c, x: aten.where.ScalarSelf(c, 2, x), flags(6), X),
        row("where.Scalar", lambda c: torch.where(c, 1, 0), flags(6)),
        row("where.Scalar", lambda c: torch.where(c, 1.0, -1), flags(6), double=False),
        row("masked_fill.Scalar", lambda x, m: x.masked_fill(m, -math.inf), floats(2, 3), flags(3)),
        row("masked_fill.Scalar", lambda x, m: x.masked_fill(m, 7), ints(2, 3), flags(2, 1)),
        row("masked_fill.Tensor", lambda x, m: x.masked_fill(m, torch.tensor(2)), floats(2, 3), flags(2, 3)),
    ]


def _activations() -> list[Row]:
    line = torch.linspace(-6, 6, 25, dtype=torch.float64)
    return [
        row("gelu", lambda x: F.gelu(x, approximate="tanh"), line),
        row("gelu", F.gelu, line),
        row("hardtanh", F.hardtanh, line),
        row("hardtanh", lambda x: F.hardtanh(x, -2, 0.5), line),
        row("leaky_relu", lambda x: F.leaky_relu(x, 0.2), line),
        row("leaky_relu", F.leaky_relu, line),
        row("prelu", F.prelu, floats(2, 3, 4, 5), floats(3)),
        row("prelu", F.prelu, floats(2, 3, 4), floats(1)),
        row("prelu", F.prelu, floats(2, 3), floats(3)),
        row("prelu", F.prelu, floats(4), floats(1)),
        row("elu", lambda x: F.elu(x, 0.7), line),
        row("elu", lambda x: aten.elu.default(x, 0.7, 1.3), line),
        row("elu", lambda x: aten.elu.default(x, 0.7, 1.3, 0.4), line),
        row("celu", lambda x: F.celu(x, 0.7), line),
        row("softplus", lambda x: F.softplus(x, 2.0, 5.0), line),
        row("softshrink", lambda x: F.softshrink(x, 0.7), line),
        row("hardshrink", lambda x: F.hardshrink(x, 0.7), line),
        row("threshold", lambda x: F.threshold(x, 1.0, 0.0), line),
        row("threshold", lambda x: F.threshold(x, -1.0, 2.0), line),
        row("threshold", lambda x: F.threshold(x, -1.0, 0.0), line),
        row("log_sigmoid", F.logsigmoid, 100 * line),
        row("glu", F.glu, floats(3, 4)),
        row("glu", lambda x: F.glu(x, 1), floats(2, 6, 3)),
        row("softmax.int", lambda x: x.softmax(1), floats(2, 3, 4)),
        row("softmax.int", lambda x: x.softmax(-1, torch.float64), ints(2, 3)),
        row("log_softmax.int", lambda x: x.log_softmax(-1), floats(2, 3, 4)),
        row("_softmax", lambda x: aten._softmax.default(x, 0, False), floats(2, 3)),
        row("_log_softmax", lambda x: aten._log_softmax.default(x, 0, False), floats(2, 3)),
        row("tanh", F.tanhshrink, line),
        row("softmax.int", F.softmin, floats(2, 3)),
        row("dropout", lambda x: F.dropout(x, 0.3, False), floats(3)),
        row("dropout", lambda x: F.dropout(x, 0.0, False), floats(3)),
        row("feature_dropout", lambda x: F.dropout2d(x, 0.3, False), floats(1, 2, 3, 3)),
        row("alpha_dropout", lambda x: F.alpha_dropout(x, 0.3, False), floats(3)),
        row("feature_alpha_dropout", lambda x: F.feature_alpha_dropout(x, 0.3, False), floats(2, 3)),
        row("round.decimals", lambda x: torch.round(x, decimals=1), line),
    ]


ROWS = [*_unary(), *_binary(), *_clamps(), *_logic(), *_activations()]
