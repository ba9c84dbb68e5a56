"""The table from TensorFlow operators to ONNX: one function per operator, found by the operator's own name.

A rule takes the builder, the operator's inputs as `ir.Value`s (a list for one that takes several tensors) and, as
keywords, the attributes that it uses. It returns the output value, or a tuple of them. An attribute that a rule neither
uses nor ignores by name must have its default.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from porter.converters.frontends.tensorflow.functions import count, op_def
from porter.converters.registry import register
from porter.errors import UnsupportedError


@dataclass(frozen=True)
class Rule:
    """How one operator is translated; `attributes` are those that it takes, `ignored` those that mean nothing here."""

    function: Callable[..., Any]
    attributes: tuple[str, ...]
    ignored: frozenset[str]


_rules: dict[str, list[Rule]] = {}
_complex_rules: dict[str, list[Rule]] = {}
_refused: dict[str, str] = {}


def tf_op(*names: str, ignored: Sequence[str] = (), on_complex: bool = False) -> Callable:
    """Register a rule for TensorFlow operators.

    Args:
        names: the operators.
        ignored: attributes that change nothing about the result.
        on_complex: for the operator where it reads or makes complex tensors, which are real ones with a last axis
            (real, imaginary).
    """
    rules = _complex_rules if on_complex else _rules

    def decorate(function: Callable) -> Callable:
        parameters = inspect.signature(function).parameters.values()
        attributes = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        for name in names:
            register(rules.setdefault(name, []), Rule(function, attributes, frozenset(ignored)), function)
        return function

    return decorate


def refuse(reason: str, *names: str) -> None:
    """Operators that have no translation, and why."""
    _refused.update(dict.fromkeys(names, reason))


def find(name: str, on_complex: bool = False) -> Rule | None:
    """The rule of an operator."""
    _load()
    found = (_complex_rules if on_complex else _rules).get(name)
    return found[0] if found else None


def reason(name: str) -> str:
    """Why an operator has no translation; empty where there is nothing to say."""
    _load()
    return _refused.get(name, "")


def names() -> list[str]:
    """All operators with a rule."""
    _load()
    return sorted(name for rules in (_rules, _complex_rules) for name, found in rules.items() if found)


def refused() -> dict[str, str]:
    """All operators that are refused, and why."""
    _load()
    return dict(_refused)


@cache
def _load() -> None:
    from porter.converters.frontends.tensorflow import ops as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


# ---- attributes and operands of a node ----


def data_type(dtype: tf.DType) -> ir.DataType:
    """The ONNX type of a TensorFlow one, for complex numbers that of their parts.

    Raises:
        UnsupportedError: ONNX has none.
    """
    dtype = dtype.base_dtype
    if dtype.is_complex:
        return ir.DataType.DOUBLE if dtype == tf.complex128 else ir.DataType.FLOAT
    if dtype in (tf.string, tf.resource, tf.variant) or dtype.is_quantized:
        raise UnsupportedError(f"tensors of {dtype.name} have no counterpart; port the part that takes numbers")
    return ir.DataType.from_numpy(np.dtype(dtype.as_numpy_dtype))


def attributes(node: Any, rule: Rule) -> dict[str, Any]:
    """The attributes that a rule takes.

    Raises:
        UnsupportedError: one that it neither takes nor ignores has a value of its own.
    """
    taken = {}
    definition = op_def(node)
    shape_the_signature = {
        name
        for arg in (*definition.input_arg, *definition.output_arg)
        for name in (arg.number_attr, arg.type_attr, arg.type_list_attr)
    }
    for each in definition.attr:
        own = each.name in node.attr
        value = node.attr[each.name] if own else each.default_value
        plain = each.HasField("default_value") and value == each.default_value
        if each.name in rule.attributes:
            taken[each.name] = python_value(value)
        elif not plain and each.name not in rule.ignored and each.name not in shape_the_signature:
            raise UnsupportedError(f"the attribute {each.name} = {python_value(value)!r} has no translation")
    return taken


def python_value(value: Any) -> Any:
    """An attribute's value as plain Python."""
    kind = value.WhichOneof("value")
    match kind:
        case "s":
            return value.s.decode(errors="replace")
        case "i" | "f" | "b":
            return getattr(value, kind)
        case "type":
            return tf.as_dtype(value.type)
        case "shape":
            shape = tf.TensorShape(value.shape)
            return None if shape.rank is None else shape.as_list()
        case "tensor":
            return tf.make_ndarray(value.tensor)
        case "list":
            kinds = value.list
            if kinds.s:
                return [item.decode(errors="replace") for item in kinds.s]
            if kinds.type:
                return [tf.as_dtype(item) for item in kinds.type]
            if kinds.shape:
                return [tf.TensorShape(item) for item in kinds.shape]
            return list(kinds.i) or list(kinds.f) or list(kinds.b)
        case "func":
            return value.func.name
    return None


def operands(node: Any, values: Sequence[Any]) -> list[Any]:
    """The inputs of a node as its definition groups them."""
    grouped: list[Any] = []
    start = 0
    for arg in op_def(node).input_arg:
        length = count(arg, node)
        several = bool(arg.number_attr or arg.type_list_attr)
        grouped.append(list(values[start : start + length]) if several else values[start])
        start += length
    return grouped
