"""torch dtypes as ONNX data types."""

import onnx_ir as ir
import torch

from porter.errors import UnsupportedError

_DTYPES = {
    torch.float64: ir.DataType.DOUBLE,
    torch.float32: ir.DataType.FLOAT,
    torch.float16: ir.DataType.FLOAT16,
    torch.bfloat16: ir.DataType.BFLOAT16,
    torch.int64: ir.DataType.INT64,
    torch.int32: ir.DataType.INT32,
    torch.int16: ir.DataType.INT16,
    torch.int8: ir.DataType.INT8,
    torch.uint8: ir.DataType.UINT8,
    torch.bool: ir.DataType.BOOL,
    torch.complex64: ir.DataType.FLOAT,
    torch.complex128: ir.DataType.DOUBLE,
}


def from_torch(dtype: torch.dtype) -> ir.DataType:
    """The ONNX data type, for complex numbers that of their parts; UnsupportedError for one that ONNX has not."""
    if dtype not in _DTYPES:
        raise UnsupportedError(f"tensors of {dtype} have no ONNX type here")
    return _DTYPES[dtype]
