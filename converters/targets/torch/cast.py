"""Element types."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.codegen.nodes import Ambient, Expr, Size, Verbatim, call
from porter.converters.targets.table import CannotBind
from porter.converters.targets.torch import torch_op
from porter.converters.targets.types import Dims, Tensor

_NAMES = {
    ir.DataType.FLOAT: "float32",
    ir.DataType.DOUBLE: "float64",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.BFLOAT16: "bfloat16",
    ir.DataType.BOOL: "bool",
    **{
        getattr(ir.DataType, f"{sign}INT{bits}"): f"{sign.lower()}int{bits}"
        for sign in ("", "U")
        for bits in (8, 16, 32, 64)
    },
}
_METHODS = {
    ir.DataType.DOUBLE: ".double",
    ir.DataType.FLOAT16: ".half",
    ir.DataType.BFLOAT16: ".bfloat16",
    ir.DataType.BOOL: ".bool",
    ir.DataType.INT32: ".int",
    ir.DataType.INT64: ".long",
}
_STORED_ONLY = (ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64)


def dtype_of(dtype: ir.DataType) -> Expr:
    """The name that PyTorch gives an ONNX type."""
    if dtype not in _NAMES:
        raise CannotBind(f"PyTorch has no type {dtype.name}")
    return Verbatim(f"torch.{_NAMES[dtype]}")


def new(dtype: ir.DataType) -> dict[str, Expr | None]:
    """Type and device of something new. ONNX's float32 is the type that the class computes in: what is made so meets
    tensors that are double or half where the model is.
    """
    chosen: Expr | None = Ambient("dtype") if dtype == ir.DataType.FLOAT else dtype_of(dtype)
    return {"dtype": chosen, "device": Ambient("device")}


def cast_to(x: Expr, source: ir.DataType, target: ir.DataType) -> Expr:
    """`x` in another type. What half precision is widened to is said by name: it must not be the model's own half."""
    if source == target:
        return x
    if target == ir.DataType.FLOAT:
        half = source in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
        return call(".float", x) if half else call(".to", x, Ambient("dtype"))
    return call(_METHODS[target], x) if target in _METHODS else call(".to", x, dtype_of(target))


def refuse_stored_only(*xs: Tensor) -> None:
    """PyTorch stores wide unsigned integers and computes with hardly any of them."""
    for x in xs:
        if x.dtype in _STORED_ONLY:
            raise CannotBind(f"PyTorch does not compute with {x.dtype.name.lower()}")


@torch_op("Cast")
def cast_size(x: Dims, *, out: Tensor, to: int, saturate: int) -> Expr:
    """One size as a number; no tensor is made for it."""
    if out.rank != 0 or not isinstance(x[0], Size):
        raise CannotBind("this is no single size")
    return call("torch.tensor", x[0], **new(out.dtype))


@torch_op("Cast")
def cast(x: Tensor, *, out: Tensor, to: int, saturate: int) -> Expr:
    """`to` is the type of the output; `saturate` is about float8 only, which `dtype_of` refuses."""
    return cast_to(x, x.dtype, out.dtype)


@torch_op("CastLike", layout="axes")
def cast_like(x: Tensor, like: Tensor, *, out: Tensor, saturate: int) -> Expr:
    return cast_to(x, x.dtype, out.dtype)
