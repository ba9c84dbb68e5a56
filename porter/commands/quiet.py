"""Keeps TensorFlow's greeting off the terminal.

TensorFlow writes some lines on its first import from C++, before it looks at TF_CPP_MIN_LOG_LEVEL, straight to file
descriptor 2. A verb that answers in three lines should not open with ten of those.
"""

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from types import ModuleType


class _QuietLoader(importlib.abc.Loader):
    """The module's own loader, with descriptor 2 set aside while it runs."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None, "a module is being loaded from its spec"
        module.__spec__.loader = module.__loader__ = self._loader
        with _stderr_aside():
            self._loader.exec_module(module)


class _QuietFinder(importlib.abc.MetaPathFinder):
    """Finds the module `name` as the other finders do, and wraps its loader."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _QuietLoader(spec.loader)
        return spec


def silence_first_import(name: str) -> None:
    """From now on the first import of the module `name` writes nothing, unless it fails."""
    installed = any(isinstance(finder, _QuietFinder) for finder in sys.meta_path)
    if name not in sys.modules and not installed:
        sys.meta_path.insert(0, _QuietFinder(name))


@contextlib.contextmanager
def _stderr_aside() -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            yield
        except BaseException:
            # What was said may be the reason: give it back.
            aside.seek(0)
            os.write(kept, aside.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
