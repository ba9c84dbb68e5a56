"""Names that come from a model become identifiers; they are data and must never be code."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable

_BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


def identifier(text: str, reserved: Iterable[str] = ()) -> str:
    """An ASCII identifier made of `text`: never a keyword, a dunder, a builtin or one of `reserved`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"\W+", "_", plain).strip("_")[:60] or "value"
    if name[0].isdigit():
        name = f"n{name}"
    if keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in reserved:
        name += "_"
    return name


def class_identifier(qualname: str, reserved: Iterable[str] = ()) -> str:
    """The class's own name, without its module and enclosing functions."""
    name = identifier(qualname.rpartition(".")[2], reserved)
    return f"{name}_" if is_builtin(name) else name


def snake_case(name: str) -> str:
    """`MaxPooling2D` → `max_pooling2d`."""
    return (
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
        .lower()
        .replace("2_d", "2d")
        .replace("1_d", "1d")
        .replace("3_d", "3d")
        .replace("re_lu", "relu")
    )


def singular(name: str) -> str:
    """What one item of a list is called: `blocks` → `block`."""
    name = name.rstrip("_")
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    if name.endswith("s") and not name.endswith("ss"):
        return name[:-1]
    return {"layer_list": "layer"}.get(name, f"{name}_item")


def is_builtin(name: str) -> bool:
    """Whether a name would hide one of Python's own."""
    return name in _BUILTINS
