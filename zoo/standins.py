"""Imports a package without what only its unused parts need.

The model classes of a published package may lie behind imports for audio files, images or plots: libraries that need
a compiler, or builds that fit one release of PyTorch and one kind of machine. Where such a library is missing or does
not load, a stand-in is there while the package is imported, and is gone afterwards.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class _StandIn(ModuleType):
    """Any attribute of it is another stand-in; calling one fails."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.__name__} is a stand-in: the library is not installed, or does not load here")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for every module of some libraries."""

    def __init__(self, libraries: Sequence[str]) -> None:
        self.libraries = libraries

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self.libraries:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """A stand-in has nothing to run."""


def imported(name: str, distribution: str, unused: Sequence[str] = ()) -> Any:
    """The module `name` of `distribution`, whose model needs none of the libraries `unused`.

    Raises ImportError, with what to install, when the distribution or another library that it needs is missing.
    """
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        raise ImportError(f"{distribution} is not installed: pip install 'porter-ml[zoo]'")
    if name in sys.modules:
        return sys.modules[name]
    with _stand_ins([library for library in unused if not _loads(library)]):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise ImportError(
                f"{distribution} cannot be imported ({error}): pip install 'porter-ml[zoo]' brings what it needs"
            ) from error


def _loads(library: str) -> bool:
    try:
        importlib.import_module(library)
    except (ImportError, OSError, RuntimeError):
        # Missing, or built for another PyTorch: then its operators or shared objects are not found.
        return False
    return True


@contextmanager
def _stand_ins(libraries: Sequence[str]) -> Iterator[None]:
    finder = _Finder(libraries)
    _forget(libraries)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _forget(libraries)


def _forget(libraries: Sequence[str]) -> None:
    """What a failed import left behind, or stand-ins, which nobody else is to find."""
    for module in [name for name in sys.modules if name.partition(".")[0] in libraries]:
        del sys.modules[module]
