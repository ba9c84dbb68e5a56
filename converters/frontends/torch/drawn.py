"""What the parameters of a model are drawn from, recorded while the author's code makes it.

Every way of writing it ends in a few operations on tensors (`normal_`, `uniform_`, `fill_`, `randn`, …), which are seen
here with their numbers, whoever calls them. What a checkpoint brings afterwards is no draw and changes nothing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.overrides import TorchFunctionMode

from porter.converters.initial import Draw

_KNOWN: WeakKeyDictionary[torch.nn.Module, dict[str, Draw]] = WeakKeyDictionary()


def draws(model: Any) -> Mapping[str, Draw]:
    """{parameter: what it is drawn from} of a model that was made under `recording`; others are unknown."""
    return _KNOWN.get(model, {}) if isinstance(model, torch.nn.Module) else {}


@contextmanager
def recording() -> Iterator[Callable[[Any], None]]:
    """While it is open, draws are seen; what it gives is called with the model that was made."""
    recorder = _Recorder()

    def made(model: Any) -> None:
        if isinstance(model, torch.nn.Module):
            found = {name: recorder.of(parameter) for name, parameter in model.named_parameters()}
            _KNOWN[model] = {name: draw for name, draw in found.items() if draw is not None}

    with recorder:
        yield made


class _Recorder(TorchFunctionMode):
    """The draw of every storage that was filled as a whole, by its address."""

    def __init__(self) -> None:
        super().__init__()
        self.by_storage: dict[int, Draw | None] = {}

    def of(self, tensor: torch.Tensor) -> Draw | None:
        return self.by_storage.get(_address(tensor)) if _is_whole(tensor) else None

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        first = kwargs["tensor"] if not args and "tensor" in kwargs else args[0] if args else None
        before = self.of(first) if isinstance(first, torch.Tensor) else None
        result = func(*args, **kwargs)
        if name == "__setitem__":
            self.by_storage[_address(first)] = None
        elif isinstance(result, torch.Tensor) and result.device.type != "meta":
            self._note(name, before, result, args, kwargs)
        return result

    def _note(self, name: str, before: Draw | None, result: torch.Tensor, args: tuple, kwargs: dict[str, Any]) -> None:
        address = _address(result)
        if name in _INITIALISING and "tensor" in kwargs:  # these hand themselves over instead of what they do
            self.by_storage[address] = _INITIALISING[name](kwargs) if _is_whole(result) else None
        elif name in _FILLING:
            self.by_storage[address] = _FILLING[name](before, args[1:], kwargs) if _is_whole(result) else None
        elif name == "copy_":
            frame = _initialiser()
            if frame is not None:
                self.by_storage[address] = _copied(frame) if _is_whole(result) else None
        elif name.endswith("_") and not name.endswith("__") and name not in _HARMLESS:
            self.by_storage[address] = None
        elif name in _MAKING:
            self.by_storage[address] = _MAKING[name](args, kwargs)
        elif not any(isinstance(arg, torch.Tensor) and _address(arg) == address for arg in args):
            self.by_storage[address] = _derived(name, before, args[1:])


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _is_whole(tensor: torch.Tensor) -> bool:
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def _number(args: tuple, kwargs: Mapping[str, Any], position: int, name: str, default: float) -> float:
    value = kwargs.get(name, args[position] if position < len(args) else default)
    return float(value) if isinstance(value, int | float) else math.nan


def _sound(draw: Draw | None) -> Draw | None:
    """None for what was given by tensors."""
    return draw if draw is not None and not any(map(math.isnan, draw.numbers)) else None


def _affine(factor: bool) -> Callable[..., Draw | None]:
    def change(before: Draw | None, args: tuple, kwargs: Mapping[str, Any]) -> Draw | None:
        value = _number(args, kwargs, 0, "other", math.nan)
        if before is None or math.isnan(value) or kwargs.get("alpha", 1) != 1:
            return None
        return before.scaled(value) if factor else before.scaled(1.0, value)

    return change


def _inverse(change: Callable[..., Draw | None], turned: Callable[[float], float]) -> Callable[..., Draw | None]:
    def undo(before: Draw | None, args: tuple, kwargs: Mapping[str, Any]) -> Draw | None:
        value = _number(args, kwargs, 0, "other", math.nan)
        return change(before, (turned(value),), {}) if value and len(args) == 1 and not kwargs else None

    return undo


_MULTIPLIED, _ADDED = _affine(True), _affine(False)
_DIVIDED = _inverse(_MULTIPLIED, lambda value: 1 / value)
_SUBTRACTED = _inverse(_ADDED, lambda value: -value)


def _erfinv(before: Draw | None, args: tuple, kwargs: Mapping[str, Any]) -> Draw | None:
    """A uniform variable in (-1, 1) becomes normal with variance 1/2, cut where the uniform one ended."""
    if before is None or before.kind != "uniform":
        return None
    low, high = (math.sqrt(2) * _quantile(end) for end in before.numbers)
    normal = Draw("normal", (0.0, 1.0)).cut(low, high)
    return normal.scaled(math.sqrt(0.5)) if normal is not None else None


def _quantile(value: float) -> float:
    return float(torch._C._special.special_erfinv(torch.tensor(value, dtype=torch.float64)))


def _clamped(before: Draw | None, args: tuple, kwargs: Mapping[str, Any]) -> Draw | None:
    low = _number(args, kwargs, 0, "min", -math.inf)
    high = _number(args, kwargs, 1, "max", math.inf)
    if before is None or before.kind == "truncated_normal":
        return before  # a guard against rounding at the ends
    return before.cut(low, high) if before.kind == "normal" and before.cut(low, high) == before else None


_FILLING: dict[str, Callable[[Draw | None, tuple, Mapping[str, Any]], Draw | None]] = {
    "normal_": lambda _, args, kwargs: _sound(
        Draw("normal", (_number(args, kwargs, 0, "mean", 0.0), _number(args, kwargs, 1, "std", 1.0)))
    ),
    "uniform_": lambda _, args, kwargs: _sound(
        Draw("uniform", (_number(args, kwargs, 0, "from", 0.0), _number(args, kwargs, 1, "to", 1.0)))
    ),
    "fill_": lambda _, args, kwargs: _sound(Draw("constant", (_number(args, kwargs, 0, "value", math.nan),))),
    "zero_": lambda _, args, kwargs: Draw("constant", (0.0,)),
    "erfinv_": _erfinv,
    "clamp_": _clamped,
    "mul_": _MULTIPLIED,
    "div_": _DIVIDED,
    "add_": _ADDED,
    "sub_": _SUBTRACTED,
    "__imul__": _MULTIPLIED,
    "__itruediv__": _DIVIDED,
    "__iadd__": _ADDED,
    "__isub__": _SUBTRACTED,
}
_OUTSIDE = {
    "mul": _MULTIPLIED, "__mul__": _MULTIPLIED, "__rmul__": _MULTIPLIED, "div": _DIVIDED, "__truediv__": _DIVIDED,
    "true_divide": _DIVIDED, "add": _ADDED, "__add__": _ADDED, "__radd__": _ADDED, "sub": _SUBTRACTED,
    "__sub__": _SUBTRACTED,
}  # fmt: skip
_MAKING: dict[str, Callable[[tuple, Mapping[str, Any]], Draw | None]] = {
    "zeros": lambda args, kwargs: Draw("constant", (0.0,)),
    "zeros_like": lambda args, kwargs: Draw("constant", (0.0,)),
    "ones": lambda args, kwargs: Draw("constant", (1.0,)),
    "ones_like": lambda args, kwargs: Draw("constant", (1.0,)),
    "full": lambda args, kwargs: _sound(Draw("constant", (_number(args, kwargs, 1, "fill_value", math.nan),))),
    "randn": lambda args, kwargs: Draw("normal", (0.0, 1.0)),
    "randn_like": lambda args, kwargs: Draw("normal", (0.0, 1.0)),
    "rand": lambda args, kwargs: Draw("uniform", (0.0, 1.0)),
    "rand_like": lambda args, kwargs: Draw("uniform", (0.0, 1.0)),
    "empty": lambda args, kwargs: None,
}
# In place, but not on the numbers.
_HARMLESS = {"requires_grad_", "detach_", "squeeze_", "unsqueeze_", "share_memory_", "retain_grad_"}
_COPIED = {"clone", "contiguous", "to", "float", "double"}


def _derived(name: str, before: Draw | None, args: tuple) -> Draw | None:
    if name in _COPIED:
        return before
    return _OUTSIDE[name](before, args, {}) if name in _OUTSIDE else None


def _initialiser() -> Any:
    """The frame of the function of torch.nn.init that is running, or None."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "torch.nn.init":
        frame = frame.f_back
    return frame


def _copied(frame: Any) -> Draw | None:
    """What a function of torch.nn.init computes elsewhere and copies into its tensor."""
    match frame.f_code.co_name:
        case "orthogonal_":
            return Draw("orthogonal", (1.0,))  # the gain is multiplied next
        case "_no_grad_trunc_normal_":
            mean, deviation, low, high = (float(frame.f_locals[name]) for name in ("mean", "std", "a", "b"))
            return Draw("normal", (mean, deviation)).cut(low, high)
    return None


def _kaiming_uniform(kwargs: Mapping[str, Any]) -> Draw:
    fan = torch.nn.init._calculate_correct_fan(kwargs["tensor"], kwargs["mode"])
    gain = torch.nn.init.calculate_gain(kwargs["nonlinearity"], kwargs["a"])
    bound = math.sqrt(3.0) * gain / math.sqrt(fan)
    return Draw("uniform", (-bound, bound))


_INITIALISING: dict[str, Callable[[Mapping[str, Any]], Draw]] = {
    "uniform_": lambda kwargs: Draw("uniform", (float(kwargs["a"]), float(kwargs["b"]))),
    "normal_": lambda kwargs: Draw("normal", (float(kwargs["mean"]), float(kwargs["std"]))),
    "constant_": lambda kwargs: Draw("constant", (float(kwargs["val"]),)),
    "kaiming_uniform_": _kaiming_uniform,
}
