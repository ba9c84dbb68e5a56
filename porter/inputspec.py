"""Example inputs from the command line: `--input NAME:DTYPE[SHAPE]`, or arrays out of an .npz file.

    x:float32[2,3,224,224]        an argument x of that shape
    x:float32[batch,3,side,side]  the same with axes that may vary; every symbol gets an example size
    x:float32[batch,3,side=96,side=96]   a symbol with an example size of one's own
    :float32[2,8]                 without a name: positional, of fixed sizes

Sizes of symbols differ from each other, so that two axes are never taken for one.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from porter.errors import InputError

if TYPE_CHECKING:
    import numpy as np

_SPEC = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)?:(?P<dtype>\w+)\[(?P<shape>[^\[\]]*)\]$")
_BATCH = ("batch", "batch_size", "n", "b")
_SEED = 0
# Small enough for the vocabulary, class count or position table that integers usually index.
_INTEGERS_BELOW = 8


@dataclass(frozen=True)
class InputSpec:
    """One argument: its shape holds a symbol where the axis may vary."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    sizes: dict[str, int]


@dataclass(frozen=True)
class Example:
    """Arrays to call the model with, and {argument: {axis: symbol}} for the axes that may vary."""

    inputs: "dict[str, np.ndarray] | tuple[np.ndarray, ...]"
    dynamic: dict[str, dict[int, str]] | None


def parse(text: str) -> InputSpec:
    """One `--input`; raises InputError that shows the form."""
    match = _SPEC.match(text.strip())
    if match is None:
        raise InputError(f"--input {text!r} is not NAME:DTYPE[SHAPE], for example x:float32[batch,3,224,224]")
    shape: list[int | str] = []
    sizes: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in match["shape"].split(","))):
        symbol, equals, size = (piece.strip() for piece in part.partition("="))
        if part.isdecimal():
            shape.append(int(part))
        elif symbol.isidentifier() and (not equals or (size.isdecimal() and sizes.get(symbol, int(size)) == int(size))):
            shape.append(symbol)
            if equals:
                sizes[symbol] = int(size)
        else:
            raise InputError(f"--input {text!r}: {part!r} is neither a size, a symbol, nor one symbol=size")
    return InputSpec(match["name"] or "", match["dtype"], tuple(shape), sizes)


def examples(texts: list[str]) -> Example:
    """Random arrays, the same on every run, for all `--input` options together.

    Raises InputError for a bad form, an unknown dtype, a mix of named and positional inputs, or a symbol
    without a name.
    """
    import numpy as np

    specs = [parse(text) for text in texts]
    names = [spec.name for spec in specs]
    if any(names) and not all(names):
        raise InputError("--input: give every input a name, or none of them")
    if all(names) and len(set(names)) < len(names):
        raise InputError(f"--input: two inputs have the same name ({', '.join(names)})")
    sizes = _sizes(specs)
    generator = np.random.default_rng(_SEED)
    arrays = [_array(spec, sizes, generator) for spec in specs]
    varying = {
        spec.name: {axis: size for axis, size in enumerate(spec.shape) if isinstance(size, str)} for spec in specs
    }
    if any(axes and not name for name, axes in varying.items()):
        raise InputError("--input: an input with axes that vary needs its argument's name, as in x:float32[batch,3]")
    dynamic = {name: axes for name, axes in varying.items() if axes} or None
    return Example(dict(zip(names, arrays, strict=True)) if all(names) else tuple(arrays), dynamic)


def from_npz(path: Path) -> Example:
    """The arrays of an .npz file: keyword arguments, or positional ones when saved without names (arr_0, …)."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"--inputs {path}: can't be read as an .npz file of arrays ({error})") from error
    if not arrays:
        raise InputError(f"--inputs {path}: the file holds no array")
    positional = [f"arr_{position}" for position in range(len(arrays))]
    if set(arrays) == set(positional):
        return Example(tuple(arrays[name] for name in positional), None)
    return Example(arrays, None)


def _sizes(specs: list[InputSpec]) -> dict[str, int]:
    chosen: dict[str, int] = {}
    for spec in specs:
        for symbol, size in spec.sizes.items():
            if chosen.setdefault(symbol, size) != size:
                raise InputError(f"--input: symbol {symbol!r} is given two sizes, {chosen[symbol]} and {size}")
    symbols = [size for spec in specs for size in spec.shape if isinstance(size, str)]
    for symbol in dict.fromkeys(symbols):
        if symbol not in chosen:
            wanted = 2 if symbol.lower() in _BATCH else 32
            while wanted in chosen.values():
                wanted += 1 if wanted < 32 else 16
            chosen[symbol] = wanted
    return chosen


def _array(spec: InputSpec, sizes: dict[str, int], generator: "np.random.Generator") -> "np.ndarray":
    import numpy as np

    shape = tuple(sizes[size] if isinstance(size, str) else size for size in spec.shape)
    dtype = _dtype(spec.dtype)
    if dtype.kind == "b":
        return generator.random(shape) < 0.5
    if dtype.kind in "iu":
        return generator.integers(0, _INTEGERS_BELOW, shape).astype(dtype)
    if dtype.kind == "c":
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    return np.asarray(generator.standard_normal(shape)).astype(dtype)


def _dtype(name: str) -> "np.dtype":
    import numpy as np

    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "biufc":
        raise InputError(f"--input: {name!r} is no dtype of arrays; use float32, float64, int64, bool, …")
    return dtype
