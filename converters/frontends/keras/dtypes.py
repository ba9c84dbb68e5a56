"""Keras dtypes as ONNX data types."""

import onnx_ir as ir

from porter.errors import UnsupportedError

_DTYPES = {
    "float64": ir.DataType.DOUBLE,
    "float32": ir.DataType.FLOAT,
    "float16": ir.DataType.FLOAT16,
    "bfloat16": ir.DataType.BFLOAT16,
    "int64": ir.DataType.INT64,
    "int32": ir.DataType.INT32,
    "int16": ir.DataType.INT16,
    "int8": ir.DataType.INT8,
    "uint64": ir.DataType.UINT64,
    "uint32": ir.DataType.UINT32,
    "uint16": ir.DataType.UINT16,
    "uint8": ir.DataType.UINT8,
    "bool": ir.DataType.BOOL,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def from_keras(dtype: str) -> ir.DataType:
    """The ONNX data type; UnsupportedError for one that ONNX has not."""
    if dtype not in _DTYPES:
        raise UnsupportedError(f"tensors of {dtype} have no ONNX type here")
    return _DTYPES[dtype]


def to_keras(dtype: ir.DataType) -> str:
    """Keras' name of an ONNX data type."""
    return _NAMES[dtype]
