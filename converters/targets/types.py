"""What a rule's annotations mean: how the binder hands an operator's inputs to it."""

from __future__ import annotations

from typing import NewType

import numpy as np

from porter.converters.codegen.functions import Function
from porter.converters.codegen.nodes import Expr, Ref, Weight

# A value at run time (or a parameter that another layer owns).
Tensor = Ref
# A parameter, buffer or constant that becomes a variable of a layer.
__all__ = ["Array", "Dims", "Expr", "Float", "Floats", "Function", "Int", "Ints", "Number", "Str", "Tensor", "Weight"]

# Inputs and attributes that must be known while porting, as Python values.
Ints = tuple[int, ...]
Floats = tuple[float, ...]
Int = NewType("Int", int)
Float = NewType("Float", float)
Number = int | float | bool
Str = str
Array = np.ndarray
# Sizes, numbers or symbolic expressions (`Size`), known while porting or readable from shapes at run time.
Dims = NewType("Dims", tuple)
