"""Run a `torch.nn.Module` on numpy arrays, in float32 or in float64, without touching the module itself."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from porter.errors import InconclusiveError
from porter.runners.axes import to_source, to_target
from porter.runners.base import (
    UNIT_ROUNDOFF,
    Array,
    Call,
    ModuleCall,
    Permutation,
    Precision,
    cast_inputs,
    outputs_by_path,
    random_signs,
)
from porter.runners.call_site import call_site
from porter.runners.flatten import flatten_outputs

if TYPE_CHECKING:
    import torch


class TorchRunner:
    """A copy of `module` in eval mode.

    Args:
        module: the model; it is copied and never changed.
        name: what reports call it (default: its class).
        device: where the copies run.
        input_names: for each flat input the keyword to pass it by, or None for a positional one.
        call: `call(module, tensors)` instead, for inputs that are nested or outputs that hold no tensors.
        input_permutations: per input, `target axis i = source axis perm[i]`, or None.
        output_permutations: the same for the flattened outputs.
        precise: whether the code says on purpose in which precision whole numbers are computed with, as ports do;
            elsewhere a float64 run makes doubles of them.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        name: str | None = None,
        device: str = "cpu",
        input_names: Sequence[str | None] | None = None,
        call: Call | None = None,
        input_permutations: Sequence[Permutation] | None = None,
        output_permutations: Sequence[Permutation] | None = None,
        precise: bool = False,
    ) -> None:
        self.name = name or f"torch {type(module).__name__}"
        self._module = module
        self._device = device
        self._call = call or torch_call(input_names)
        self._input_permutations = input_permutations
        self._output_permutations = output_permutations
        self._precise = precise
        self._forms: dict[Precision, torch.nn.Module] = {}
        self._output_names: list[str] = []
        self._rounding: tuple[int, float] | None = None

    @property
    def output_names(self) -> list[str]:
        return self._output_names

    def run(self, inputs: Sequence[Array], dtype: Precision = "float32") -> list[Array]:
        import torch

        module = self._form(dtype)
        arrays = to_target(cast_inputs(inputs, dtype), self._input_permutations, "input")
        tensors = [torch.tensor(np.ascontiguousarray(x), device=self._device) for x in arrays]
        # Branches and loops as Python: torch would compile them, and then no hook may look into them.
        eager = torch.compiler.set_stance("force_eager")
        with torch.no_grad(), eager, _default_precision(dtype, self._precise), self._rounded():
            outputs = flatten_outputs(self._call(module, tensors), torch.is_tensor)
        self._output_names = list(outputs)
        return to_source([to_numpy(value) for value in outputs.values()], self._output_permutations, "output")

    def _rounded(self) -> AbstractContextManager[Any]:
        if self._rounding is None:
            return nullcontext()
        from porter.runners.torch_rounding import EveryOperation

        return EveryOperation(*self._rounding)

    def why_not(self, dtype: Precision) -> str | None:
        try:
            self._form(dtype)
        except InconclusiveError as error:
            return str(error)
        return None

    def module_paths(self) -> list[str]:
        return [path for path, _ in self._module.named_modules() if path]

    def record_modules(
        self, inputs: Sequence[Array], dtype: Precision = "float32", paths: Sequence[str] | None = None
    ) -> list[ModuleCall]:
        import torch

        calls: list[ModuleCall] = []
        torch_folder = (str(Path(torch.__file__).parent),)

        def recorder(path: str) -> Any:
            def record(module: Any, args: Any, kwargs: Any, output: Any) -> None:
                file, line = call_site(torch_folder)
                tensors = [x for x in (*args, *kwargs.values()) if torch.is_tensor(x)]
                results = flatten_outputs(output, torch.is_tensor).values()
                calls.append(
                    ModuleCall(
                        path,
                        type(module).__name__,
                        file,
                        line,
                        [to_numpy(x) for x in tensors],
                        [to_numpy(x) for x in results],
                    )
                )

            return record

        modules = dict(self._form(dtype).named_modules())
        wanted = self.module_paths() if paths is None else paths
        hooks = [
            modules[path].register_forward_hook(recorder(path), with_kwargs=True) for path in wanted if path in modules
        ]
        try:
            self.run(inputs, dtype)
        finally:
            for hook in hooks:
                hook.remove()
        return calls

    def run_modules(
        self, inputs: Sequence[Array], dtype: Precision = "float32", paths: Sequence[str] | None = None
    ) -> dict[str, list[Array]]:
        return outputs_by_path(self.record_modules(inputs, dtype, paths))

    def perturbed(self, rng: np.random.Generator, unit: float = UNIT_ROUNDOFF) -> TorchRunner:
        import torch

        module = copy.deepcopy(self._form("float64"))
        with torch.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                if tensor.is_floating_point():
                    signs = torch.tensor(random_signs(rng, tuple(tensor.shape)), device=tensor.device)
                    tensor.mul_(1 + unit * signs)
        other = copy.copy(self)
        other._forms = {"float64": module}
        return other

    def rounded(self, rng: np.random.Generator, unit: float = UNIT_ROUNDOFF) -> TorchRunner:
        other = copy.copy(self)
        other._rounding = (int(rng.integers(2**31)), unit)
        return other

    def versions(self) -> dict[str, str]:
        import torch

        return {"torch": torch.__version__}

    def _form(self, dtype: Precision) -> torch.nn.Module:
        if dtype not in self._forms:
            try:
                module = copy.deepcopy(self._module)
            except Exception as error:
                raise InconclusiveError(
                    f"{self.name} cannot be copied ({error}); porter never changes the model it is given, so it needs "
                    "a copy: detach cached tensors from the module, or give a freshly built one."
                ) from error
            self._forms[dtype] = _in_precision(module, dtype).eval().to(self._device)
        return self._forms[dtype]


def to_numpy(value: Any) -> Array:
    """A tensor or number as an array of the same type."""
    import torch

    if not torch.is_tensor(value):
        return np.asarray(value)
    tensor = value.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    # A copy: a module working in place would otherwise change what was recorded.
    return np.array(tensor.resolve_conj().resolve_neg().numpy())


def torch_call(input_names: Sequence[str | None] | None) -> Call:
    """Flat tensors to positional arguments, or to the keywords named."""

    def call(module: Any, tensors: Sequence[Any]) -> Any:
        names = input_names or [None] * len(tensors)
        positional = [x for x, name in zip(tensors, names, strict=True) if name is None]
        named = {name: x for x, name in zip(tensors, names, strict=True) if name is not None}
        return module(*positional, **named)

    return call


def _in_precision(module: torch.nn.Module, dtype: Precision) -> torch.nn.Module:
    import torch

    wanted = torch.float64 if dtype == "float64" else torch.float32
    module = module.double() if dtype == "float64" else module.float()
    # Tensors kept as plain attributes are not reached by .double().
    for child in module.modules():
        for key, value in list(vars(child).items()):
            if torch.is_tensor(value) and value.is_floating_point() and value.dtype != wanted:
                setattr(child, key, value.to(wanted))
    return module


@contextmanager
def _default_precision(dtype: Precision, precise: bool) -> Iterator[None]:
    """In a float64 run, tensors made on the way and casts to float32 written in the model are float64 too.

    Those of whole numbers are left alone in `precise` code. A norm that says `x.float()` means "in full precision";
    left alone it would round the reference to float32.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    wider = {torch.float32: torch.float64, torch.complex64: torch.complex128}

    class Widen(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.float and (args[0].is_floating_point() or not precise):
                func = torch.Tensor.double
            args = tuple(wider.get(x, x) if isinstance(x, torch.dtype) else x for x in args)
            kwargs = {k: wider.get(x, x) if isinstance(x, torch.dtype) else x for k, x in (kwargs or {}).items()}
            return func(*args, **kwargs)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if dtype == "float64" else torch.float32)
    try:
        if dtype == "float64":
            with Widen():
                yield
        else:
            yield
    finally:
        torch.set_default_dtype(before)
