"""Operators on complex tensors, which ONNX holds as real ones with a last axis (real, imaginary)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch.table import aten, named
from porter.errors import UnsupportedError

Value = ir.Value
Parts = tuple[Value, Value]


def parts(op: Builder, x: Value) -> Parts:
    """The real and the imaginary part."""
    real, imag = (op.Gather(x, op.constant(index, ir.DataType.INT64), axis=-1) for index in (0, 1))
    return real, imag


def packed(op: Builder, real: Value, imag: Value) -> Value:
    """Both parts in one tensor."""
    return op.Concat(op.Unsqueeze(real, [-1]), op.Unsqueeze(imag, [-1]), axis=-1)


# ***** between real and complex *****


@aten("view_as_complex", "view_as_real", on_complex=True)
def reinterpret(op: Builder, x: Value) -> Value:
    """What torch has two types for is one here."""
    return x


@aten("complex", on_complex=True)
def complex_(op: Builder, real: Value, imag: Value) -> Value:
    return packed(op, *_broadcast(op, real, imag))


@aten("polar", on_complex=True)
def polar(op: Builder, absolute: Value, angle: Value) -> Value:
    return packed(op, op.Mul(absolute, op.Cos(angle)), op.Mul(absolute, op.Sin(angle)))


def _broadcast(op: Builder, real: Value, imag: Value) -> Parts:
    """Two tensors of the output's shape."""
    assert op.shape is not None
    sizes = [size if isinstance(size, int) else op.size(size) for size in op.shape[:-1]]
    shapes = [[str(size) for size in value.shape] for value in (real, imag)]
    if shapes[0] == shapes[1]:
        return real, imag
    return op.Expand(real, op.vector(sizes)), op.Expand(imag, op.vector(sizes))


@aten("real", on_complex=True)
def real_(op: Builder, x: Value) -> Value:
    return parts(op, x)[0]


@aten("imag", on_complex=True)
def imag_(op: Builder, x: Value) -> Value:
    return parts(op, x)[1]


@aten("_to_copy", "to.dtype", "to.dtype_layout", "type_as", on_complex=True)
def to_dtype(op: Builder, x: Value, *_: Any, **__: Any) -> Value:
    if not op.complex[0]:
        real = op.cast(x, op.dtype)
        return packed(op, real, op.Mul(real, op.constant(0, real)))
    return op.cast(x, op.dtype)


@aten(
    "alias", "detach", "contiguous", "clone", "lift_fresh_copy", "resolve_conj", "resolve_neg", on_complex=True,
)  # fmt: skip
def same(op: Builder, x: Value, **_: Any) -> Value:
    return x


# ***** arithmetic *****


@aten("conj", "_conj", "conj_physical", "_conj_physical", on_complex=True)
def conj(op: Builder, x: Value) -> Value:
    real, imag = parts(op, x)
    return packed(op, real, op.Neg(imag))


@aten("neg", on_complex=True)
def neg(op: Builder, x: Value) -> Value:
    return op.Neg(x)


@aten("abs", on_complex=True)
def abs_(op: Builder, x: Value) -> Value:
    return op.ReduceL2(x, [-1], keepdims=0)


@aten("angle", on_complex=True)
def angle(op: Builder, x: Value) -> Value:
    real, imag = parts(op, x)
    return named("atan2").function(op, imag, real)


@aten("exp", on_complex=True)
def exp(op: Builder, x: Value) -> Value:
    real, imag = parts(op, x)
    size = op.Exp(real)
    return packed(op, op.Mul(size, op.Cos(imag)), op.Mul(size, op.Sin(imag)))


def _operand(op: Builder, position: int, x: Any) -> tuple[Value, Value | None]:
    """Real and imaginary part of an operand, the latter None for a real one; numbers become constants."""
    assert op.dtype is not None
    if isinstance(x, complex):
        return op.constant(x.real, op.dtype), op.constant(x.imag, op.dtype)
    if not isinstance(x, ir.Value):
        return op.constant(x, op.dtype), None
    if op.complex[position]:
        return parts(op, op.cast(x, op.dtype))
    return op.cast(x, op.dtype), None


@aten("mul.Tensor", "mul.Scalar", on_complex=True)
def mul(op: Builder, x: Any, y: Any) -> Value:
    """A real factor scales both parts as they stand."""
    assert op.dtype is not None
    for whole, factor, is_whole, is_complex in ((x, y, *op.complex), (y, x, *reversed(op.complex))):
        if is_whole and isinstance(whole, ir.Value) and not is_complex:
            scale = _operand(op, 1, factor)[0] if not isinstance(factor, ir.Value) else op.cast(factor, op.dtype)
            return op.Mul(whole, op.Unsqueeze(scale, [-1]) if isinstance(factor, ir.Value) else scale)
    return packed(op, *_product(op, op.Mul, _operand(op, 0, x), _operand(op, 1, y)))


def _product(
    op: Builder, times: Callable[[Value, Value], Value], x: tuple[Value, Value | None], y: tuple[Value, Value | None]
) -> Parts:
    """A bilinear operator on complex operands by its action on real ones."""
    (a, b), (c, d) = x, y
    if b is None or d is None:
        assert b is not None or d is not None
        return (times(a, c), times(a, d)) if d is not None else (times(a, c), times(b, c))
    return op.Sub(times(a, c), times(b, d)), op.Add(times(a, d), times(b, c))


@aten("div.Tensor", "div.Scalar", on_complex=True)
def div(op: Builder, x: Any, y: Any) -> Value:
    (a, b), (c, d) = _operand(op, 0, x), _operand(op, 1, y)
    if d is None:
        assert b is not None
        return packed(op, op.Div(a, c), op.Div(b, c))
    real, imag = _product(op, op.Mul, (a, b), (c, op.Neg(d)))
    size = op.Add(op.Mul(c, c), op.Mul(d, d))
    return packed(op, op.Div(real, size), op.Div(imag, size))


def _sum(name: str) -> Callable[..., Value]:
    def rule(op: Builder, x: Any, y: Any, alpha: Any = 1) -> Value:
        (a, b), (c, d) = _operand(op, 0, x), _operand(op, 1, y)
        if isinstance(alpha, complex):
            raise UnsupportedError(f"a complex alpha of {name.lower()}; multiply by it instead")
        if alpha != 1:
            factor = op.constant(alpha, a if op.dtype is None else op.dtype)
            c, d = op.Mul(c, factor), None if d is None else op.Mul(d, factor)
        combine = getattr(op, name)
        if b is not None and d is not None and all(isinstance(z, ir.Value) for z in (x, y)) and alpha == 1:
            return combine(op.cast(x, op.dtype), op.cast(y, op.dtype))
        real = combine(a, c)
        zero = op.Mul(real, op.constant(0, op.dtype))  # the shape of the result, for a part that only one side has
        return packed(op, real, combine(zero if b is None else op.Add(b, zero), zero if d is None else d))

    return rule


aten("add.Tensor", "add.Scalar", on_complex=True)(_sum("Add"))
aten("sub.Tensor", "sub.Scalar", on_complex=True)(_sum("Sub"))


@aten("where.self", on_complex=True)
def where(op: Builder, condition: Value, x: Value, y: Value) -> Value:
    (a, b), (c, d) = (_operand(op, position, z) for position, z in ((1, x), (2, y)))
    zero = op.constant(0, op.dtype)
    real, imag = op.Where(condition, a, c), op.Where(condition, zero if b is None else b, zero if d is None else d)
    return packed(op, real, imag)


@aten("matmul", "bmm", "mm", on_complex=True)
def matmul(op: Builder, x: Value, y: Value) -> Value:
    return packed(op, *_product(op, op.MatMul, _operand(op, 0, x), _operand(op, 1, y)))


@aten("einsum", on_complex=True)
def einsum(op: Builder, equation: str, tensors: Sequence[Value], path: object = None) -> Value:
    if len(tensors) != 2:
        raise UnsupportedError(f"an einsum of {len(tensors)} tensors, some of them complex; split it into pairs")
    assert op.dtype is not None
    operands: list[tuple[Value, Value | None]] = [
        parts(op, op.cast(tensor, op.dtype)) if is_complex else (op.cast(tensor, op.dtype), None)
        for tensor, is_complex in zip(tensors, op.complex[1], strict=True)
    ]
    equation = equation.replace(" ", "")
    return packed(op, *_product(op, lambda a, b: op.Einsum(a, b, equation=equation), *operands))


# ***** axes: the rules for real tensors, told which axes are the tensor's own *****


def _own(dim: Any, rank: int) -> Any:
    return [axis % rank for axis in dim] if isinstance(dim, list | tuple) else dim % rank


def _rank(x: Any) -> int:
    return len((x[0] if isinstance(x, list | tuple) else x).shape) - 1


def _along(name: str, position: int, default: Any = None, *, adds: bool = False) -> None:
    """`position` is where the operator takes its axes; `adds` says that they number those of the result."""

    def rule(op: Builder, x: Any, *args: Any, **kwargs: Any) -> Any:
        given = [*args, *[None] * (position - len(args))]
        axes = given[position - 1] if len(args) >= position else default
        if axes is None:
            raise UnsupportedError(f"{name} of a complex tensor without axes; name them")
        given[position - 1] = _own(axes, _rank(x) + adds)
        return named(name).function(op, x, *given, **kwargs)

    aten(name, on_complex=True)(rule)


_along("slice.Tensor", 1, 0)
_along("narrow", 1)
_along("select.int", 1)
_along("index_select", 1)
_along("cat", 1, 0)
_along("stack", 1, 0, adds=True)
_along("unsqueeze", 1, adds=True)
_along("squeeze.dim", 1)
_along("flip", 1)
_along("roll", 2)
_along("unbind.int", 1, 0)
_along("split.Tensor", 2, 0)
_along("split_with_sizes", 2, 0)
_along("chunk", 2, 0)


@aten("transpose.int", "swapaxes", on_complex=True)
def transpose(op: Builder, x: Value, dim0: int, dim1: int) -> Value:
    perm = list(range(len(x.shape)))
    first, second = _own((dim0, dim1), _rank(x))
    perm[first], perm[second] = second, first
    return op.Transpose(x, perm=perm)


@aten("permute", on_complex=True)
def permute(op: Builder, x: Value, dims: Sequence[int]) -> Value:
    return op.Transpose(x, perm=[*_own(dims, _rank(x)), _rank(x)])


@aten(
    "view", "reshape", "_unsafe_view", "view_as", "reshape_as", "unflatten.int", "flatten.using_ints", on_complex=True
)
def reshape(op: Builder, x: Value, *_: Any) -> Value:
    return op.Reshape(x, op.shape_of_output())


@aten("expand", "expand_as", "broadcast_to", on_complex=True)
def expand(op: Builder, x: Value, *_: Any, **__: Any) -> Value:
    return op.Expand(x, op.shape_of_output())


@aten("sum", "sum.dim_IntList", on_complex=True)
def sum_(op: Builder, x: Value, dim: Any = None, keepdim: bool = False, **_: Any) -> Value:
    return op.ReduceSum(x, _reduced(x, dim), keepdims=int(keepdim))


@aten("mean", "mean.dim", on_complex=True)
def mean(op: Builder, x: Value, dim: Any = None, keepdim: bool = False, **_: Any) -> Value:
    return op.ReduceMean(x, _reduced(x, dim), keepdims=int(keepdim))


def _reduced(x: Value, dim: Any) -> list[int]:
    rank = _rank(x)
    if dim is None or dim == []:
        return list(range(rank))
    return _own([dim] if isinstance(dim, int) else dim, rank)


@aten("constant_pad_nd", on_complex=True)
def constant_pad(op: Builder, x: Value, pad: Sequence[Any], value: Any = 0) -> Value:
    if value:
        raise UnsupportedError("a complex tensor padded with a number other than zero")
    return named("constant_pad_nd").function(op, x, [0, 0, *pad])


@aten("pad", on_complex=True)
def pad(op: Builder, x: Value, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Value:
    if value:
        raise UnsupportedError("a complex tensor padded with a number other than zero")
    return named("pad").function(op, x, [0, 0, *pad], mode)


@aten("zeros", "new_zeros", "zeros_like", "empty.memory_format", "new_empty", "empty_like", on_complex=True)
def zeros(op: Builder, *_: Any, **__: Any) -> Value:
    return op.Expand(op.constant(0, op.dtype), op.shape_of_output())


@aten("copy", on_complex=True)
def copy(op: Builder, x: Value, source: Value, non_blocking: bool = False) -> Value:
    """`x[…] = source`."""
    assert op.dtype is not None
    if not op.complex[1]:
        real = op.cast(source, op.dtype)
        source = packed(op, real, op.Mul(real, op.constant(0, op.dtype)))
    return op.Expand(op.cast(source, op.dtype), op.shape_of_output())
