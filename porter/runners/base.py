"""What the verifier asks of a model, whatever framework it lives in.

Arrays cross this boundary in the *source's* axis order. A runner over a port that stores its axes otherwise is told so
once, by permutations, and applies and undoes them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

Precision = Literal["float32", "float64"]
Array = np.ndarray[Any, Any]
Permutation = Sequence[int] | None
Call = Callable[[Any, Sequence[Any]], Any]
"""How flat tensors reach a model: `call(model, tensors)` returns the model's outputs."""

UNIT_ROUNDOFF = 2.0**-24
"""Half the distance between 1 and the next float32."""


@dataclass(frozen=True)
class ModuleCall:
    """One call of one module inside a run, in the module's own axis order."""

    path: str
    class_name: str
    file: str | None
    """Where the call was written (the first frame outside the framework), or None."""
    line: int | None
    inputs: list[Array]
    outputs: list[Array]

    @property
    def location(self) -> str | None:
        return None if self.file is None else f"{self.file}:{self.line}"


class Runner(Protocol):
    """A model that can be run on numpy arrays."""

    name: str

    @property
    def output_names(self) -> list[str]:
        """The names of the last run's outputs, in order."""
        ...

    def run(self, inputs: Sequence[Array], dtype: Precision = "float32") -> list[Array]:
        """Run in inference mode; outputs flattened in order.

        Raises:
            InconclusiveError: the model has no form in `dtype`.
        """
        ...

    def why_not(self, dtype: Precision) -> str | None:
        """Why the model has no form in `dtype`; None when it has one."""
        ...

    def module_paths(self) -> list[str]:
        """Every submodule's path, such as `layer1.0.conv1`."""
        ...

    def record_modules(
        self, inputs: Sequence[Array], dtype: Precision = "float32", paths: Sequence[str] | None = None
    ) -> list[ModuleCall]:
        """Run, and return the calls of the modules at `paths` (None: all) in the order in which they returned."""
        ...

    def versions(self) -> dict[str, str]:
        """The framework's name and version."""
        ...


class SourceRunner(Runner, Protocol):
    """A runner that can also say how much its own rounding matters."""

    def perturbed(self, rng: np.random.Generator, unit: float = UNIT_ROUNDOFF) -> Runner:
        """The float64 form with every floating weight multiplied by `1 ± unit`, signs at random."""
        ...

    def rounded(self, rng: np.random.Generator, unit: float = UNIT_ROUNDOFF) -> Runner | None:
        """The float64 form with every operation's result rounded at random; None where that cannot be had."""
        ...


def outputs_by_path(calls: Sequence[ModuleCall]) -> dict[str, list[Array]]:
    """All outputs of each module, a module called several times giving them call after call."""
    outputs: dict[str, list[Array]] = {}
    for call in calls:
        outputs.setdefault(call.path, []).extend(call.outputs)
    return outputs


def random_signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 2, size=shape).astype(np.float64) * 2.0 - 1.0


def cast_inputs(inputs: Sequence[Array], dtype: Precision) -> list[Array]:
    """Floating inputs in `dtype`; integers and booleans as they are."""
    return [x.astype(dtype) if np.issubdtype(x.dtype, np.floating) else x for x in map(np.asarray, inputs)]
