"""Element types."""

from __future__ import annotations

import onnx_ir as ir

from porter.converters.codegen.nodes import Expr, Literal, Size, Verbatim, call
from porter.converters.targets.keras import keras_op
from porter.converters.targets.table import CannotBind
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
# Inputs that only say where to read: Keras takes them in any integer type.
_INDEX_INPUTS = {"Gather": 1, "GatherElements": 1, "GatherND": 1, "OneHot": 0, "ScatterElements": 1, "ScatterND": 1}


def dtype_name(dtype: ir.DataType) -> str:
    """The name that Keras gives an ONNX type."""
    if dtype not in _NAMES:
        raise CannotBind(f"Keras has no type {dtype.name}")
    return _NAMES[dtype]


def dtype_argument(dtype: ir.DataType) -> Expr:
    """The type of something new. ONNX's float32 is the type that the layer computes in: what is made so meets tensors
    that are double or half where the layer is.
    """
    return Verbatim("self.compute_dtype") if dtype == ir.DataType.FLOAT else Literal(dtype_name(dtype))


def cast_to(x: Expr, source: ir.DataType, target: ir.DataType) -> Expr:
    """`x` in another type. What half precision is widened to is said by name: it must not be the model's own half."""
    if source == target:
        return x
    half = source in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    return call("ops.cast", x, Literal(dtype_name(target)) if half else dtype_argument(target))


def refuse_uint64(x: Tensor) -> None:
    """Where Keras unites the types of two operands, it makes uint64 of them uint32."""
    if x.dtype == ir.DataType.UINT64:
        raise CannotBind("Keras computes with uint64 in 32 bits")


def kept(x: Expr, out: Tensor) -> Expr:
    """`x` in the type of `out`: with a number beside it, Keras widens the narrow integers to int32."""
    refuse_uint64(out)
    wide = (ir.DataType.INT32, ir.DataType.INT64)
    return x if not out.dtype.is_integer() or out.dtype in wide else call("ops.cast", x, dtype_name(out.dtype))


def as_int64(x: Expr, out: Tensor) -> Expr:
    """An index as ONNX's int64; Keras' own int32 where it is used as an index only."""
    uses = out.value.uses()
    if not out.value.is_graph_output() and all(_INDEX_INPUTS.get(node.op_type) == at for node, at in uses):
        return x
    return call("ops.cast", x, "int64")


@keras_op("Cast")
def cast_size(x: Dims, *, out: Tensor, to: int, saturate: int) -> Expr:
    """One size as a number; no tensor of sizes is made for it."""
    if out.rank != 0 or not isinstance(x[0], Size):
        raise CannotBind("this is no single size")
    return call("ops.cast", x[0], dtype_argument(out.dtype))


@keras_op("Cast")
def cast(x: Tensor, *, out: Tensor, to: int, saturate: int) -> Expr:
    """`to` is the type of the output; `saturate` is about float8 only, which `dtype_name` refuses."""
    return cast_to(x, x.dtype, out.dtype)


@keras_op("CastLike", layout="axes")
def cast_like(x: Tensor, like: Tensor, *, out: Tensor, saturate: int) -> Expr:
    return cast_to(x, x.dtype, out.dtype)
