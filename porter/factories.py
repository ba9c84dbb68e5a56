"""Fetches a model out of the user's own project: imports a module, finds a name in it and calls it.

Whatever goes wrong in there is the user's to mend, so every message names the module, what it raised and the line of
the user's code, and no traceback of porter hides it.
"""

import difflib
import importlib
import importlib.util
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from porter.errors import ReferenceError_


def import_project_module(module: str, reference: str) -> ModuleType:
    """Import `module` with the current folder first on the path, as `python -m` does.

    Raises ReferenceError_ when the module is missing or raises while it is imported.
    """
    here = str(Path.cwd())
    if here not in sys.path[:1]:
        sys.path.insert(0, here)
        importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise ReferenceError_(f"{reference}: there is no module {error.name!r}{_searched(error.name)}") from error
        raise ReferenceError_(
            f"{reference}: module {module!r} needs {error.name!r}, which is not installed{_at(error)}; "
            f"install it next to porter"
        ) from error
    except (Exception, SystemExit) as error:
        raise ReferenceError_(f"{reference}: importing {module!r} raised {_raised(error)}") from error


def attribute(module: ModuleType, path: str, reference: str) -> Any:
    """The object at the dotted `path` inside `module`; raises ReferenceError_ with the closest names."""
    found: Any = module
    for part in path.split("."):
        if not hasattr(found, part):
            owner = getattr(found, "__name__", type(found).__name__)
            public = [name for name in dir(found) if not name.startswith("_")]
            raise ReferenceError_(f"{reference}: {owner!r} has no {part!r}{suggestion(part, public)}")
        found = getattr(found, part)
    return found


def call(factory: Any, reference: str) -> Any:
    """What `factory()` returns; raises ReferenceError_ naming the exception and the line of user code."""
    try:
        return _observed(factory)
    except (Exception, SystemExit) as error:
        hint = ""
        if isinstance(error, TypeError) and _own_depth(error) == 0:
            hint = "; porter calls it without arguments: write a function that builds the model and name that"
        raise ReferenceError_(f"{reference}: calling it raised {_raised(error)}{hint}") from error


def _observed(factory: Any) -> Any:
    """What it returns; of a PyTorch model it is noted what its parameters are drawn from, for ports' fresh weights."""
    if "torch" not in sys.modules:
        return factory()
    from porter.converters.frontends.torch.drawn import recording

    with recording() as made:
        returned = factory()
        made(returned[0] if isinstance(returned, tuple) and returned else returned)
    return returned


def suggestion(name: str, candidates: list[str]) -> str:
    """`"; did you mean 'x' or 'y'?"`, or nothing when no candidate is close."""
    close = difflib.get_close_matches(name, candidates, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(repr(match) for match in close)}?" if close else ""


def _searched(module: str) -> str:
    parent, _, leaf = module.rpartition(".")
    if parent:
        where = [Path(folder) for folder in getattr(sys.modules.get(parent), "__path__", [])]
        place = f" in package {parent!r}"
    else:
        where, place = [Path.cwd()], f" (looked in {Path.cwd()} and in the installed packages)"
    names = [entry.stem for folder in where for entry in _modules(folder)]
    return place + suggestion(leaf, names)


def _modules(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [
        entry for entry in folder.iterdir() if entry.suffix == ".py" or (entry.is_dir() and entry.name.isidentifier())
    ]


def _raised(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} at {error.filename}:{error.lineno}"
    return f"{type(error).__name__}: {error}{_at(error)}"


def _at(error: BaseException) -> str:
    """Where user code raised: its innermost frame, else the innermost frame outside porter."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    own = [frame for frame in frames if not _is_installed(frame.filename)]
    chosen = (own or frames)[-1:]
    return f" at {chosen[0].filename}:{chosen[0].lineno}" if chosen else ""


def _own_depth(error: BaseException) -> int:
    """How many frames lie below the call of the factory: none when its own signature refused the call."""
    return sum(not _is_machinery(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


def _is_machinery(filename: str) -> bool:
    recorder = sys.modules.get("porter.converters.frontends.torch.drawn")
    return filename in (__file__, getattr(recorder, "__file__", None)) or filename.startswith("<")


def _is_installed(filename: str) -> bool:
    library = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return "site-packages" in filename or "dist-packages" in filename or filename.startswith(library)
